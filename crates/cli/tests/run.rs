//! `lockworks run` from outside. The library that it preloads is built by `make lib`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{self, assert_fails, text, two_cpus};

fn run(args: &[&str]) -> Command {
    support::lockworks(&[&["run"], args].concat())
}

fn output(mut command: Command) -> Output {
    command.output().expect("the command runs")
}

/// Asserts that the command ends with this status, prints one line that has these words, and starts
/// nothing.
#[track_caller]
fn assert_refused(args: &[&str], status: i32, words: &[&str]) {
    assert_command_refused(run(args), status, words);
}

#[track_caller]
fn assert_command_refused(command: Command, status: i32, words: &[&str]) {
    let output = output(command);
    assert_fails(&output, status, words);
    assert_eq!(text(&output.stderr).lines().count(), 1);
}

/// Compiles a C program.
fn compile(directory: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    let program = directory.join(name);
    let file = directory.join(format!("{name}.c"));
    fs::write(&file, source).expect("a file");
    let compiled = Command::new("cc")
        .args(["-pthread", "-o"])
        .args([&program, &file])
        .args(options)
        .status();
    assert!(compiled.expect("a C compiler").success());
    program
}

const SPEAKS: &str = "#include <stdio.h>\nint main(void) { puts(\"started\"); return 0; }\n";

fn write(path: &Path, contents: &[u8], mode: u32) {
    fs::write(path, contents).expect("a file");
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("its owner may");
}

#[test]
fn the_program_is_run_with_the_lock_asked_for() {
    let output = output(run(&["--lock", "unfair", "--", "sh", "-c", "exit 3"]));
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(text(&output.stderr), "");

    let mut command = run(&["--lock", "unfair", "--tune", "unfair_spin=7", "--", "env"]);
    command.env("LOCKWORKS_VERBOSE", "1");
    let output = command.output().expect("the command runs");
    let environment = text(&output.stdout);
    assert!(environment.contains("LOCKWORKS_LOCK=unfair\n"));
    assert!(environment.contains("LOCKWORKS_UNFAIR_SPIN=7\n"));
    assert!(environment.contains("/liblockworks-preload.so\n"));
    assert!(text(&output.stderr).contains("'unfair' serves process"));
}

#[test]
fn libraries_that_are_preloaded_already_stay() {
    let mut command = run(&["env"]);
    command.env("LD_PRELOAD", "libm.so.6");
    let output = output(command);
    assert!(text(&output.stdout).contains("/liblockworks-preload.so:libm.so.6\n"));
}

#[test]
fn locks_that_do_not_fit_are_refused() {
    let meant = ["unknown lock 'unfare'; did you mean 'unfair'?"];
    assert_refused(&["--lock", "unfare", "true"], 2, &meant);
    let mut command = run(&["true"]);
    command.env("LOCKWORKS_LOCK", "unfare");
    assert_command_refused(command, 2, &meant);
    let large = ["'mcs' cannot be in a mutex", "4 bytes", "choose from", "pv"];
    assert_refused(&["--lock", "mcs", "true"], 2, &large);
    assert_refused(&["--lock", "busted", "true"], 2, &["does not exclude"]);
    assert_refused(&["--tune", "pv_spinn=1", "true"], 2, &["pv_spin"]);
    for lock in [&[][..], &["--lock", "mutex"]] {
        let words = [
            "'mutex' does not read the tunable pv_spin",
            "mutex_spin, mutex_trials",
        ];
        assert_refused(
            &[lock, &["--tune", "pv_spin=1", "true"]].concat(),
            2,
            &words,
        );
    }
    let none = ["--lock", "tas", "--tune", "pv_spin=1", "true"];
    assert_refused(&none, 2, &["'tas' does not read", "it has none"]);
    assert_refused(&["--lock", "pv"], 2, &["PROGRAM"]);
}

