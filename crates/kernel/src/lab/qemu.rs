//! QEMU: one emulated machine from switching on to switching off.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::arch::Arch;
use super::children::{self, Ending, Running};
use super::config::Variant;
use super::error::{Attempt, Error, Result};
use super::terminal::Raw;
use super::topology::Topology;

/// How the guest's CPUs are emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emulation {
    /// Each by a thread of its own: with fewer CPUs below, the guest is overcommitted.
    Multi,
    /// All by one thread, in turns; who pauses gives its turn away.
    Single,
    /// As `Single`, and the guest's clock counts their instructions: what a run does, it does
    /// again, however busy the machine is.
    Counted,
}

impl Emulation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Multi, Self::Single, Self::Counted];

    /// As it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Multi => "multi",
            Self::Single => "single",
            Self::Counted => "counted",
        }
    }

    /// A thread for each CPU where there are as many CPUs, else a single one.
    pub fn fitting(cpus: u32) -> Self {
        let ours = thread::available_parallelism().map_or(1, usize::from);
        match ours >= cpus as usize {
            true => Self::Multi,
            false => Self::Single,
        }
    }

    fn arguments(self) -> Vec<String> {
        let threads = match self {
            Self::Multi => "multi",
            Self::Single | Self::Counted => "single",
        };
        let mut arguments = vec!["-accel".to_owned()];
        arguments.push(format!("tcg,thread={threads},tb-size=256"));
        if self == Self::Counted {
            // 2 ns an instruction; time in which all CPUs sleep is skipped.
            arguments.extend(["-icount", "shift=1,sleep=off"].map(str::to_owned));
        }
        arguments
    }
}

/// What the guest's console reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// Nothing.
    Nothing,
    /// Our standard input; what the console says goes to our standard output.
    Ours,
}

/// A machine to be.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub topology: Topology,
    pub emulation: Emulation,
    pub arch: Arch,
    /// Let the guest see that it is one.
    pub hypervisor: bool,
    pub kernel: &'a Path,
    pub initramfs: &'a Path,
    pub command_line: &'a str,
    pub disk: Option<&'a Path>,
    pub input: Input,
    /// Where the first serial line is kept.
    pub console: &'a Path,
    /// Where the second is.
    pub channel: &'a Path,
    /// Where QEMU's own complaints are.
    pub errors: &'a Path,
}

/// How long to wait for the next word of a guest.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For the first one.
    pub boot: Duration,
    /// For any other.
    pub step: Duration,
}

impl Patience {
    /// For a kernel on so many CPUs. Scripts that take longer tell that they are alive.
    pub fn new(variant: Variant, emulation: Emulation, cpus: u32) -> Self {
        let debug = if variant == Variant::Debug { 3 } else { 1 };
        let counted = if emulation == Emulation::Counted {
            3
        } else {
            1
        };
        let time = Duration::from_secs(240 + 4 * u64::from(cpus)) * debug * counted;
        Self {
            boot: time,
            step: time,
        }
    }
}

/// How a machine came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It switched itself off, or was reset.
    Off,
    /// The user left it.
    Left,
    /// It had been silent for so long.
    Silent(Duration),
}

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(50);

impl Machine<'_> {
    fn arguments(&self) -> Vec<String> {
        let mut arguments = self.arch.board(self.hypervisor);
        let common = [
            "-nodefaults",
            "-nographic",
            "-no-reboot",
            "-kernel",
            &self.kernel.to_string_lossy(),
            "-initrd",
            &self.initramfs.to_string_lossy(),
            "-append",
            self.command_line,
            "-serial",
            "stdio",
        ];
        arguments.extend(common.map(str::to_owned));
        arguments.extend(self.arch.channel_into(self.channel));
        arguments.extend(self.emulation.arguments());
        arguments.extend(self.topology.arguments());
        if let Some(disk) = self.disk {
            let drive = format!("file={},if=virtio,format=raw,snapshot=on", comma(disk));
            arguments.extend(["-drive".to_owned(), drive]);
        }
        arguments
    }

    /// Runs it. `hear` is given all that comes over the second serial line.
    pub fn run(&self, patience: Patience, hear: &mut dyn FnMut(&str)) -> Result<End> {
        let mut channel = File::create_new(self.channel)
            .and_then(|_| File::open(self.channel))
            .attempt_on("make", self.channel)?;
        let console = File::create(self.console).attempt_on("write", self.console)?;
        let errors = File::create(self.errors).attempt_on("write", self.errors)?;
        let emulator = self.arch.emulator();
        let mut command = children::command(emulator, Ending::Killed);
        command
            .args(self.arguments())
            .stdin(match self.input {
                Input::Nothing => Stdio::null(),
                Input::Ours => Stdio::piped(),
            })
            .stdout(Stdio::piped())
            .stderr(errors);
        let mut running =
            Running::start(&mut command, Ending::Killed).attempt(|| format!("start {emulator}"))?;

        let output = running.streams().stdout.take().expect("it is a pipe");
        let echo = self.input == Input::Ours;
        let copier = thread::spawn(move || copy_console(output, console, echo));
        let leave = Arc::new(AtomicBool::new(false));
        let raw = (self.input == Input::Ours).then(Raw::begin).flatten();
        let mut input = running.streams().stdin.take();
        let mut read_keys = || {
            if let Some(input) = input.take() {
                let leave = Arc::clone(&leave);
                thread::spawn(move || copy_keys(io::stdin(), input, &leave));
            }
        };
        if raw.is_some() {
            read_keys();
        }

        let mut last = Instant::now();
        let mut allowed = patience.boot;
        let mut line = Vec::new();
        let end = loop {
            let status = running.try_wait().attempt(|| "wait for QEMU".to_owned())?;
            // Only after that: what it said last is not to be missed.
            if hear_new(&mut channel, &mut line, hear).attempt_on("read", self.channel)? {
                last = Instant::now();
                allowed = patience.step;
                // What is not typed but sent would be lost on a guest that is not up.
                read_keys();
            }
            match status {
                Some(status) if !status.success() => return Err(self.failed()),
                Some(_) => break End::Off,
                None if leave.load(Ordering::Relaxed) => break End::Left,
                None if last.elapsed() > allowed => break End::Silent(allowed),
                None => thread::sleep(LOOK),
            }
        };
        drop(running);
        copier
            .join()
            .expect("it does not panic")
            .attempt_on("write", self.console)?;
        if !line.is_empty() {
            hear(&String::from_utf8_lossy(&line));
        }
        Ok(end)
    }

    fn failed(&self) -> Error {
        let text = std::fs::read_to_string(self.errors).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        Error::Failed {
            what: "QEMU".to_owned(),
            lines: lines[lines.len().saturating_sub(5)..]
                .iter()
                .map(|line| (*line).to_owned())
                .collect(),
            log: self.errors.to_owned(),
        }
    }
}

