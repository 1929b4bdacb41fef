//! The analysis for x86-64 and its calling convention.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register,
};

use crate::hooks;

/// The registers that a call preserves, in the order in which `lw_check_operate` leaves them on the
/// stack, lowest address first.
const PRESERVED: [Register; 6] = [
    Register::R15,
    Register::R14,
    Register::R13,
    Register::R12,
    Register::RBP,
    Register::RBX,
];

/// The registers that a call may change and in which it may get arguments.
const SCRATCH: [Register; 9] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
];

const WORD: usize = 8;
/// How far below its stack pointer a function may use the stack.
const RED_ZONE: i64 = 128;
/// The stack arguments that a function is taken to read if its code cannot be followed, in bytes.
const ARGUMENTS: i64 = 64;
/// The longest function that is followed, in instructions.
const LONGEST: usize = 4096;

/// The uses of the value in a byte of a register or of the stack. Zero: the value is dead. Bit i: when
/// the function returns, the value is in the same byte of `PRESERVED[i]`.
type Uses = u8;

/// The function itself uses the value.
const USED: Uses = 1 << 6;

/// The uses of all values at a point in a function.
#[derive(Clone, PartialEq)]
struct Values {
    /// The bytes of each register.
    registers: [[Uses; WORD]; 16],
    /// A byte of the stack each.
    slots: Box<[Uses]>,
    /// Where the first slot lies, relative to the stack pointer at the return address.
    lowest: i64,
}

/// The code cannot be followed.
struct Unknown;

impl Values {
    fn dead(slots: &Range<i64>) -> Self {
        Self {
            registers: [[0; WORD]; 16],
            slots: slots.clone().map(|_| 0).collect(),
            lowest: slots.start,
        }
    }

    fn merge(&mut self, other: &Self) {
        let pairs = self
            .registers
            .iter_mut()
            .flatten()
            .zip(other.registers.as_flattened());
        for (mine, theirs) in pairs.chain(self.slots.iter_mut().zip(&other.slots)) {
            *mine |= theirs;
        }
    }

    /// The bytes of a register that belong to it under this name.
    fn register(&mut self, register: Register) -> &mut [Uses] {
        let first = usize::from(is_high_byte(register));
        &mut self.registers[register.full_register().number()][first..first + register.size()]
    }

    /// The value in a register is overwritten; returns what would have become of it.
    fn overwrite_register(&mut self, register: Register) -> Vec<Uses> {
        let uses = self.register(register).to_vec();
        // A write to the lower half sets the upper half to zero.
        let written = match register.size() {
            4 => register.full_register(),
            _ => register,
        };
        self.register(written).fill(0);
        uses
    }

    fn use_register(&mut self, register: Register, uses: &[Uses]) {
        add(self.register(register), uses);
    }

    fn slots(&mut self, at: i64, size: usize) -> Result<&mut [Uses], Unknown> {
        let first = usize::try_from(at - self.lowest).map_err(|_| Unknown)?;
        self.slots.get_mut(first..first + size).ok_or(Unknown)
    }

    /// The value in these slots is overwritten; returns what would have become of it.
    fn overwrite_slots(&mut self, at: i64, size: usize) -> Result<Vec<Uses>, Unknown> {
        let slots = self.slots(at, size)?;
        let uses = slots.to_vec();
        slots.fill(0);
        Ok(uses)
    }

    fn use_slots(&mut self, at: i64, uses: &[Uses]) -> Result<(), Unknown> {
        add(self.slots(at, uses.len())?, uses);
        Ok(())
    }

    fn read_slots(&mut self, at: i64, size: usize) -> Result<(), Unknown> {
        self.slots(at, size)?.fill(USED);
        Ok(())
    }

    /// Everything that a function returns with.
    fn use_results(&mut self) {
        for (i, register) in PRESERVED.into_iter().enumerate() {
            self.use_register(register, &[1 << i; WORD]);
        }
        for register in [Register::RAX, Register::RDX] {
            self.use_register(register, &[USED; WORD]);
        }
    }
}

fn add(places: &mut [Uses], uses: &[Uses]) {
    for (place, uses) in places.iter_mut().zip(uses) {
        *place |= uses;
    }
}

