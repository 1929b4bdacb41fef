//! The calls on the stack of a thread, by the tables for exceptions in its executable and
//! libraries (`.eh_frame`), and by frame pointers where these have nothing.

use std::collections::HashMap;
use std::path::PathBuf;

use addr2line::gimli::{
    AArch64, BaseAddresses, CfaRule, EhFrame, EhFrameHdr, NativeEndian, Register, RegisterRule,
    RiscV, UnwindContext, UnwindSection, X86_64,
};
use object::{Object, ObjectSection, ObjectSegment, ReadCache};

use crate::record::{Module, Record};

/// The most calls that are followed.
const MOST: usize = 32;

/// The registers that are followed: the stack pointer, the frame pointer, the return address, and others
/// that a function must restore.
struct Registers {
    stack: Register,
    frame: Register,
    caller: Register,
    others: &'static [Register],
}

const REGISTERS: Registers = if cfg!(target_arch = "aarch64") {
    Registers {
        stack: AArch64::SP,
        frame: AArch64::X29,
        caller: AArch64::X30,
        others: &[AArch64::X19, AArch64::X20, AArch64::X21, AArch64::X22],
    }
} else if cfg!(target_arch = "riscv64") {
    Registers {
        stack: RiscV::SP,
        frame: RiscV::S0,
        caller: RiscV::RA,
        others: &[RiscV::S1, RiscV::S2, RiscV::S3, RiscV::S4],
    }
} else {
    Registers {
        stack: X86_64::RSP,
        frame: X86_64::RBP,
        caller: X86_64::RA,
        others: &[
            X86_64::RBX,
            X86_64::R12,
            X86_64::R13,
            X86_64::R14,
            X86_64::R15,
        ],
    }
};

/// Memory with a stack.
pub trait Memory {
    /// The word at an address. None: it cannot be read.
    fn word(&self, address: u64) -> Option<u64>;
}

/// The stack of a thread.
#[derive(Clone, Default, Debug)]
pub struct Stack {
    /// The address where the thread left its code, then the last byte of each call on the stack, from inside
    /// to outside.
    pub calls: Vec<u64>,
    /// The stack pointer in each of these functions.
    pub pointers: Vec<u64>,
}

/// The tables of all executables and libraries that were looked up so far.
#[derive(Default)]
pub struct Unwinder {
    modules: HashMap<PathBuf, Option<Tables>>,
    context: UnwindContext<usize>,
}

/// The tables of a file.
struct Tables {
    /// The offset in the file, the length and the address of each segment.
    segments: Vec<(u64, u64, u64)>,
    bases: BaseAddresses,
    frames: Vec<u8>,
    index: Option<Vec<u8>>,
}

type Known = HashMap<u16, u64>;

impl Unwinder {
    /// The stack of a thread at the instruction `code`, with this stack pointer, and with this frame pointer
    /// if it is known.
    pub fn stack(
        &mut self,
        record: &Record,
        memory: &impl Memory,
        mut code: u64,
        pointer: u64,
        frame: Option<u64>,
    ) -> Stack {
        let mut stack = Stack::default();
        let mut known: Known = HashMap::from([(REGISTERS.stack.0, pointer)]);
        known.extend(frame.map(|frame| (REGISTERS.frame.0, frame)));
        while stack.calls.len() < MOST {
            stack.calls.push(code);
            stack.pointers.push(known[&REGISTERS.stack.0]);
            let caller = self.caller(record, memory, code, &known);
            let Some((next, registers)) = caller else {
                break;
            };
            // A stack grows down, so that of a caller is above.
            if registers[&REGISTERS.stack.0] <= known[&REGISTERS.stack.0] {
                break;
            }
            known = registers;
            code = next.wrapping_sub(1);
        }
        stack
    }

    /// Where a function will return to, and the registers then.
    fn caller(
        &mut self,
        record: &Record,
        memory: &impl Memory,
        code: u64,
        known: &Known,
    ) -> Option<(u64, Known)> {
        let (module, offset) = record.module(code)?;
        let tables = self.modules.entry(module.path.clone());
        let tables = tables.or_insert_with(|| Tables::read(module));
        let by_table = tables
            .as_ref()
            .and_then(|tables| tables.caller(&mut self.context, memory, offset, known));
        let caller = by_table.or_else(|| by_frame_pointer(record, memory, known))?;
        record.module(caller.0).map(|_| caller)
    }
}