/// A path in an option, where a comma begins the next one.
pub(crate) fn comma(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
}

/// Hands on the lines that are new and complete. Was there anything?
fn hear_new(
    channel: &mut File,
    line: &mut Vec<u8>,
    hear: &mut dyn FnMut(&str),
) -> io::Result<bool> {
    let mut new = Vec::new();
    channel.read_to_end(&mut new)?;
    for byte in &new {
        match byte {
            b'\n' => {
                hear(&String::from_utf8_lossy(line));
                line.clear();
            }
            b'\r' => {}
            byte => line.push(*byte),
        }
    }
    Ok(!new.is_empty())
}

fn copy_console(mut output: impl Read, mut console: File, echo: bool) -> io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        let length = match output.read(&mut bytes) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        console.write_all(&bytes[..length])?;
        if echo {
            // Whoever read it may have gone; the guest goes on.
            let mut stdout = io::stdout().lock();
            let _ = stdout
                .write_all(&bytes[..length])
                .and_then(|()| stdout.flush());
        }
    }
}

/// Before an `x`, it ends the guest; before itself, it is meant for the guest.
const ESCAPE: u8 = 0x01;

/// The key that says that no other follows.
const END_OF_INPUT: u8 = 0x04;

/// Hands keys on to the guest, until Ctrl-A x.
fn copy_keys(mut keys: impl Read, mut input: impl Write, leave: &AtomicBool) {
    let mut escaped = false;
    let mut byte = [0];
    while let Ok(1) = keys.read(&mut byte) {
        match (escaped, byte[0]) {
            (false, ESCAPE) => {
                escaped = true;
                continue;
            }
            (true, b'x') => {
                leave.store(true, Ordering::Relaxed);
                return;
            }
            _ => escaped = false,
        }
        if input.write_all(&byte).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
    let _ = input
        .write_all(&[END_OF_INPUT])
        .and_then(|()| input.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine<'static> {
        Machine {
            topology: Topology::new(2, 4, 1024).unwrap(),
            emulation: Emulation::Single,
            arch: Arch::X86_64,
            hypervisor: false,
            kernel: Path::new("k"),
            initramfs: Path::new("i,1"),
            command_line: "a b",
            disk: None,
            input: Input::Nothing,
            console: Path::new("c"),
            channel: Path::new("ch,1"),
            errors: Path::new("e"),
        }
    }

    #[test]
    fn says_what_was_asked_for() {
        let text = machine().arguments().join(" ");
        for part in [
            "tcg,thread=single",
            "-cpu max,hypervisor=off",
            "-serial stdio -serial file:ch,,1",
            "-initrd i,1 -append a b",
            "-smp 4,sockets=2",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert!(!text.contains("-drive"));
        let arm64 = Machine {
            arch: Arch::Arm64,
            ..machine()
        };
        let text = arm64.arguments().join(" ");
        for part in [
            "-machine virt,",
            "-serial stdio -chardev file,id=channel,path=ch,,1 -device pci-serial,",
            "-smp 4,sockets=2",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn lines_come_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("channel");
        std::fs::write(&path, "one\r\ntwo\nthr").unwrap();
        let mut channel = File::open(&path).unwrap();
        let (mut line, mut heard) = (Vec::new(), Vec::new());
        let mut hear = |text: &str| heard.push(text.to_owned());
        assert!(hear_new(&mut channel, &mut line, &mut hear).unwrap());
        assert!(!hear_new(&mut channel, &mut line, &mut hear).unwrap());
        File::options()
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(b"ee\n"))
            .unwrap();
        assert!(hear_new(&mut channel, &mut line, &mut hear).unwrap());
        assert_eq!(heard, ["one", "two", "three"]);
    }

    #[test]
    fn a_key_sequence_ends_the_guest() {
        let leave = AtomicBool::new(false);
        let mut typed = Vec::new();
        copy_keys(&b"ls\x01\x01y\x01xz"[..], &mut typed, &leave);
        assert_eq!(typed, b"ls\x01y");
        assert!(leave.load(Ordering::Relaxed));
    }

    #[test]
    fn the_end_of_what_is_sent_is_told() {
        let leave = AtomicBool::new(false);
        let mut typed = Vec::new();
        copy_keys(&b"ls\n"[..], &mut typed, &leave);
        assert_eq!(typed, b"ls\n\x04");
        assert!(!leave.load(Ordering::Relaxed));
    }
}