fn is_high_byte(register: Register) -> bool {
    matches!(
        register,
        Register::AH | Register::BH | Register::CH | Register::DH
    )
}

/// An instruction of a function.
struct Step {
    instruction: Instruction,
    /// The stack pointer before the instruction, relative to that at the return address.
    stack: i64,
    next: Vec<u64>,
}

impl Step {
    /// Whether the function returns here, or ends with an operation.
    fn is_end(&self) -> bool {
        self.instruction.flow_control() == FlowControl::Return
            || is_last_operation(&self.instruction)
    }
}

/// The uses of the values in a frame behind a return address.
struct Frame {
    values: Values,
    /// Where the function's own return address lies, relative to the stack pointer at this one.
    end: i64,
}

impl Frame {
    /// The uses of a byte of the stack. Behind the last slot: none.
    fn uses(&self, at: usize) -> Uses {
        let slot = at as i64 - self.values.lowest;
        let uses = self.values.slots.get(slot as usize);
        uses.copied().unwrap_or(0)
    }

    /// Whether the byte is only kept for the caller. A compiler takes no address of that.
    fn saves_register(&self, at: usize) -> bool {
        let uses = self.uses(at);
        uses != 0 && uses & USED == 0
    }
}

/// The results of the analysis so far.
#[derive(Default)]
struct Liveness {
    /// By return address. None: the code cannot be followed.
    frames: HashMap<u64, Option<Rc<Frame>>>,
    /// The stack arguments of functions, in bytes, by the address of the function.
    arguments: HashMap<u64, i64>,
}

thread_local! {
    static LIVENESS: RefCell<Liveness> = RefCell::default();
}

/// Sets dead bytes to zero in the frames of a thread that `lw_check_operate` has suspended. They
/// begin at `address` with the registers that a call preserves.
pub(crate) fn clear_dead(frames: &mut [u8], address: usize) {
    if !frames.is_empty() {
        LIVENESS.with_borrow_mut(|liveness| liveness.clear_dead(frames, address));
    }
}

