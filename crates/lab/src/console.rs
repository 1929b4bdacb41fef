//! Searches a guest's console for reports of trouble.

use crate::complaint::{Complaint, ComplaintKind};

/// Texts by which the kernel reports trouble. If two are in a line, the first one of this list counts.
const MARKS: [(ComplaintKind, &[&str]); 10] = [
    (ComplaintKind::Panic, &["Kernel panic"]),
    (
        ComplaintKind::Lockup,
        &["soft lockup", "hard LOCKUP", "BUG: workqueue lockup"],
    ),
    (
        ComplaintKind::RcuStall,
        &[
            "self-detected stall",
            "detected stalls on",
            "detected expedited stalls",
            "kthread starved for",
        ],
    ),
    (ComplaintKind::HungTask, &["blocked for more than"]),
    (ComplaintKind::DataRace, &["BUG: KCSAN:"]),
    (
        ComplaintKind::SelfTest,
        &["unexpected failures (out of", "selftests failed"],
    ),
    (
        ComplaintKind::Lockdep,
        &[
            "possible circular locking",
            "possible recursive locking",
            "possible irq lock inversion",
            "possible deadlock",
            "irq-unsafe lock order detected",
            "inconsistent lock state",
            "nvalid wait context",
            "bad unlock balance",
            "bad contention detected",
            "held lock freed",
            "lock held when returning to user space",
            "still has locks held",
            "nested lock was not taken",
            "suspicious RCU usage",
            "DEBUG_LOCKS_WARN_ON",
            "BUG: MAX_LOCK",
            "trying to register non-static key",
        ],
    ),
    (
        ComplaintKind::Oops,
        &[
            "Oops:",
            "int3: 0000", // Linux 6.1 prints it alone.
            "BUG: unable to handle",
            "Unable to handle kernel",
            "Internal error:",
            "SError Interrupt",
            "BUG: kernel NULL",
            "kernel BUG at",
            "general protection fault",
            "invalid opcode",
            "double fault",
        ],
    ),
    (
        ComplaintKind::Bug,
        &[
            "BUG:",
            "refcount_t:",
            "list_add corruption",
            "list_del corruption",
            "nobody cared",
            "UBSAN:",
        ],
    ),
    (ComplaintKind::Warning, &["WARNING:"]),
];

/// Texts of harmless lines.
const HARMLESS: [&str; 5] = [
    "ommand line:",
    "kernel command line parameters",
    // Guests run with mitigations off.
    "Spectre",
    "RETBleed",
    "Unprivileged eBPF",
];

/// Beginnings of lines that a report leaves out: registers and the like.
const DUMPS: [&str; 33] = [
    "Modules linked in:",
    "Hardware name:",
    "Code:",
    "RSP:",
    "EFLAGS:",
    "RAX:",
    "RDX:",
    "RBP:",
    "R10:",
    "R13:",
    "FS:",
    "CS:",
    "CR2:",
    "DR0:",
    "DR3:",
    "PKRU:",
    "pstate:",
    "pc :",
    "lr :",
    "sp :",
    "x29:",
    "x26:",
    "x23:",
    "x20:",
    "x17:",
    "x14:",
    "x11:",
    "x8 :",
    "x5 :",
    "x2 :",
    "Call Trace:",
    "Call trace:",
    "<TASK>",
];

/// The largest number of lines of a report that are shown.
const LINES: usize = 16;
/// The largest number of lines of a report.
const REPORT: usize = 40;

/// Finds all reports of trouble on a console.
pub fn complaints(console: &str) -> Vec<Complaint> {
    let lines: Vec<&str> = console.lines().map(str::trim_end).collect();
    let mut complaints = Vec::new();
    let mut next = 0;
    while let Some(line) = lines.get(next) {
        let Some(kind) = kind(line) else {
            next += 1;
            continue;
        };
        let report = &lines[next..report_end(&lines, next)];
        complaints.push(Complaint {
            kind,
            lines: report
                .iter()
                .enumerate()
                // The first line is the report itself, whatever a program printed before it.
                .filter(|(number, line)| *number == 0 || !is_dump(line))
                .take(LINES)
                .map(|(_, line)| (*line).to_owned())
                .collect(),
        });
        next += report.len();
    }
    complaints
}

fn is_dump(line: &str) -> bool {
    DUMPS.iter().any(|dump| message(line).starts_with(dump))
}

