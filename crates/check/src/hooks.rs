//! The functions of the model checker that the C code of the locks calls.

use std::ffi::{CStr, c_char, c_uint};

use lockworks::Settings;

use crate::headers::{Had, Mark};
use crate::layout;
use crate::machine::with;
use crate::site::{Request, Site};

/// Pushes the registers that a call preserves next to the caller's frames, and calls [`operate`].
/// The caller's later steps depend only on its registers and frames. Then sets the stack below them
/// to zero, so that the hook's own frames do not show in frames that come later. This is
/// `lw_check_operate` of world.h.
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
        clear = sym clear_stack,
    )
}

/// Sets the unused part of the stack to zero, down to its end.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn clear_stack() {
    std::arch::naked_asm!(
        "sub rsp, 8",
        "call {stack_end}",
        "mov rdi, rax",
        "mov rcx, rsp",
        "sub rcx, rdi",
        "xor eax, eax",
        "rep stosb",
        "add rsp, 8",
        "ret",
        stack_end = sym stack_end,
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
    let request = Request {
        site,
        address,
        a: a & bytes,
        b: b & bytes,
    };
    with(|machine| machine.operate(request, frames))
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_slots() -> u32 {
    with(|machine| machine.slots())
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_slot_wanted(slot: u32) -> usize {
    layout::slot_wanted(slot as usize)
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_slot_reads(slot: u32) -> usize {
    layout::slot_reads(slot as usize)
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_slot_held(slot: u32) -> usize {
    layout::slot_held(slot as usize)
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_own_held() -> usize {
    with(|machine| machine.slot().map_or(0, layout::slot_held))
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_own_reads() -> usize {
    with(|machine| machine.slot().map_or(0, layout::slot_reads))
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_slot_enter() -> u32 {
    with(|machine| machine.slot_enter())
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_slot_leave(slot: u32) {
    with(|machine| machine.slot_leave(slot));
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_slot_nodes(slot: u32) -> usize {
    layout::slot_nodes(slot as usize)
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_numa_node() -> u16 {
    with(|machine| machine.numa_node())
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_node_queues(numa_node: u32) -> usize {
    with(|machine| machine.node_queues(numa_node as usize))
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_node_queues_end() {
    with(|machine| machine.node_queues_end());
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_forks() -> bool {
    with(|machine| machine.may_fork())
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_is_forked() -> bool {
    with(|machine| machine.is_forked())
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_slot_free(slot: u32) {
    with(|machine| machine.slot_free(slot as usize));
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_parked_heads() -> usize {
    layout::parked_heads()
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_identity(address: usize) -> u64 {
    with(|machine| machine.identity(address))
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_is_priority() -> bool {
    with(|machine| machine.is_priority())
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_release_is_split() -> bool {
    with(|machine| machine.release_is_split())
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_waiters_park() -> bool {
    with(|machine| machine.waiters_park())
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_tunables() -> *const Settings {
    with(|machine| machine.tunables())
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_lent_node(i: u32) -> usize {
    with(|machine| layout::lent(machine.thread(), i as usize))
}

/// The `struct lw_check_slot` of a slot, from 1. It lies in the first node that the thread lends.
#[unsafe(no_mangle)]
extern "C" fn lw_check_slot(slot: u32) -> usize {
    layout::lent(slot as usize - 1, 0)
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
        clear = sym clear_stack,
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

#[unsafe(no_mangle)]
extern "C" fn lw_check_had(lock: c_uint) -> Had {
    with(|machine| machine.had(lock as usize))
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_result(digit: u64) {
    with(|machine| machine.result(digit));
}

#[unsafe(no_mangle)]
extern "C" fn lw_check_broken(promise: *const c_char) {
    // SAFETY: the client's string literal.
    let promise = unsafe { CStr::from_ptr(promise) };
    let promise = promise.to_str().expect("source text is ASCII");
    with(|machine| machine.broken(promise));
}