impl Liveness {
    fn clear_dead(&mut self, frames: &mut [u8], address: usize) {
        let word = |at: usize| {
            let bytes = frames.get(at..at + WORD)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        let saved = PRESERVED.len() * WORD;
        // The frames that are understood, and where each begins.
        let mut known: Vec<(Rc<Frame>, Range<usize>)> = Vec::new();
        let mut begin = saved + WORD;
        while let Some(return_address) = word(begin - WORD)
            && let Some(frame) = self.frame(return_address)
            && let Ok(end) = usize::try_from(begin as i64 + frame.end)
            && begin <= end
            && end + WORD <= frames.len()
        {
            known.push((frame, begin..end));
            begin = end + WORD;
        }

        let mut live = vec![false; frames.len()];
        live[begin - WORD..].fill(true);
        live[saved..saved + WORD].fill(true);
        // For each byte of a register, which registers' bytes there the caller uses, one bit each. Of the
        // outermost frame's caller, nothing is known. Saved registers lie at multiples of their size.
        let mut wanted = [Uses::MAX; WORD];
        for (frame, place) in known.iter().rev() {
            live[place.end..place.end + WORD].fill(true);
            for (at, live) in live.iter_mut().enumerate().skip(place.start) {
                *live |= frame.uses(at - place.start) & wanted[at % WORD] != 0;
            }
            wanted = std::array::from_fn(|byte| {
                let registers = PRESERVED.iter().enumerate();
                registers.fold(USED, |all, (i, register)| {
                    let uses = frame.values.registers[register.number()][byte];
                    all | Uses::from(uses & wanted[byte] != 0) << i
                })
            });
        }
        #[cfg(test)]
        if super::BLIND.get() {
            wanted.fill(0);
        }
        for (i, live) in live[..saved].chunks_mut(WORD).enumerate() {
            let bytes = live.iter_mut().zip(wanted);
            bytes.for_each(|(live, wanted)| *live = wanted & 1 << i != 0);
        }

        // A function that has the address of a frame may read all of it but the saved registers. Of an
        // address, all bytes are live.
        let mut open = known.iter().collect::<Vec<_>>();
        loop {
            let pointers: Vec<usize> = (0..frames.len() / WORD)
                .map(|i| i * WORD)
                .filter(|at| live[*at..at + WORD].iter().all(|live| *live))
                .filter_map(|at| (word(at)? as usize).checked_sub(address))
                .collect();
            let before = open.len();
            open.retain(|(frame, place)| {
                let seen = pointers.iter().any(|at| place.contains(at));
                if seen {
                    for at in place.clone() {
                        live[at] |= !frame.saves_register(at - place.start);
                    }
                }
                !seen
            });
            if open.len() == before {
                break;
            }
        }
        for (byte, live) in frames.iter_mut().zip(live) {
            if !live {
                *byte = 0;
            }
        }
    }

    fn frame(&mut self, return_address: u64) -> Option<Rc<Frame>> {
        if let Some(known) = self.frames.get(&return_address) {
            return known.clone();
        }
        let frame = self.analyse(return_address).ok().map(Rc::new);
        self.frames.insert(return_address, frame.clone());
        frame
    }

    fn analyse(&mut self, return_address: u64) -> Result<Frame, Unknown> {
        let code = follow(return_address)?;
        let mut ends = code
            .values()
            .filter(|step| step.is_end())
            .map(|step| step.stack);
        let end = ends.next().ok_or(Unknown)?;
        if ends.any(|other| other != end) {
            return Err(Unknown);
        }

        let deepest = code.values().map(|step| step.stack).min().unwrap_or(0);
        let slots = deepest - RED_ZONE..end + WORD as i64 + ARGUMENTS;
        let mut factory = InstructionInfoFactory::new();
        let mut before: HashMap<u64, Values> = HashMap::new();
        // Later instructions first, since values flow from there. Until nothing changes any more.
        loop {
            let mut changed = false;
            for (address, step) in code.iter().rev() {
                let mut values = Values::dead(&slots);
                for next in &step.next {
                    if let Some(after) = before.get(next) {
                        values.merge(after);
                    }
                }
                self.undo(step, end, &mut values, &mut factory)?;
                if before.get(address) != Some(&values) {
                    before.insert(*address, values);
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let values = before.remove(&return_address).ok_or(Unknown)?;
        Ok(Frame { values, end })
    }

    /// Turns the uses of the values after an instruction into the uses before it.
    fn undo(
        &mut self,
        step: &Step,
        end: i64,
        values: &mut Values,
        factory: &mut InstructionInfoFactory,
    ) -> Result<(), Unknown> {
        let Step {
            instruction, stack, ..
        } = step;
        let stack = *stack;
        match instruction.flow_control() {
            FlowControl::Return => {
                values.use_results();
                return Ok(());
            }
            FlowControl::Exception | FlowControl::Interrupt => return Ok(()),
            _ if is_last_operation(instruction) => {
                values.use_results();
                return self.call(jump_target(instruction), stack + WORD as i64, values);
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                let target = call_target(instruction);
                self.call(target, stack, values)?;
                return match target {
                    Some(_) => Ok(()),
                    None => use_operands(instruction, stack, end, values, factory),
                };
            }
            _ => {}
        }
        if moves_stack_pointer(instruction).is_some() {
            return Ok(());
        }
        // Copies: what becomes of the copy becomes of the original.
        let register = |operand| {
            let register = instruction.op_register(operand);
            let holds_value = register.is_gpr() && register.full_register() != Register::RSP;
            (instruction.op_kind(operand) == OpKind::Register && holds_value).then_some(register)
        };
        let slot = |operand| {
            (instruction.op_kind(operand) == OpKind::Memory
                && instruction.memory_base() == Register::RSP
                && instruction.memory_index() == Register::None)
                .then(|| stack + instruction.memory_displacement64() as i64)
        };
        let word = WORD as i64;
        match instruction.mnemonic() {
            Mnemonic::Push if let Some(from) = register(0) => {
                let uses = values.overwrite_slots(stack - word, WORD)?;
                values.use_register(from, &uses);
                Ok(())
            }
            Mnemonic::Pop if let Some(to) = register(0) => {
                let uses = values.overwrite_register(to);
                values.use_slots(stack, &uses)
            }
            Mnemonic::Mov if let (Some(to), Some(from)) = (register(0), register(1)) => {
                let uses = values.overwrite_register(to);
                values.use_register(from, &uses);
                Ok(())
            }
            Mnemonic::Mov if let (Some(to), Some(at)) = (register(0), slot(1)) => {
                let uses = values.overwrite_register(to);
                values.use_slots(at, &uses)
            }
            Mnemonic::Mov if let (Some(at), Some(from)) = (slot(0), register(1)) => {
                let uses = values.overwrite_slots(at, from.size())?;
                values.use_register(from, &uses);
                Ok(())
            }
            // Spreads the carry flag: what was in the register does not matter.
            Mnemonic::Sbb
                if let (Some(to), Some(from)) = (register(0), register(1))
                    && to == from =>
            {
                values.overwrite_register(to);
                Ok(())
            }
            _ => use_operands(instruction, stack, end, values, factory),
        }
    }

    /// The uses of values before the call of a function, with the stack pointer at `stack`.
    fn call(
        &mut self,
        target: Option<u64>,
        stack: i64,
        values: &mut Values,
    ) -> Result<(), Unknown> {
        for register in SCRATCH {
            values.register(register).fill(USED);
        }
        // The function may overwrite everything below the stack pointer.
        let below = usize::try_from(stack - values.lowest).map_err(|_| Unknown)?;
        values.slots.get_mut(..below).ok_or(Unknown)?.fill(0);
        let arguments = target.map_or(ARGUMENTS, |target| self.arguments(target));
        values.read_slots(stack, arguments as usize)
    }

    /// The number of bytes above its return address that a function may read.
    fn arguments(&mut self, function: u64) -> i64 {
        *self.arguments.entry(function).or_insert_with(|| {
            if is_operate(function) {
                return 0;
            }
            let Ok(code) = follow(function) else {
                return ARGUMENTS;
            };
            let mut factory = InstructionInfoFactory::new();
            let mut bytes = 0;
            for step in code.values() {
                let instruction = &step.instruction;
                if instruction.flow_control() != FlowControl::Next
                    || moves_stack_pointer(instruction).is_some()
                {
                    continue;
                }
                if uses_stack_pointer(instruction) && !points_into_frame(step) {
                    return ARGUMENTS;
                }
                for memory in factory.info(instruction).used_memory() {
                    if memory.base() != Register::RSP {
                        continue;
                    }
                    if memory.index() != Register::None {
                        return ARGUMENTS;
                    }
                    let to = step.stack
                        + memory.displacement() as i64
                        + memory.memory_size().size() as i64;
                    bytes = bytes.max(to - WORD as i64);
                }
            }
            bytes
        })
    }
}

/// The instructions of a function that can run after `start`, by address.
fn follow(start: u64) -> Result<BTreeMap<u64, Step>, Unknown> {
    let mut code: BTreeMap<u64, Step> = BTreeMap::new();
    let mut open = vec![(start, 0)];
    while let Some((address, stack)) = open.pop() {
        if let Some(known) = code.get(&address) {
            if known.stack != stack {
                return Err(Unknown);
            }
            continue;
        }
        let instruction = decode(address)?;
        let behind = instruction.next_ip();
        let next = match instruction.flow_control() {
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => vec![behind],
            FlowControl::ConditionalBranch => vec![behind, instruction.near_branch_target()],
            _ if is_last_operation(&instruction) => vec![],
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => {
                vec![jump_target(&instruction).ok_or(Unknown)?]
            }
            FlowControl::Return | FlowControl::Exception | FlowControl::Interrupt => vec![],
            FlowControl::XbeginXabortXend => return Err(Unknown),
        };
        let moved = match instruction.flow_control() {
            FlowControl::Next => moves_stack_pointer(&instruction)
                .unwrap_or_else(|| instruction.stack_pointer_increment().into()),
            _ => 0,
        };
        open.extend(next.iter().map(|next| (*next, stack + moved)));
        code.insert(
            address,
            Step {
                instruction,
                stack,
                next,
            },
        );
        if code.len() > LONGEST {
            return Err(Unknown);
        }
    }
    Ok(code)
}

fn decode(address: u64) -> Result<Instruction, Unknown> {
    const LONGEST: usize = 15;
    // SAFETY: the address is in the code of this program, since a thread returns to it or control
    // flows there. Some bytes behind the last instruction of a program are mapped too.
    let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, LONGEST) };
    let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
    if instruction.code() == Code::INVALID || changes_stack_pointer_at_will(&instruction) {
        return Err(Unknown);
    }
    Ok(instruction)
}

/// The constant that an instruction adds to the stack pointer, if that is all that it does.
fn moves_stack_pointer(instruction: &Instruction) -> Option<i64> {
    if instruction.op0_kind() != OpKind::Register || instruction.op0_register() != Register::RSP {
        return None;
    }
    match instruction.mnemonic() {
        Mnemonic::Add => Some(instruction.try_immediate(1).ok()? as i64),
        Mnemonic::Sub => Some(-(instruction.try_immediate(1).ok()? as i64)),
        Mnemonic::Lea
            if instruction.memory_base() == Register::RSP
                && instruction.memory_index() == Register::None =>
        {
            Some(instruction.memory_displacement64() as i64)
        }
        _ => None,
    }
}

/// Whether an instruction sets the stack pointer to a value that the analysis cannot know.
fn changes_stack_pointer_at_will(instruction: &Instruction) -> bool {
    let writes = instruction.op_count() > 0
        && instruction.op0_kind() == OpKind::Register
        && instruction.op0_register().full_register() == Register::RSP
        && !matches!(
            instruction.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push
        );
    instruction.mnemonic() == Mnemonic::Leave
        || writes && moves_stack_pointer(instruction).is_none()
}

/// Whether an instruction reads the stack pointer otherwise than to use the slots at a constant offset.
/// With the address of a slot, a function may use the whole frame.
fn uses_stack_pointer(instruction: &Instruction) -> bool {
    let operand = (0..instruction.op_count()).any(|operand| {
        instruction.op_kind(operand) == OpKind::Register
            && instruction.op_register(operand).full_register() == Register::RSP
    });
    let takes_address = instruction.mnemonic() == Mnemonic::Lea
        && [instruction.memory_base(), instruction.memory_index()].contains(&Register::RSP);
    operand || takes_address
}

/// Whether an instruction of a function computes the address of a slot in the function's own frame, which
/// is below the function's return address.
fn points_into_frame(step: &Step) -> bool {
    let instruction = &step.instruction;
    instruction.mnemonic() == Mnemonic::Lea
        && step.stack + (instruction.memory_displacement64() as i64) < 0
}

/// Whether this is the function that asks for an operation. Its code takes the address of the caller's
/// registers and frames, but only to tell local states apart. It restores the registers, and its
/// arguments are in registers.
fn is_operate(function: u64) -> bool {
    function == hooks::lw_check_operate as *const () as u64
}

/// Whether an instruction jumps to an operation, after which the function returns.
fn is_last_operation(instruction: &Instruction) -> bool {
    instruction.flow_control() == FlowControl::UnconditionalBranch
        && is_operate(instruction.near_branch_target())
}

/// The target of a jump; None if the jump reads it from a register or computes it.
fn jump_target(instruction: &Instruction) -> Option<u64> {
    match instruction.flow_control() {
        FlowControl::UnconditionalBranch => Some(instruction.near_branch_target()),
        _ => constant_pointer(instruction),
    }
}

/// The function that a call calls; None if the call reads it from a register, and for a system call.
fn call_target(instruction: &Instruction) -> Option<u64> {
    match instruction.flow_control() {
        FlowControl::Call if !instruction.is_call_near() => None,
        FlowControl::Call => Some(instruction.near_branch_target()),
        _ => constant_pointer(instruction),
    }
}

/// The pointer that an instruction reads from a place that does not change: the global offset table.
fn constant_pointer(instruction: &Instruction) -> Option<u64> {
    instruction.is_ip_rel_memory_operand().then(|| {
        let place = instruction.ip_rel_memory_address() as *const u64;
        // SAFETY: the instruction reads from this address, which does not depend on anything.
        unsafe { place.read_unaligned() }
    })
}

/// The uses of values before an instruction that computes with its operands.
fn use_operands(
    instruction: &Instruction,
    stack: i64,
    end: i64,
    values: &mut Values,
    factory: &mut InstructionInfoFactory,
) -> Result<(), Unknown> {
    let info = factory.info(instruction);
    let overwrites = |access| access == OpAccess::Write;
    let reads = |access| !matches!(access, OpAccess::Write | OpAccess::CondWrite);
    let registers = || {
        let registers = info.used_registers().iter();
        registers.filter(|used| {
            let register = used.register();
            register.is_gpr() && register.full_register() != Register::RSP
        })
    };
    let slots = || {
        let memory = info.used_memory().iter();
        memory.filter(|used| used.base() == Register::RSP)
    };
    let frame = usize::try_from(end - stack).map_err(|_| Unknown)?;
    for used in registers().filter(|used| overwrites(used.access())) {
        values.overwrite_register(used.register());
    }
    for used in slots().filter(|used| overwrites(used.access())) {
        if used.index() == Register::None {
            let at = stack + used.displacement() as i64;
            values.overwrite_slots(at, used.memory_size().size())?;
        }
    }
    for used in slots().filter(|used| reads(used.access())) {
        if used.index() == Register::None {
            let at = stack + used.displacement() as i64;
            values.read_slots(at, used.memory_size().size())?;
        } else {
            values.read_slots(stack, frame)?;
        }
    }
    for used in registers().filter(|used| reads(used.access())) {
        values.register(used.register()).fill(USED);
    }
    if uses_stack_pointer(instruction) {
        values.read_slots(stack, frame)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::arch::naked_asm;

    use super::*;

    /// The code behind a call in a function with two slots, which has saved rbx: reads the lower slot
    /// and r12, and writes r13.
    #[unsafe(naked)]
    extern "C" fn reads_the_lower_slot() {
        naked_asm!(
            "mov r13, [rsp]",
            "lea rax, [r13 + r12]",
            "add rsp, 16",
            "pop rbx",
            "ret",
        )
    }

    /// Reads neither slot: the carry flag becomes the value of r12, and rbx is restored.
    #[unsafe(naked)]
    extern "C" fn spreads_the_carry_flag() {
        naked_asm!("sbb r12d, r12d", "add rsp, 16", "pop rbx", "ret")
    }

    /// Reads the upper slot on one of two paths.
    #[unsafe(naked)]
    extern "C" fn may_read_the_upper_slot() {
        naked_asm!(
            "test eax, eax",
            "je 2f",
            "mov rax, [rsp + 8]",
            "2:",
            "add rsp, 16",
            "pop rbx",
            "ret",
        )
    }

    /// Overwrites the lower slot before it calls a function that reads it as its argument.
    #[unsafe(naked)]
    extern "C" fn passes_the_lower_slot() {
        naked_asm!(
            "mov [rsp], rax",
            "call {callee}",
            "add rsp, 16",
            "pop rbx",
            "ret",
            callee = sym reads_an_argument,
        )
    }

    /// Calls a function that reads the lower slot as its argument.
    #[unsafe(naked)]
    extern "C" fn passes_on_the_lower_slot() {
        naked_asm!(
            "call {callee}",
            "add rsp, 16",
            "pop rbx",
            "ret",
            callee = sym reads_an_argument,
        )
    }

    /// Asks for an operation, which gets no slot.
    #[unsafe(naked)]
    extern "C" fn asks_for_an_operation() {
        naked_asm!(
            "call {operate}",
            "add rsp, 16",
            "pop rbx",
            "ret",
            operate = sym hooks::lw_check_operate,
        )
    }

    /// Ends with an operation, which preserves the registers of the caller.
    #[unsafe(naked)]
    extern "C" fn ends_with_an_operation() {
        naked_asm!(
            "add rsp, 16",
            "pop rbx",
            "jmp {operate}",
            operate = sym hooks::lw_check_operate,
        )
    }

    #[unsafe(naked)]
    extern "C" fn reads_an_argument() {
        naked_asm!("mov rax, [rsp + 8]", "ret")
    }

    /// Reads through an address that it has kept in rbp.
    #[unsafe(naked)]
    extern "C" fn reads_by_address() {
        naked_asm!("mov rax, [rbp]", "add rsp, 16", "pop rbx", "ret")
    }

    /// Computes the address of a slot.
    #[unsafe(naked)]
    extern "C" fn takes_the_address() {
        naked_asm!(
            "lea rdi, [rsp]",
            "mov rax, [rdi + 8]",
            "add rsp, 16",
            "pop rbx",
            "ret",
        )
    }

    /// Copies the stack pointer, and reads a slot through the copy.
    #[unsafe(naked)]
    extern "C" fn copies_the_stack_pointer() {
        naked_asm!(
            "mov rdi, rsp",
            "mov rax, [rdi + 8]",
            "add rsp, 16",
            "pop rbx",
            "ret",
        )
    }

    /// A caller that uses rbx, and one that does not, which nobody has called.
    #[unsafe(naked)]
    extern "C" fn uses_rbx() {
        naked_asm!("mov rax, rbx", "xor ebx, ebx", "ud2", "ret")
    }

    #[unsafe(naked)]
    extern "C" fn overwrites_rbx() {
        naked_asm!("xor ebx, ebx", "xor r12d, r12d", "ret")
    }

    #[unsafe(naked)]
    extern "C" fn jumps_somewhere() {
        naked_asm!("jmp rax")
    }

    const ADDRESS: usize = 0x7000;

    /// The words of a stack that are live: r15 to rbx are 0 to 5, the return address is 6, the slots
    /// are 7 and 8, the saved rbx is 9.
    fn live(function: extern "C" fn(), caller: extern "C" fn(), rbp: u64) -> Vec<usize> {
        let mut words: Vec<u64> = (1..=12).collect();
        words[4] = rbp;
        words[6] = function as usize as u64;
        words[10] = caller as usize as u64;
        words[11] = jumps_somewhere as *const () as u64;
        let mut frames: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        clear_dead(&mut frames, ADDRESS);
        let kept = frames.chunks(WORD).enumerate();
        kept.filter(|(_, word)| word.iter().any(|byte| *byte != 0))
            .map(|(i, _)| i)
            .collect()
    }

    // The registers r14, r15 and rbp belong to the outermost caller, so they are live.
    #[test]
    fn values_that_are_read_are_live() {
        for (function, slots) in [
            (
                reads_the_lower_slot as extern "C" fn(),
                vec![0, 1, 3, 4, 6, 7],
            ),
            (spreads_the_carry_flag, vec![0, 1, 2, 4, 6]),
            (may_read_the_upper_slot, vec![0, 1, 2, 4, 6, 8]),
            (passes_the_lower_slot, vec![0, 1, 2, 4, 6]),
            (passes_on_the_lower_slot, vec![0, 1, 2, 4, 6, 7]),
            (asks_for_an_operation, vec![0, 1, 2, 4, 6]),
            (ends_with_an_operation, vec![0, 1, 2, 4, 6]),
            (takes_the_address, vec![0, 1, 2, 4, 6, 7, 8, 9]),
            (copies_the_stack_pointer, vec![0, 1, 2, 4, 6, 7, 8, 9]),
        ] {
            let expected: Vec<usize> = slots.into_iter().chain([10, 11]).collect();
            assert_eq!(live(function, overwrites_rbx, 5), expected);
        }
    }

    #[test]
    fn a_saved_register_is_live_if_the_caller_uses_it() {
        let with_rbx = live(may_read_the_upper_slot, uses_rbx, 5);
        let without = live(may_read_the_upper_slot, overwrites_rbx, 5);
        assert!(with_rbx.contains(&9) && !without.contains(&9));
    }

    #[test]
    fn a_frame_is_live_if_a_live_value_points_into_it() {
        let slot = (ADDRESS + 7 * WORD) as u64;
        let live = live(reads_by_address, overwrites_rbx, slot);
        assert!([7, 8].iter().all(|word| live.contains(word)));
        assert!(
            !live.contains(&9),
            "saved for a caller that does not use it"
        );
    }

    #[test]
    fn everything_is_live_if_the_code_cannot_be_followed() {
        let all: Vec<usize> = (0..12).collect();
        assert_eq!(live(jumps_somewhere, overwrites_rbx, 5), all);
    }
}
