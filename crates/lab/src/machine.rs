//! An emulated machine, as options of QEMU.

use std::path::Path;

use crate::arch::Arch;
use crate::emulation::Emulation;
use crate::monitor::MonitorSocket;
use crate::topology::Topology;

/// The input of the guest's console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// No input.
    Nothing,
    /// Our standard input. The console goes to our standard output as well.
    Ours,
}

/// A machine to emulate.
#[derive(Debug)]
pub(crate) struct Machine<'a> {
    pub topology: Topology,
    pub emulation: Emulation,
    pub arch: Arch,
    /// Whether the kernel can detect that it runs in a guest.
    pub hypervisor: bool,
    pub kernel: &'a Path,
    pub initramfs: &'a Path,
    pub command_line: &'a str,
    pub disk: Option<&'a Path>,
    /// The monitor that controls the machine, which then has room for more memory.
    pub monitor: Option<&'a MonitorSocket>,
    pub input: Input,
    /// The file for the first serial line.
    pub console: &'a Path,
    /// The file for the second serial line.
    pub channel: &'a Path,
    /// The file for QEMU's error messages.
    pub errors: &'a Path,
}

impl Machine<'_> {
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = board(self.arch, self.hypervisor);
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
        arguments.extend(channel_into(self.arch, self.channel));
        arguments.extend(self.emulation.arguments());
        let room = self.monitor.is_some() && self.arch.adds_memory();
        arguments.extend(self.topology.arguments(room));
        arguments.extend(self.monitor.iter().flat_map(|monitor| monitor.arguments()));
        if let Some(disk) = self.disk {
            let drive = format!("file={},if=virtio,format=raw,snapshot=on", comma(disk));
            arguments.extend(["-drive".to_owned(), drive]);
        }
        arguments
    }
}

/// The program that emulates an architecture.
pub(crate) fn emulator(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "qemu-system-x86_64",
        Arch::Arm64 => "qemu-system-aarch64",
    }
}

/// The options of QEMU that select the board and its CPUs.
fn board(arch: Arch, hypervisor: bool) -> Vec<String> {
    let words = match (arch, hypervisor) {
        (Arch::X86_64, true) => ["-machine", "q35", "-cpu", "max,hypervisor=on"],
        (Arch::X86_64, false) => ["-machine", "q35", "-cpu", "max,hypervisor=off"],
        // The older interrupt controller supports at most 8 CPUs.
        (Arch::Arm64, _) => ["-machine", "virt,gic-version=3", "-cpu", "max"],
    };
    words.map(str::to_owned).into()
}

/// The options of QEMU for a second serial line into `file`. The guest knows it as `Arch::channel`.
fn channel_into(arch: Arch, file: &Path) -> Vec<String> {
    match arch {
        Arch::X86_64 => vec!["-serial".to_owned(), format!("file:{}", comma(file))],
        // The board has one serial line only. The second one is on its PCI bus.
        Arch::Arm64 => vec![
            "-chardev".to_owned(),
            format!("file,id=channel,path={}", comma(file)),
            "-device".to_owned(),
            "pci-serial,chardev=channel".to_owned(),
        ],
    }
}

/// Escapes a path in an option, where a comma separates values.
fn comma(path: &Path) -> String {
    path.to_string_lossy().replace(',', ",,")
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
            monitor: None,
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
}