#[test]
fn programs_that_would_not_load_it_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let refused = |name: &str, status, words: &[&str]| {
        assert_refused(&["--", at(name).to_str().unwrap()], status, words);
    };
    assert_refused(&["no-such-program"], 127, &["'no-such-program' not found"]);
    assert_refused(&["/"], 126, &["'/'", "not an executable file"]);

    compile(directory.path(), "static", SPEAKS, &["-static"]);
    refused("static", 126, &["linked statically"]);
    compile(directory.path(), "static-pie", SPEAKS, &["-static-pie"]);
    refused("static-pie", 126, &["linked statically"]);
    // A section names Go's runtime, whose programs are linked statically.
    let go = "__attribute__((section(\".go.buildinfo\"), used)) static char info[32];\n";
    compile(
        directory.path(),
        "go",
        &format!("{go}{SPEAKS}"),
        &["-static"],
    );
    refused("go", 126, &["Go program", "locks of its own"]);
    // cgo links such programs dynamically. They may have mutexes in C.
    let cgo = compile(directory.path(), "cgo", &format!("{go}{SPEAKS}"), &[]);
    let started = output(run(&[cgo.to_str().unwrap()]));
    assert_eq!(text(&started.stdout), "started\n");
    assert!(text(&started.stderr).contains("the locks of Go's runtime are not served"));
    for (option, name) in [
        ("address", "AddressSanitizer"),
        ("thread", "ThreadSanitizer"),
    ] {
        compile(
            directory.path(),
            option,
            SPEAKS,
            &[&format!("-fsanitize={option}")],
        );
        refused(option, 2, &[name, "build it without"]);
        let runtime = format!("-static-lib{}san", &option[..1]);
        let options = [&format!("-fsanitize={option}"), runtime.as_str(), "-s"];
        compile(directory.path(), option, SPEAKS, &options);
        refused(option, 2, &["a sanitizer", "build it without"]);
    }
    let other_loader = "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1";
    compile(directory.path(), "musl", SPEAKS, &[other_loader]);
    refused("musl", 126, &["ld-musl", "not that of glibc"]);

    let dynamic = compile(directory.path(), "dynamic", SPEAKS, &[]);
    let output = output(run(&[dynamic.to_str().unwrap()]));
    assert_eq!(text(&output.stdout), "started\n");
    let elf = fs::read(&dynamic).unwrap();
    write(&at("user"), &elf, 0o4755);
    refused("user", 126, &["set-user-ID"]);
    write(&at("group"), &elf, 0o2755);
    refused("group", 126, &["set-group-ID"]);

    let mut narrow = elf.clone();
    narrow[4] = 1; // of 32 bits
    write(&at("narrow"), &narrow, 0o755);
    refused("narrow", 126, &["another kind of processor"]);
    let mut foreign = elf;
    foreign[18] = 8; // MIPS
    write(&at("foreign"), &foreign, 0o755);
    refused("foreign", 126, &["another kind of processor"]);

    write(&at("text"), b"hello\n", 0o755);
    refused("text", 126, &["neither a program nor a script"]);
    let script = format!("#! {} -x\n", at("static").display());
    write(&at("script"), script.as_bytes(), 0o755);
    refused("script", 126, &["its interpreter", "linked statically"]);
    let script = format!("#!{}\n", at("address").display());
    write(&at("sanitized"), script.as_bytes(), 0o755);
    refused("sanitized", 2, &["its interpreter", "a sanitizer"]);
    let endless = format!("#!{}\n", at("endless").display());
    write(&at("endless"), endless.as_bytes(), 0o755);
    refused("endless", 126, &["without end"]);
}

#[test]
fn a_race_detector_of_valgrind_is_warned_of() {
    for (tool, warning) in [
        ("helgrind", "warning: Helgrind knows glibc's mutexes only"),
        ("drd", "warning: DRD knows glibc's mutexes only"),
        ("memcheck", ""),
    ] {
        let valgrind = |verbose| {
            let tool = format!("--tool={tool}");
            let mut command = run(&["valgrind", "--quiet", &tool, "/bin/true"]);
            command.env("LOCKWORKS_VERBOSE", verbose);
            let output = output(command);
            assert_eq!(output.status.code(), Some(0));
            text(&output.stderr).to_owned()
        };
        let said = valgrind("");
        assert!(said.contains(warning), "{said}");
        let lines = said.lines().filter(|line| line.starts_with("lockworks:"));
        assert_eq!(lines.count(), usize::from(!warning.is_empty()), "{said}");
        assert!(!valgrind("0").contains("lockworks:"));
    }
}

