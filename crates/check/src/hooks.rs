//! The functions of the model checker that the C code of the locks calls.

use std::ffi::{CStr, c_char, c_uint};

use lockworks::Settings;
use lockworks_litmus::Memory;

use crate::headers::{Had, Mark};
use crate::image;
use crate::layout;
use crate::lost;
use crate::machine::with;
use crate::site::{Order, Request, Site};
use crate::source;

/// Pushes the registers that a call preserves next to the caller's frames, and calls [`operate`].
/// The caller's later steps depend only on its registers and frames. Then sets the stack below them
/// to zero, and so the registers that a call does not preserve: neither the hook's own frames nor its
/// values may show in what the caller keeps later, and it keeps the upper bytes of a register of which
/// it has set one (SETcc). This is `lw_check_operate` of world.h.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub(crate) extern "C" fn lw_check_operate(_: &'static Site, _: usize, _: u64, _: u64) -> u64 {
    std::arch::naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "mov r8, rsp",
        "sub rsp, 8",
        "call {operate}",
        "mov rbx, rax",
        "call {clear}",
        "mov rax, rbx",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
        operate = sym operate,
        clear = sym clear,
    )
}

/// Sets the registers to zero that neither hold a result nor are preserved by a call.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn clear_registers() {
    std::arch::naked_asm!(
        "xor ecx, ecx",
        "xor edx, edx",
        "xor esi, esi",
        "xor edi, edi",
        "xor r8d, r8d",
        "xor r9d, r9d",
        "xor r10d, r10d",
        "xor r11d, r11d",
        "ret",
    )
}

/// Defines functions that C calls, which leave no values of their own in registers, as `lw_check_operate`
/// does. A result of less than 32 bits in C is a whole register here for the same reason.
macro_rules! hooks {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? $body:block)*) => {$(
        #[cfg(target_arch = "aarch64")]
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $type),*) $(-> $result)? $body

        #[cfg(target_arch = "x86_64")]
        const _: () = {
            extern "C" fn hook($($argument: $type),*) $(-> $result)? $body

            #[unsafe(naked)]
            #[unsafe(no_mangle)]
            extern "C" fn $name($(_: $type),*) $(-> $result)? {
                std::arch::naked_asm!(
                    "sub rsp, 8",
                    "call {hook}",
                    "add rsp, 8",
                    "jmp {registers}",
                    hook = sym hook,
                    registers = sym clear_registers,
                )
            }
        };
    )*};
}

/// Sets the unused part of the stack to zero, down to its end, and registers as [`clear_registers`] does.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn clear() {
    std::arch::naked_asm!(
        "sub rsp, 8",
        "call {stack_end}",
        "mov rdi, rax",
        "mov rcx, rsp",
        "sub rcx, rdi",
        "xor eax, eax",
        "rep stosb",
        "add rsp, 8",
        "jmp {registers}",
        stack_end = sym stack_end,
        registers = sym clear_registers,
    )
}

#[cfg(target_arch = "x86_64")]
extern "C" fn stack_end() -> usize {
    with(|machine| machine.stack_end())
}

/// Pushes the registers that a call preserves next to the caller's frames, and calls [`operate`].
/// The caller's later steps depend only on its registers and frames. This is `lw_check_operate` of
/// world.h.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn lw_check_operate(_: &'static Site, _: usize, _: u64, _: u64) -> u64 {
    std::arch::naked_asm!(
        "stp x29, x30, [sp, #-96]!",
        "stp x19, x20, [sp, #16]",
        "stp x21, x22, [sp, #32]",
        "stp x23, x24, [sp, #48]",
        "stp x25, x26, [sp, #64]",
        "stp x27, x28, [sp, #80]",
        "mov x4, sp",
        "bl {operate}",
        "ldp x19, x20, [sp, #16]",
        "ldp x21, x22, [sp, #32]",
        "ldp x23, x24, [sp, #48]",
        "ldp x25, x26, [sp, #64]",
        "ldp x27, x28, [sp, #80]",
        "ldp x29, x30, [sp], #96",
        "ret",
        operate = sym operate,
    )
}

extern "C" fn operate(site: &'static Site, address: usize, a: u64, b: u64, frames: usize) -> u64 {
    // Signed values arrive sign-extended, but memory holds only `size` bytes of them.
    let bytes = match site.size {
        0 => u64::MAX,
        size => u64::MAX >> (64 - 8 * u32::from(size)),
    };
    with(|machine| machine.keep_own_variables(site, address, a, b));
    let request = Request {
        site,
        address: image::canonical(address),
        a: a & bytes,
        b: b & bytes,
    };
    with(|machine| machine.operate(request, frames))
}

