//! `lockworks profile --pid` and `lockworks top` from outside. In the program, attach.c, threads sleep in
//! known places before anything is looked at, so nothing depends on time.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, geteuid, mkfifo};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{
    self, assert_fails, assert_fits_terminals, assert_refused, json, output, text,
};

static DIRECTORY: LazyLock<TempDir> = LazyLock::new(|| {
    let directory = TempDir::new().expect("a directory");
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/attach.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-g", "-pthread", "-o"]);
    let compiled = compiler
        .arg(directory.path().join("attach"))
        .arg(source)
        .status();
    assert!(compiled.expect("a C compiler").success());
    directory
});

/// The program, which ends when this is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Starts a command that becomes the program, whose threads then sleep.
    fn of(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let stdout = child.stdout.take().expect("it is a pipe");
        let running = Self(child);
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n");
        running
    }

    fn new(args: &[&str]) -> Self {
        let mut command = Command::new(DIRECTORY.path().join("attach"));
        command.args(args);
        Self::of(command)
    }

    fn report(&self) -> Value {
        let pid = self.pid();
        let args = ["profile", "--pid", &pid, "--seconds", "0.2", "--json"];
        let output = output(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        json(&output)
    }
}

/// Waits until a command has taken a sample: it sleeps until the next one.
fn await_samples(command: u32) {
    let sleeps = format!("{} ", nix::libc::SYS_clock_nanosleep);
    let call = || std::fs::read_to_string(format!("/proc/{command}/syscall")).expect("it runs");
    while !call().starts_with(&sleeps) {
        std::thread::yield_now();
    }
}

/// The lock of this name in a report.
fn lock<'a>(report: &'a Value, name: &str) -> &'a Value {
    let mut locks = report["locks"].as_array().expect("locks").iter();
    let lock = locks.find(|lock| lock["lock"] == name);
    lock.unwrap_or_else(|| panic!("no {name} in {report:#}"))
}

#[test]
fn the_hottest_lock_of_a_process_its_waiters_and_its_holder_are_named() {
    let program = Running::new(&[]);
    let report = program.report();
    assert_eq!(report["locks"][0]["lock"], "hot", "{report:#}");
    let hot = lock(&report, "hot");
    assert_eq!(hot["kind"], "mutex");
    assert_eq!(hot["threads"], 3);
    assert_eq!(hot["places"][0]["function"], "at_hot");
    let line = hot["places"][0]["line"].as_str().expect("a line");
    let source = include_str!("attach.c").lines();
    let expected = source.take_while(|line| !line.contains("hot line")).count() + 1;
    assert_eq!(line, format!("attach.c:{expected}"));
    let holder = hot["meanwhile"][0]["holder"].as_str().expect("words");
    assert!(
        holder.starts_with("holder slept in read at hold attach.c:"),
        "{holder}"
    );
    assert_eq!(lock(&report, "cold")["threads"], 1);
    assert_eq!(lock(&report, "table")["kind"], "rwlock");
    let waits = report["waits"].as_array().expect("waits");
    assert_eq!(waits.len(), 5, "{report:#}");
    for wait in waits {
        assert_eq!(wait["held_by"].to_string(), program.pid(), "{wait:#}");
        let stack = wait["holder_stack"].as_array().expect("a stack");
        assert!(
            stack.iter().any(|place| place["function"] == "main"),
            "{wait:#}"
        );
    }
    let others = report["other_waits"].as_array().expect("waits").iter();
    let mut others = others.filter(|other| other["function"] == "pthread_cond_wait");
    assert_eq!(others.next().expect("a wait for a condition")["threads"], 1);
    assert_eq!(report["deadlock"].as_array().map(Vec::len), Some(0));
}

/// The path of code that is mapped may lead to another file meanwhile, or to none, or to a pipe.
#[test]
fn a_file_in_the_place_of_the_program_is_not_taken_for_it() {
    let directory = TempDir::new().expect("a directory");
    let (original, path) = (
        DIRECTORY.path().join("attach"),
        directory.path().join("attach"),
    );
    // Not by this process: a child of another test may have the copy open for writing, which then cannot run.
    let copied = Command::new("cp").args([&original, &path]).status();
    assert!(copied.expect("cp").success());
    let program = Running::of(Command::new(&path));
    assert!(program.report().to_string().contains("at_hot"));
    fs::remove_file(&path).expect("it is there");
    mkfifo(&path, Mode::S_IRWXU).expect("a pipe");
    assert!(!program.report().to_string().contains("at_hot"));
    fs::remove_file(&path).expect("it is there");
    fs::copy(&original, &path).expect("a copy");
    assert!(!program.report().to_string().contains("at_hot"));
}

#[test]
fn a_process_under_the_preload_library_is_seen() {
    let program = DIRECTORY.path().join("attach");
    let program = program.to_str().expect("a path");
    let report = Running::of(support::lockworks(&["run", "--", program])).report();
    assert_eq!(report["preloaded"], true);
    assert_eq!(lock(&report, "hot")["threads"], 3, "{report:#}");
    assert_eq!(lock(&report, "hot")["places"][0]["function"], "at_hot");
}