/// The caller of a function that keeps a frame pointer. If the register is not known, it is the first
/// address on the stack that points up to a frame: an address of the stack, below one of code.
fn by_frame_pointer(record: &Record, memory: &impl Memory, known: &Known) -> Option<(u64, Known)> {
    let stack = *known.get(&REGISTERS.stack.0)?;
    // On RISC-V, the frame pointer is above the two words of the frame.
    let below = if cfg!(target_arch = "riscv64") { 16 } else { 0 };
    let frame = match known.get(&REGISTERS.frame.0) {
        Some(frame) => frame.checked_sub(below)?,
        None => (0..512).map(|nth| stack + 8 * nth).find(|at| {
            let points_up = |to: u64| to > *at && to - at < 1 << 20;
            memory.word(*at).is_some_and(points_up)
                && memory
                    .word(at + 8)
                    .is_some_and(|code| record.module(code).is_some())
        })?,
    };
    (frame >= stack).then_some(())?;
    let (outer, code) = (memory.word(frame)?, memory.word(frame + 8)?);
    let registers = [(REGISTERS.stack.0, frame + 16), (REGISTERS.frame.0, outer)];
    Some((code, HashMap::from(registers)))
}

impl Tables {
    /// None: the file is gone, or has no tables.
    fn read(module: &Module) -> Option<Self> {
        let data = ReadCache::new(module.open()?);
        let file = object::File::parse(&data).ok()?;
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            Some((section.address(), section.data().ok()?.to_vec()))
        };
        let (address, frames) = section(".eh_frame")?;
        let mut bases = BaseAddresses::default().set_eh_frame(address);
        let index = section(".eh_frame_hdr").map(|(address, index)| {
            bases = bases.clone().set_eh_frame_hdr(address);
            index
        });
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        });
        Some(Self {
            segments: segments.collect(),
            bases,
            frames,
            index,
        })
    }

    /// Where the function at an offset in the file will return to, and the registers then. None: the tables
    /// do not say.
    fn caller(
        &self,
        context: &mut UnwindContext<usize>,
        memory: &impl Memory,
        offset: u64,
        known: &Known,
    ) -> Option<(u64, Known)> {
        let mut segments = self.segments.iter();
        let (begin, _, address) =
            segments.find(|(begin, size, _)| (*begin..begin + size).contains(&offset))?;
        let code = offset - begin + address;
        let frames = EhFrame::new(&self.frames, NativeEndian);
        let cie = EhFrame::cie_from_offset;
        let indexed = || {
            let index = EhFrameHdr::new(self.index.as_deref()?, NativeEndian);
            let index = index.parse(&self.bases, 8).ok()?;
            index
                .table()?
                .fde_for_address(&frames, &self.bases, code, cie)
                .ok()
        };
        let entry = indexed().or_else(|| frames.fde_for_address(&self.bases, code, cie).ok())?;
        let row = entry
            .unwind_info_for_address(&frames, &self.bases, context, code)
            .ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else {
            return None;
        };
        let frame = known.get(&register.0)?.wrapping_add_signed(offset);
        let before = |register: Register| match row.register(register) {
            None | Some(RegisterRule::SameValue) => known.get(&register.0).copied(),
            Some(RegisterRule::Offset(offset)) => memory.word(frame.wrapping_add_signed(offset)),
            Some(RegisterRule::ValOffset(offset)) => Some(frame.wrapping_add_signed(offset)),
            Some(RegisterRule::Register(other)) => known.get(&other.0).copied(),
            _ => None,
        };
        let mut registers = Known::new();
        for register in REGISTERS.others.iter().chain([&REGISTERS.frame]) {
            registers.extend(before(*register).map(|value| (register.0, value)));
        }
        registers.insert(REGISTERS.stack.0, frame);
        Some((before(REGISTERS.caller)?, registers))
    }
}