hooks! {
    fn lw_check_is_shared(p: usize) -> u64 {
        u64::from(image::is_shared(p))
    }

    fn lw_check_is_memory(p: usize) -> u64 {
        u64::from(image::is_memory(p))
    }

    // Is a read-modify-write with acquire and release a full barrier?
    fn lw_check_has_full_rmw() -> u64 {
        with(|machine| u64::from(machine.surroundings.memory.delays()))
    }

    // Does the model have C11's fence of this order, or Linux' smp_rmb() and smp_wmb()? Else it would take
    // the fence for a stronger one. c11 does so with those of Linux, as the reference says.
    fn lw_check_has_fence(order: Order, is_linux: bool) -> u64 {
        let has = match with(|machine| machine.surroundings.memory) {
            Memory::Lkmm | Memory::Lkmm62 => order == Order::SeqCst,
            Memory::Riscv => !is_linux || order == Order::SeqCst,
            Memory::Arm => !is_linux || order == Order::Acquire,
            _ => true,
        };
        u64::from(has)
    }

    fn lw_check_thread_number() -> u64 {
        with(|machine| machine.thread() as u64)
    }

    // The `index` has the number of a module and an offset.
    fn lw_check_thread_local(index: *const [usize; 2]) -> usize {
        // SAFETY: the linker has made it.
        let [module, offset] = unsafe { *index };
        image::thread_local(module, offset).unwrap_or_else(|| {
            // SAFETY: as the call that this one stands for.
            unsafe { source::thread_local_of_program(index) }
        })
    }

    fn lw_check_refuse(site: &'static Site, why: *const c_char) {
        // SAFETY: a string literal of accesses.c.
        let why = unsafe { CStr::from_ptr(why) }.to_str().expect("source text is ASCII");
        lost::refuse(format_args!("{}:{}: {why}", site.file(), site.line));
    }

    fn lw_check_slots() -> u32 {
        with(|machine| machine.slots())
    }

    fn lw_check_slot_wanted(slot: u32) -> usize {
        layout::slot_wanted(slot as usize)
    }

    fn lw_check_slot_reads(slot: u32) -> usize {
        layout::slot_reads(slot as usize)
    }

    fn lw_check_slot_held(slot: u32) -> usize {
        layout::slot_held(slot as usize)
    }

    fn lw_check_own_held() -> usize {
        with(|machine| machine.slot().map_or(0, layout::slot_held))
    }

    fn lw_check_own_reads() -> usize {
        with(|machine| machine.slot().map_or(0, layout::slot_reads))
    }

    fn lw_check_slot_enter() -> u32 {
        with(|machine| machine.slot_enter())
    }

    fn lw_check_slot_leave(slot: u32) {
        with(|machine| machine.slot_leave(slot));
    }

    fn lw_check_slot_nodes(slot: u32) -> usize {
        layout::slot_nodes(slot as usize)
    }

    fn lw_check_numa_node() -> u64 {
        with(|machine| u64::from(machine.numa_node()))
    }

    fn lw_check_node_queues(numa_node: u32) -> usize {
        with(|machine| machine.node_queues(numa_node as usize))
    }

    fn lw_check_node_queues_end() {
        with(|machine| machine.node_queues_end());
    }

    fn lw_check_forks() -> u64 {
        with(|machine| u64::from(machine.may_fork()))
    }

    fn lw_check_is_forked() -> u64 {
        with(|machine| u64::from(machine.is_forked()))
    }

    fn lw_check_slot_free(slot: u32) {
        with(|machine| machine.slot_free(slot as usize));
    }

    fn lw_check_parked_heads() -> usize {
        layout::parked_heads()
    }

    fn lw_check_identity(address: usize) -> u64 {
        with(|machine| machine.identity(address))
    }

    fn lw_check_is_priority() -> u64 {
        with(|machine| u64::from(machine.is_priority()))
    }

    fn lw_check_release_is_split() -> u64 {
        with(|machine| u64::from(machine.release_is_split()))
    }

    fn lw_check_waiters_park() -> u64 {
        with(|machine| u64::from(machine.waiters_park()))
    }

    fn lw_check_tunables() -> *const Settings {
        with(|machine| machine.tunables())
    }

    fn lw_check_lent_node(i: u32) -> usize {
        with(|machine| layout::lent(machine.thread(), i as usize))
    }

    // The `struct lw_check_slot` of a slot, from 1. It lies in the first node that the thread lends.
    fn lw_check_slot(slot: u32) -> usize {
        layout::lent(slot as usize - 1, 0)
    }

    fn lw_check_had(lock: c_uint) -> Had {
        with(|machine| machine.had(lock as usize))
    }

    fn lw_check_result(digit: u64) {
        with(|machine| machine.result(digit));
    }

    fn lw_check_broken(promise: *const c_char) {
        // SAFETY: the client's string literal.
        let promise = unsafe { CStr::from_ptr(promise) };
        let promise = promise.to_str().expect("source text is ASCII");
        with(|machine| machine.broken(promise));
    }
}

/// `lw_check_note` of client.h. Values that a lock function leaves on the stack must not show in the
/// frames of the next one.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
extern "C" fn lw_check_note(_: Mark, _: c_uint, _: c_uint) {
    std::arch::naked_asm!(
        "sub rsp, 8",
        "call {note}",
        "add rsp, 8",
        "jmp {clear}",
        note = sym note,
        clear = sym clear,
    )
}

#[cfg(target_arch = "aarch64")]
#[unsafe(no_mangle)]
extern "C" fn lw_check_note(mark: Mark, lock: c_uint, node: c_uint) {
    note(mark, lock, node);
}

extern "C" fn note(mark: Mark, lock: c_uint, node: c_uint) {
    with(|machine| machine.note(mark, lock as usize, node as usize));
}