/// Finds the end of a report that begins at `begin`: an end mark, a rule, an empty message, or the
/// largest number of lines.
fn report_end(lines: &[&str], begin: usize) -> usize {
    if kind(lines[begin]) == Some(ComplaintKind::Lost) {
        return begin + 1;
    }
    if kind(lines[begin]) == Some(ComplaintKind::Violation) {
        let others = lines[begin..]
            .iter()
            .position(|line| kind(line) != Some(ComplaintKind::Violation));
        return begin + others.unwrap_or(lines.len() - begin);
    }
    let most = lines.len().min(begin + REPORT);
    for (offset, line) in lines[begin + 1..most].iter().enumerate() {
        if message(line).is_empty() {
            return begin + 1 + offset;
        }
        if line.contains("---[ end ") || message(line).starts_with("=====") {
            return begin + 2 + offset;
        }
    }
    most
}

fn kind(line: &str) -> Option<ComplaintKind> {
    if line.contains(" printk messages dropped **") {
        return Some(ComplaintKind::Lost);
    }
    let line = said_by_kernel(line)?;
    if HARMLESS.iter().any(|harmless| line.contains(harmless)) {
        return None;
    }
    if is_broken_count(line) {
        return Some(ComplaintKind::Violation);
    }
    if self_tests(line).is_some_and(|(passed, all)| passed != all) {
        return Some(ComplaintKind::SelfTest);
    }
    let found = MARKS
        .iter()
        .find(|(_, marks)| marks.iter().any(|mark| line.contains(mark)));
    found.map(|(kind, _)| *kind)
}

/// The text after the kernel's time stamp. The output of a program may stand before the stamp.
fn said_by_kernel(line: &str) -> Option<&str> {
    let is_time = |text: &str| {
        let (seconds, parts) = text.trim_start().split_once('.')?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        (digits(seconds) && digits(parts)).then_some(())
    };
    line.match_indices('[').find_map(|(at, _)| {
        let (stamp, rest) = line[at + 1..].split_once(']')?;
        is_time(stamp).map(|()| rest)
    })
}

/// Whether a line counts broken mutual exclusion, or the unsuccessful end of a test.
fn is_broken_count(line: &str) -> bool {
    if let Some((_, count)) = line.split_once(" Fail: ") {
        return count.split_whitespace().next() != Some("0");
    }
    match line
        .split_once("lockworks_test: ")
        .and_then(|(_, rest)| rest.split_once(" violation"))
    {
        Some((before, _)) => before.rsplit(' ').next() != Some("0"),
        None => line.contains("End of test: ") && !line.contains("End of test: SUCCESS"),
    }
}

/// The numbers of self-tests that KCSAN passed and ran.
fn self_tests(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once("kcsan: selftest: ")?;
    rest.split_once(" tests passed")?.0.split_once('/')
}

/// A complaint if self-tests of the debug kernel did not report success.
pub(crate) fn missing_self_tests(console: &str) -> Option<Complaint> {
    let locking = |line: &str| line.contains("Good, all ") && line.contains(" passed!");
    let silent: Vec<String> = [
        ("locking self-tests", console.lines().any(locking)),
        (
            "KCSAN's self-test",
            console.lines().any(|l| self_tests(l).is_some()),
        ),
    ]
    .into_iter()
    .filter(|(_, said)| !said)
    .map(|(what, _)| format!("the {what} did not report success"))
    .collect();
    (!silent.is_empty()).then_some(Complaint {
        kind: ComplaintKind::SelfTest,
        lines: silent,
    })
}

/// Counts how often a CPU was switched off.
pub(crate) fn offlined(console: &str) -> u64 {
    let offline = |line: &&str| {
        // The kernel says so on x86-64, the firmware interface on arm64.
        line.contains(" is now offline") || (line.contains("psci: CPU") && line.contains(" killed"))
    };
    console.lines().filter(offline).count() as u64
}