#[test]
fn a_spinning_lock_warns_of_too_many_threads_once() {
    let crowd = "\
        #include <pthread.h>\n\
        static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;\n\
        static pthread_barrier_t all;\n\
        static void *lock(void *arg) {\n\
            pthread_barrier_wait(&all);\n\
            pthread_mutex_lock(&mutex);\n\
            pthread_mutex_unlock(&mutex);\n\
            pthread_barrier_wait(&all);\n\
            return arg;\n\
        }\n\
        int main(void) {\n\
            pthread_t threads[300];\n\
            pthread_barrier_init(&all, 0, 300);\n\
            for (int i = 0; i < 300; i++) pthread_create(&threads[i], 0, lock, 0);\n\
            for (int i = 0; i < 300; i++) pthread_join(threads[i], 0);\n\
        }\n";
    let directory = tempfile::tempdir().unwrap();
    let crowd = compile(directory.path(), "crowd", crowd, &[]);
    let cpu = two_cpus().map_or(0, |[first, _]| first).to_string();
    let one_cpu = |lock, verbose| {
        let mut command = run(&[
            "--lock",
            lock,
            "taskset",
            "-c",
            &cpu,
            crowd.to_str().unwrap(),
        ]);
        command.env("LOCKWORKS_VERBOSE", verbose);
        let output = output(command);
        assert_eq!(output.status.code(), Some(0));
        text(&output.stderr).to_owned()
    };
    let warning = one_cpu("tas", "");
    assert_eq!(warning.lines().count(), 1, "{warning}");
    assert!(warning.contains("warning: waiters of 'tas' spin"));
    assert_eq!(one_cpu("tas", "0"), "");
    assert_eq!(one_cpu("pv", ""), "");
}

/// Four threads that lock what `LOCK` and `UNLOCK` say.
const LOCKS: &str = "\
    #include <pthread.h>\n\
    #include <semaphore.h>\n\
    static sem_t semaphore;\n\
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;\n\
    static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;\n\
    static void *lock(void *arg) {\n\
        LOCK;\n\
        UNLOCK;\n\
        return arg;\n\
    }\n\
    int main(void) {\n\
        pthread_t threads[4];\n\
        pthread_mutexattr_t attr;\n\
        pthread_mutexattr_init(&attr);\n\
        pthread_mutexattr_setpshared(&attr, SHARED);\n\
        pthread_mutex_init(&mutex, &attr);\n\
        sem_init(&semaphore, 0, 1);\n\
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, lock, 0);\n\
        for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);\n\
    }\n";

#[test]
fn a_program_that_locks_nothing_that_is_served_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let program = |name, lock: [&str; 2], shared| {
        let source = LOCKS
            .replace("UNLOCK", lock[1])
            .replace("LOCK;", &format!("{};", lock[0]));
        compile(
            directory.path(),
            name,
            &source.replace("SHARED", shared),
            &[],
        )
    };
    let said = |command: &[&str], verbose| {
        let mut command = run(command);
        command.env("LOCKWORKS_VERBOSE", verbose);
        text(&output(command).stderr).to_owned()
    };
    let mutex = ["pthread_mutex_lock(&mutex)", "pthread_mutex_unlock(&mutex)"];
    let rwlock = [
        "pthread_rwlock_rdlock(&rwlock)",
        "pthread_rwlock_unlock(&rwlock)",
    ];
    let semaphore = ["sem_wait(&semaphore)", "sem_post(&semaphore)"];
    let (one, all) = ("PTHREAD_PROCESS_PRIVATE", "PTHREAD_PROCESS_SHARED");

    let served = program("served", mutex, one);
    let served = served.to_str().unwrap();
    for lock in ["mutex", "pv"] {
        assert_eq!(said(&["--lock", lock, served], ""), "");
    }
    // Whatever lock is chosen, rwlocks are served.
    let readers = program("readers", rwlock, one);
    assert_eq!(said(&["--lock", "pv", readers.to_str().unwrap()], ""), "");
    let none = program("none", semaphore, one);
    let none = none.to_str().unwrap();
    for lock in ["mutex", "pv"] {
        let warning = said(&["--lock", lock, none], "");
        assert_eq!(warning.lines().count(), 1, "{warning}");
        assert!(
            warning.contains("locked no pthread mutex") && warning.contains("it uses semaphores"),
            "{warning}"
        );
    }
    assert_eq!(said(&[none], "0"), "");
    // Only the program itself is told of, not those that it starts.
    assert_eq!(said(&["sh", "-c", &format!("{none}; exit")], ""), "");

    let left = program("left", mutex, all);
    let warning = said(&[left.to_str().unwrap()], "");
    assert!(
        warning.contains("only mutexes that are left to glibc")
            && warning.contains("(process-shared 4, robust 0, with priorities 0)"),
        "{warning}"
    );
}

