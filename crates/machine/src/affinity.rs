//! The CPUs that threads may use, on machines with any number of them.

use std::io;

use nix::errno::Errno;
use nix::libc;

/// The most CPUs that any set can have. Linux has 8,192 at most.
const MOST: usize = 1 << 20;

/// The number of CPUs in a word of a set.
const WORD: usize = libc::c_ulong::BITS as usize;

/// The CPUs that this thread may use, in order.
///
/// # Errors
/// Those of `sched_getaffinity`, which no running thread should see.
pub fn allowed() -> io::Result<Vec<usize>> {
    let mut set: Vec<libc::c_ulong> = vec![0; 1024 / WORD];
    loop {
        let bytes = size_of_val(&set[..]);
        // SAFETY: the kernel writes at most `bytes` bytes to the set, and all words are valid.
        let result = unsafe { libc::sched_getaffinity(0, bytes, set.as_mut_ptr().cast()) };
        match Errno::result(result) {
            Ok(_) => break,
            // The kernel may have more CPUs than the set has bits.
            Err(Errno::EINVAL) if set.len() * WORD < MOST => set.resize(2 * set.len(), 0),
            Err(error) => return Err(error.into()),
        }
    }
    let has = |&cpu: &usize| set[cpu / WORD] >> (cpu % WORD) & 1 != 0;
    Ok((0..set.len() * WORD).filter(has).collect())
}

/// Whether this process may use so many CPUs still as before a measurement. If a CPU is taken away, its
/// threads go on elsewhere, and what they measure is that of neither number.
///
/// # Errors
/// If the number of CPUs is another one, or those of [`allowed`].
pub fn check(before: usize) -> io::Result<()> {
    match allowed()?.len() {
        now if now == before => Ok(()),
        now => Err(io::Error::other(format!(
            "this process could use {before} CPUs, and may use {now} now; measure again"
        ))),
    }
}

/// Binds this thread to a CPU.
///
/// # Errors
/// If this process may not, or no longer, use the CPU.
pub fn bind(cpu: usize) -> io::Result<()> {
    let mut set: Vec<libc::c_ulong> = vec![0; cpu / WORD + 1];
    set[cpu / WORD] = 1 << (cpu % WORD);
    // SAFETY: the kernel reads as many bytes as the set has.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&set[..]), set.as_ptr().cast()) };
    Errno::result(result).map(drop).map_err(|error| {
        let why = format!(
            "this process may not use CPU {cpu}, or no longer: {}",
            error.desc()
        );
        io::Error::new(io::Error::from(error).kind(), why)
    })
}

#[cfg(test)]
mod tests {
    use super::{allowed, bind, check};

    #[test]
    fn a_bound_thread_may_use_one_cpu() {
        let last = *allowed().expect("some CPUs").last().expect("one at least");
        bind(last).expect("it may be used");
        assert_eq!(allowed().expect("one CPU"), [last]);
        assert!(check(1).is_ok());
        let fewer = check(2).expect_err("it may use one");
        assert!(fewer.to_string().contains("2 CPUs"), "{fewer}");
        let missing = bind(100_000).expect_err("no machine has so many");
        assert!(missing.to_string().contains("CPU 100000"), "{missing}");
    }
}