/// A line without the time stamp and the caller before it.
fn message(line: &str) -> &str {
    let mut rest = line.trim();
    while let Some((stamp, after)) = rest.strip_prefix('[').and_then(|l| l.split_once(']')) {
        let is_stamp = stamp
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit() || c == 'T' || c == 'C');
        if !is_stamp {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

/// The last lines of the console of a silent guest.
pub(crate) fn last_lines(console: &str) -> Vec<String> {
    let lines: Vec<&str> = console.lines().filter(|l| !l.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(8)..]
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(console: &str) -> Vec<ComplaintKind> {
        complaints(console).iter().map(|c| c.kind).collect()
    }

    #[test]
    fn each_kind_of_trouble_is_heard() {
        let trouble = r#"
Panic [    3.1] Kernel panic - not syncing: no init
Lockup [   30.0] watchdog: BUG: soft lockup - CPU#3 stuck for 23s! [x:7]
Lockup [   30.0] watchdog: Watchdog detected hard LOCKUP on cpu 2
RcuStall [   21.0] rcu: INFO: rcu_preempt self-detected stall on CPU
RcuStall [   21.0] rcu: INFO: rcu_sched detected stalls on CPUs/tasks:
HungTask [   90.0] INFO: task rmmod:88 blocked for more than 30 seconds.
DataRace [    5.5] BUG: KCSAN: data-race in a / b
Lockdep [    5.5] WARNING: possible circular locking dependency detected
Lockdep [    5.5] WARNING: possible recursive locking detected
Lockdep [    5.5] WARNING: inconsistent lock state
Lockdep [    5.5] [ BUG: Invalid wait context ]
Lockdep [    5.5] WARNING: bad unlock balance detected!
Lockdep [    5.5] DEBUG_LOCKS_WARN_ON(x)
Lockdep [    5.5] WARNING: suspicious RCU usage
SelfTest [    0.6] BUG:   2 unexpected failures (out of 358) - disabled! |
SelfTest [    0.7] kcsan: selftest: 3/4 tests passed
Oops [    5.5] BUG: unable to handle page fault for address: 0
Oops [    5.5] Oops: 0000 [#1] PREEMPT SMP
Oops [    5.5] int3: 0000 [#1] PREEMPT SMP
Oops [    5.5] kernel BUG at mm/slub.c:1!
Oops [    5.5] Unable to handle kernel paging request at virtual address dead
Oops [    5.5] Internal error: Oops - BUG: 00000000f2000800 [#1] PREEMPT SMP
Bug [    5.5] BUG: spinlock bad magic on CPU#0, x/1
Warning [    5.5] WARNING: CPU: 1 PID: 9 at a.c:3 f+0x1/0x2
Violation [    5.5] Writes:  Total: 9  Max/Min: 5/4   Fail: 3 !!!
Violation [    5.5] x-torture:--- End of test: LOCK_HOTPLUG: a=1
Violation [    5.5] lockworks_test: cna: 8 threads, 9 rounds: 10 violations
Warning ~ # ls[    5.5][    T9] WARNING: x
Lost ** 7 printk messages dropped **
"#;
        for line in trouble.trim().lines() {
            let (kind, line) = line.split_once(' ').unwrap();
            assert_eq!(format!("{:?}", kinds(line)), format!("[{kind}]"), "{line}");
        }
    }

    #[test]
    fn switched_off_cpus_are_counted() {
        let x86_64 = "[    1.0] smpboot: CPU 7 is now offline\n";
        let arm64 = "[    1.0] psci: CPU7 killed (polled 0 ms)\n[    2.0] CPU7: Booted\n";
        assert_eq!([offlined(x86_64), offlined(arm64), offlined("")], [1, 1, 0]);
    }

    #[test]
    fn a_clean_console_passes() {
        let clean = "\
            [    0.000000] Command line: console=ttyS0 note=BUG: WARNING:\n\
            [    0.000000] Lock dependency validator: x, MAX_LOCKDEP_KEYS: 8192\n\
            [    0.100000] Spectre V2 : WARNING: the mitigation is off\n\
            [    0.200000] Unknown kernel command line parameters \"a=BUG:\", will be passed on\n\
            [    0.300000] Good, all 358 testcases passed! |\n\
            [    0.400000] kcsan: selftest: 4/4 tests passed\n\
            [    1.000000] clocksource: Marking clocksource 'tsc' as unstable\n\
            [    2.000000] lockworks: numa_spinlock on, 4 nodes\n\
            [    9.000000] Writes:  Total: 9  Max/Min: 6/3 ???  Fail: 0 \n\
            [    9.000000] spin_lock-torture:--- End of test: SUCCESS: nwriters_stress=8\n\
            [    9.500000] lockworks_test: cna: 8 threads, 1000 rounds: 0 violations\n\
            [   10.000000] reboot: Power down\n";
        assert_eq!(complaints(clean), []);
        assert_eq!(
            kinds("~ # dmesg | grep WARNING:\nWARNING: what a program says\n"),
            []
        );
        assert_eq!(missing_self_tests(clean), None);
        let silent = missing_self_tests("[    1.0] up\n").unwrap();
        assert_eq!(
            (silent.kind, silent.lines.len()),
            (ComplaintKind::SelfTest, 2)
        );
    }

    #[test]
    fn a_report_comes_whole_and_once() {
        let console = "\
            [    4.0][    T9] something before\n\
            [    5.0][    T9] =====================\n\
            [    5.0][    T9] WARNING: possible recursive locking detected\n\
            [    5.0][    T9] x is trying to acquire lock: BUG:\n\
            [    5.0][    T9] =====================\n\
            [    6.0][    T9] WARNING: CPU: 0 PID: 1 at b.c:1\n\
            [    6.0][    T9] RAX: 0000000000000000\n\
            [    6.0][    T9] ---[ end trace 0000000000000000 ]---\n\
            [    7.0][    T9] something after\n\
            [    8.0][    T9] Writes:  Total: 9  Max/Min: 5/4   Fail: 3 !!!\n\
            [    9.0][    T9] something else\n";
        let complaints = complaints(console);
        let found: Vec<_> = complaints.iter().map(|c| (c.kind, c.lines.len())).collect();
        assert_eq!(
            found,
            [
                (ComplaintKind::Lockdep, 3),
                (ComplaintKind::Warning, 2),
                (ComplaintKind::Violation, 1)
            ]
        );
    }

    #[test]
    fn a_long_report_is_cut() {
        let console = "[    5.5] WARNING: x\n".to_owned() + &" a+0x1\n".repeat(100);
        let complaints = complaints(&console);
        assert_eq!(complaints.len(), 1);
        assert_eq!(complaints[0].lines.len(), LINES);
    }

    #[test]
    fn a_report_after_the_words_of_a_program_keeps_its_line() {
        let line = "Code: [    1.5] WARNING: x";
        assert_eq!(complaints(line)[0].lines, [line]);
    }
}

#[cfg(test)]
mod properties {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Reports hold lines of the console, in their order, and have a limited length.
        #[test]
        fn reports_are_parts_of_any_console(console in console()) {
            let mut rest = console.lines().map(str::trim_end);
            for complaint in complaints(&console) {
                prop_assert!(!complaint.lines.is_empty());
                if complaint.kind != ComplaintKind::Violation {
                    prop_assert!(complaint.lines.len() <= LINES);
                }
                for line in &complaint.lines {
                    prop_assert!(rest.any(|other| other == line), "{line}");
                }
            }
            last_lines(&console);
            missing_self_tests(&console);
            offlined(&console);
        }

        /// A report is found wherever it stands among other lines of the kernel.
        #[test]
        fn trouble_is_found_among_other_lines(before in calm(), after in calm(), mark in mark()) {
            let (kind, mark) = mark;
            let line = format!("[    5.5] {mark}");
            let console = [&before[..], std::slice::from_ref(&line), &after[..]].concat().join("\n");
            let found = complaints(&console);
            prop_assert_eq!(found.len(), 1, "{:?}", found);
            prop_assert_eq!(found[0].kind, kind);
            prop_assert_eq!(&found[0].lines[0], &line);
        }

        /// Programs cannot cause a complaint: their lines have no time stamp.
        #[test]
        fn programs_cause_no_complaint(words in "[^\\[\\*]{0,20}", mark in mark()) {
            prop_assert_eq!(complaints(&format!("{words}{}", mark.1)), []);
        }
    }

    /// A text by which the kernel reports trouble, and the kind that it stands for.
    fn mark() -> impl Strategy<Value = (ComplaintKind, &'static str)> {
        let first = |text: &str| {
            let mut marks = MARKS.iter();
            marks.find(|(_, marks)| marks.iter().any(|mark| text.contains(mark)))
        };
        let all = MARKS.iter().flat_map(|(_, marks)| marks.iter());
        let all = all.filter_map(|text| Some((first(text)?.0, *text)));
        prop::sample::select(all.collect::<Vec<_>>())
    }

    /// Lines of the kernel that report no trouble.
    fn calm() -> impl Strategy<Value = Vec<String>> {
        let line = (0..10_000_u32, "[a-z0-9 ,/-]{1,30}");
        let line = line.prop_map(|(time, text)| format!("[{:9}.123456] x {text}", time));
        prop::collection::vec(line, 0..20)
    }

    /// Any text, with many pieces of what consoles hold.
    fn console() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            mark().prop_map(|(_, text)| text.to_owned()),
            Just("[    1.5] ".to_owned()),
            Just("\n".to_owned()),
            Just("[    1.5]  a+0x1/0x2\n".repeat(20)),
            Just("---[ end trace ]---\n".to_owned()),
            Just("=====\n".to_owned()),
            Just("Modules linked in:".to_owned()),
            Just("Writes:  Total: 9  Max/Min: 5/4   Fail: 3 !!!\n".to_owned()),
            Just("lockworks_test: 1 violation".to_owned()),
            Just("kcsan: selftest: 3/4 tests passed\n".to_owned()),
            "\\PC{0,12}",
            ".{0,12}",
        ];
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }
}