#[test]
fn extensions_of_time_slices_are_asked_for() {
    let mut command = run(&["--slice", "--", "env"]);
    command.env("GLIBC_TUNABLES", "glibc.malloc.check=0");
    let environment = text(&output(command).stdout).to_owned();
    assert!(environment.contains("LOCKWORKS_MUTEX_SLICE=1\n"));
    // The program's own tunables stay.
    let tunables = "GLIBC_TUNABLES=glibc.malloc.check=0:glibc.pthread.rseq=0\n";
    assert!(environment.contains(tunables), "{environment}");

    let of_another = ["--slice", "--lock", "pv", "true"];
    assert_refused(&of_another, 2, &["--slice is for the lock mutex"]);
}

/// A program with a mutex that a plan names, and one that it does not name. It prints what glibc counts in
/// them while they are held: 1, or 0 if another lock serves.
const TWO_MUTEXES: &str = "#include <pthread.h>
#include <stdio.h>
pthread_mutex_t planned = PTHREAD_MUTEX_INITIALIZER, other = PTHREAD_MUTEX_INITIALIZER;
int main(void) {
	pthread_mutex_lock(&planned);
	pthread_mutex_lock(&other);
	printf(\"%u %u\\n\", planned.__data.__nusers, other.__data.__nusers);
	return 0;
}
";

/// The name of a module and its build-id, as `readelf` prints it, and the address of a symbol.
fn line(program: &Path, symbol: &str) -> String {
    let printed = |command: &str, option: &str| {
        let output = Command::new(command).arg(option).arg(program).output();
        text(&output.expect("binutils").stdout).to_owned()
    };
    let notes = printed("readelf", "-n");
    let (_, id) = notes.split_once("Build ID: ").expect("a build-id");
    let symbols = printed("nm", "-g");
    let found = symbols
        .lines()
        .find_map(|line| line.strip_suffix(&format!(" {symbol}")));
    let address = found
        .and_then(|line| line.split(' ').next())
        .expect("its symbol");
    let name = program.file_name().expect("a file").to_string_lossy();
    let id = id.lines().next().expect("a line");
    format!(
        "{name} {id} 0x{} # {symbol}",
        address.trim_start_matches('0')
    )
}

#[test]
fn a_plan_serves_the_mutexes_that_it_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "two", TWO_MUTEXES, &["-Wl,--build-id"]);
    let program_name = program.to_str().expect("a path");
    let plan = directory.path().join("two.plan");
    let plan_name = plan.to_str().expect("a path");
    let with = |text: String| fs::write(&plan, text).expect("a file");
    let run_it = || run(&["--plan", plan_name, "--", program_name]);

    for lock in ["mutex", "unfair", "glibc"] {
        with(format!(
            "lockworks plan 1\n{lock} {}\n",
            line(&program, "planned")
        ));
        let served = output(run_it());
        assert_eq!(text(&served.stderr), "");
        let expected = if lock == "glibc" { "1 1\n" } else { "0 1\n" };
        assert_eq!(text(&served.stdout), expected, "{lock}");
    }

    with(format!(
        "lockworks plan 1\nmutx {}\n",
        line(&program, "planned")
    ));
    assert_command_refused(
        run_it(),
        2,
        &["two.plan:2: unknown lock 'mutx'; did you mean 'mutex'?"],
    );
    let other = line(&program, "planned").replacen("two ", "two 00", 1);
    with(format!("lockworks plan 1\nmutex {other}\n"));
    assert_command_refused(
        run_it(),
        2,
        &["is for another build of two", "make the plan again"],
    );
    with("lockworks plan 2\n".to_owned());
    assert_command_refused(run_it(), 2, &["another version"]);
    with("lockworks plan 1\n".to_owned());
    assert_command_refused(run_it(), 2, &["names no mutex"]);
    assert_refused(
        &["--plan", "nowhere", "--", program_name],
        2,
        &["cannot read the plan nowhere"],
    );

    let both = output(run(&[
        "--plan",
        plan_name,
        "--lock",
        "pv",
        "--",
        program_name,
    ]));
    assert_eq!(both.status.code(), Some(2));
    let said = text(&both.stderr);
    assert!(
        said.contains("--plan") && said.contains("cannot be used with"),
        "{said}"
    );
}
