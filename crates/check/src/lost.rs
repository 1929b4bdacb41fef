//! Lock code that does not come back to the engine: it loops without an operation, or a signal ends it, as
//! where it accesses memory itself. One line then says so, and the process ends.

use std::fmt;
use std::io::{Cursor, Write, stderr};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use crate::layout::{self, Region};
use crate::machine;
use crate::site::Site;

/// The exit status for input that cannot be checked.
const BAD_INPUT: i32 = 2;
/// The exit status when a limit ends a check.
const UNFINISHED: i32 = 3;
/// The time between two looks at all machines.
const TICK: Duration = Duration::from_secs(1);
/// The looks at which a thread must be found in one run between two operations: code does this in
/// microseconds.
const MOST_TICKS: u32 = 5;

static BEGIN: Once = Once::new();

/// Where the running thread of a machine is.
#[derive(Default)]
pub(crate) struct Whereabouts {
    /// The number of times that lock code has been entered and left: odd while it runs.
    switches: AtomicU64,
    /// The last operation of the running thread; NULL if it has just begun.
    last: AtomicPtr<Site>,
}

impl Whereabouts {
    /// Where the thread of a machine will be, which is looked at from now on.
    pub(crate) fn new() -> Arc<Self> {
        BEGIN.call_once(begin);
        let own = Arc::<Self>::default();
        let mut all = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Watched {
            at: Arc::downgrade(&own),
            switches: 0,
            ticks: 0,
        });
        own
    }

    /// The engine switches to lock code, or back.
    pub(crate) fn switch(&self) {
        self.switches.fetch_add(1, Ordering::Relaxed);
    }

    /// The thread begins.
    pub(crate) fn begin(&self) {
        self.last.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// The thread goes on after an operation.
    pub(crate) fn go_on(&self, site: &'static Site) {
        self.last
            .store(ptr::from_ref(site).cast_mut(), Ordering::Relaxed);
    }
}

impl fmt::Display for Whereabouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // SAFETY: NULL or a constant.
        match unsafe { self.last.load(Ordering::Relaxed).as_ref() } {
            None => f.write_str("before its first operation"),
            Some(site) => write!(
                f,
                "after {site} ({}:{}, {})",
                site.file(),
                site.line,
                site.function()
            ),
        }
    }
}

/// A function of a source makes locks of memory, before the check begins.
static INITIALISES: AtomicBool = AtomicBool::new(false);

/// Notes that such a function begins or has ended.
pub(crate) fn initialises(begins: bool) {
    BEGIN.call_once(begin);
    INITIALISES.store(begins, Ordering::Relaxed);
}

/// Says in one line why the check ends, and ends the process.
pub(crate) fn refuse(why: fmt::Arguments) -> ! {
    let _ = writeln!(stderr(), "lockworks: not checked: {why}");
    // SAFETY: nothing of the process is needed any more, and another thread may hold locks of it.
    unsafe { libc::_exit(BAD_INPUT) }
}

/// A machine, as it was at the last look.
struct Watched {
    at: Weak<Whereabouts>,
    switches: u64,
    /// The number of looks since the last switch.
    ticks: u32,
}

static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());

fn begin() {
    thread::spawn(|| {
        loop {
            thread::sleep(TICK);
            look();
        }
    });
    for ((signal, _), earlier) in SIGNALS.iter().zip(&EARLIER) {
        // SAFETY: `struct sigaction` in C may be zero; the handler has the type that SA_SIGINFO asks for.
        // The stack is that of Rust's own handler: the thread's own must not change, as it is its state.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            let mut before = std::mem::zeroed();
            libc::sigaction(*signal, &raw const action, &raw mut before);
            let _ = earlier.set(before);
        }
    }
}

/// Ends the process if a machine has been in one run of lock code for too long.
fn look() {
    let mut all = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain_mut(|watched| {
        let Some(at) = watched.at.upgrade() else {
            return false;
        };
        let switches = at.switches.load(Ordering::Relaxed);
        let stays = switches % 2 == 1 && switches == watched.switches;
        watched.ticks = if stays { watched.ticks + 1 } else { 0 };
        watched.switches = switches;
        if watched.ticks == MOST_TICKS {
            let seconds = (TICK * MOST_TICKS).as_secs();
            let _ = writeln!(
                stderr(),
                "lockworks: not checked: the lock code runs for {seconds} s without an operation, {at}; \
                 a loop has no end, or needs lw_pause(1) or an operation that can end it"
            );
            process::exit(UNFINISHED);
        }
        true
    });
}

/// The signals that end a process whose code has a mistake, with their names.
const SIGNALS: [(libc::c_int, &str); 6] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGTRAP, "SIGTRAP"),
    (libc::SIGABRT, "SIGABRT"),
];
/// What each signal did before.
static EARLIER: [OnceLock<libc::sigaction>; SIGNALS.len()] =
    [const { OnceLock::new() }; SIGNALS.len()];

/// Says in one line what lock code has done to get the signal. What comes elsewhere is handled as before.
extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let Some(number) = SIGNALS.iter().position(|(one, _)| *one == signal) else {
        return;
    };
    if INITIALISES.load(Ordering::Relaxed) {
        refuse(format_args!(
            "{} in the function that initialises the lock",
            SIGNALS[number].1
        ));
    }
    if !machine::runs_lock_code() {
        // The instruction is repeated, and the signal comes again.
        if let Some(earlier) = EARLIER[number].get() {
            // SAFETY: what the system has returned.
            unsafe { libc::sigaction(signal, earlier, ptr::null_mut()) };
        }
        return;
    }
    // No memory is allocated here.
    let mut line = Cursor::new([0; 512]);
    machine::with(|machine| {
        let (thread, at) = (machine.thread(), machine.whereabouts());
        if signal != libc::SIGSEGV && signal != libc::SIGBUS {
            let name = SIGNALS[number].1;
            return writeln!(
                line,
                "lockworks: not checked: {name} in the lock code of thread {thread}, {at}"
            );
        }
        // SAFETY: the system's description of the signal, which has an address.
        let address = unsafe { (*info).si_addr() } as usize;
        let place = match layout::resolve(address, layout::THREADS) {
            Some((Region::Lock(_), _)) => "the lock",
            Some((Region::Lent { .. } | Region::Node { .. }, _)) => "a queue node",
            Some(_) => "shared memory",
            None => {
                return writeln!(
                    line,
                    "lockworks: not checked: thread {thread} accesses {address:#x}, where no memory is, {at}"
                );
            }
        };
        writeln!(
            line,
            "lockworks: not checked: thread {thread} accesses {place} without an operation, {at}; use \
             lw_load(), lw_store(), lw_xchg() and the others of operations.h, not C's own accesses or \
             <stdatomic.h>"
        )
    })
    .unwrap_or_default();
    let length = line.position() as usize;
    // SAFETY: the line is that long. Nothing of the process is needed any more.
    unsafe {
        libc::write(libc::STDERR_FILENO, line.get_ref().as_ptr().cast(), length);
        libc::_exit(BAD_INPUT);
    }
}
