//! Which bytes of a suspended thread's frames its code may still read.
//!
//! Compilers leave dead values in registers and stack slots. Two local states that differ in these
//! only behave alike, so a search that told them apart would explore everything behind them twice.
//! How often that happens would depend on the compiler's choice of registers.
//!
//! The liveness of registers and stack slots at a return address is computed from the machine code
//! behind it, backwards along all paths to the return of the function. A callee also saves and
//! restores registers of its caller. Whether such a value is live is known only when the caller is:
//! so the analysis of a function says where each of its caller's registers lies, and the frames of a
//! stack are judged from the outermost to the innermost.
//!
//! Where the analysis finds code that it does not follow, it takes everything to be live. That costs
//! states and never loses any.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::clear_dead;

/// On other processors, everything is taken to be live.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn clear_dead(_frames: &mut [u8], _address: usize) {}

#[cfg(test)]
thread_local! {
    /// A deliberate mistake: takes the values of all registers to be dead.
    pub(crate) static BLIND: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}