#[test]
fn a_deadlock_ends_the_samples_and_is_named() {
    let between_two = [
        "for hot, which thread",
        "for cold, which thread",
        "at_second",
    ];
    for (how, parts) in [
        ("deadlock", &between_two[..]),
        ("twice", &["at_again", "for own, which"]),
    ] {
        let program = Running::new(&[how]);
        let pid = program.pid();
        let output = output(&["profile", "--pid", &pid, "--seconds", "600"]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        let words: Vec<&str> = text(&output.stdout).split_whitespace().collect();
        let said = words.join(" ");
        for part in parts.iter().chain(&["Deadlock: thread"]) {
            assert!(said.contains(part), "no {part:?} in {said}");
        }
    }
}

#[test]
fn a_process_that_ends_is_reported() {
    let mut program = Running::new(&[]);
    let pid = program.pid();
    let args = ["profile", "--pid", &pid, "--seconds", "600", "--json"];
    let command = support::lockworks(&args)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    await_samples(command.id());
    // Nobody has waited for the process, so it is still there, without threads.
    program.0.kill().expect("it runs");
    let output = command.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(json(&output)["has_ended"], true);
}

#[test]
fn top_shows_the_same_each_second() {
    let program = Running::new(&[]);
    let pid = program.pid();
    let shown = output(&["top", "--pid", &pid, "--seconds", "0.2"]);
    assert_eq!(shown.status.code(), Some(0), "{}", text(&shown.stderr));
    let hot = text(&shown.stdout)
        .lines()
        .find(|line| line.contains("hot, at_hot attach.c"));
    let hot = hot.unwrap_or_else(|| panic!("{}", text(&shown.stdout)));
    assert!(hot.contains("holder slept in read"), "{hot}");
}

#[test]
fn top_finds_the_processes_of_the_user() {
    let program = Running::new(&[]);
    let all = output(&["top", "--seconds", "0.2", "--json"]);
    let mut reports = text(&all.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON in each line"));
    let ours = reports.find(|report| report["pid"] == program.0.id());
    assert_eq!(
        ours.expect("a report of the program")["locks"][0]["lock"],
        "hot"
    );
}

#[test]
fn top_shows_root_the_processes_of_all_users() {
    if !geteuid().is_root() {
        return;
    }
    // Another user may not enter the directory.
    let readable = TempDir::with_prefix_in("attach", "/tmp").expect("a directory");
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(readable.path(), mode).expect("it is ours");
    let copy = readable.path().join("attach");
    fs::copy(DIRECTORY.path().join("attach"), &copy).expect("a copy");
    let mut command = Command::new(copy);
    command.uid(65534);
    let program = Running::of(command);
    let all = output(&["top", "--seconds", "0.2", "--json"]);
    let ours = format!("\"pid\":{},", program.pid());
    assert!(text(&all.stdout).contains(&ours), "{}", text(&all.stdout));
}

#[test]
fn the_report_on_a_process_fits_terminals() {
    let program = Running::new(&[]);
    let pid = program.pid();
    let args = ["profile", "--pid", &pid, "--seconds", "0.05"];
    assert_fits_terminals(
        &args,
        &[
            "lock, hottest place",
            "meanwhile",
            "waits now",
            "Only threads that sleep",
        ],
    );
}

#[test]
fn an_interruption_ends_the_samples() {
    let program = Running::new(&[]);
    let pid = program.pid();
    let mut command = support::lockworks(&["profile", "--pid", &pid, "--seconds", "600"]);
    let command = command.stdout(Stdio::piped()).spawn().expect("it runs");
    let number = Pid::from_raw(command.id().cast_signed());
    await_samples(command.id());
    kill(number, Signal::SIGINT).expect("it can be interrupted");
    let output = command.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    assert!(text(&output.stdout).contains("hot, at_hot attach.c"));
}

#[test]
fn processes_that_cannot_be_looked_at_are_refused() {
    let mut ended = Command::new("true")
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let gone = ended.id().to_string();
    let stat = format!("/proc/{gone}/stat");
    while !std::fs::read_to_string(&stat)
        .expect("it is there")
        .contains(") Z ")
    {
        std::thread::yield_now();
    }
    assert_refused(&output(&["profile", "--pid", &gone]), &["has ended", &gone]);
    ended.wait().expect("it ends");
    assert_refused(
        &output(&["profile", "--pid", &gone]),
        &["no process", &gone],
    );
    assert_refused(&output(&["top", "--pid", &gone]), &["no process", &gone]);
    let program = Running::new(&[]);
    let pid = program.pid();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
    let mut tasks = tasks.map(|task| {
        task.expect("a thread")
            .file_name()
            .into_string()
            .expect("digits")
    });
    let thread = tasks.find(|tid| *tid != pid).expect("a second thread");
    assert_refused(
        &output(&["profile", "--pid", &thread]),
        &["is a thread of process", &pid],
    );
    if std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n") {
        assert_refused(
            &output(&["profile", "--pid", "2"]),
            &["thread of the kernel", "kthreadd"],
        );
    }
    for args in [
        ["--pid", "0", "--json"],
        ["--pid", "x", "--json"],
        ["--pid", &pid, "ls"],
        ["--pid", &pid, "--slow=3"],
        ["--pid", &pid, "--trace=a.pftrace"],
        ["--pid", &pid, "--seconds=0"],
        ["--pid", &pid, "--seconds=nan"],
        ["--pid", &pid, "--hz=0"],
    ] {
        let refused = output(&[&["profile"], args.as_slice()].concat());
        assert_refused(&refused, &["lockworks: "]);
    }
    assert_fails(
        &output(&["profile", "--seconds", "1", "ls"]),
        2,
        &["--seconds"],
    );
}
