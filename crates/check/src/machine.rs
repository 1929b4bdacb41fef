//! The coroutine in which the threads of a check run, one at a time, and its answers to the hooks.

use std::cell::{Cell, RefCell, UnsafeCell};
use std::mem::MaybeUninit;
use std::ptr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lockworks::Settings;
use lockworks_litmus::Memory;
use serde::{Deserialize, Serialize};

use crate::headers::{Client, Had, Mark};
use crate::image;
use crate::layout;
use crate::locks;
use crate::lost::{self, Whereabouts};
use crate::mutation::{self, Mutation};
use crate::site::{OperationKind, Request, Site};

mod attributes;

pub(crate) use attributes::Attributes;

const STACK: usize = 16 << 10;
/// A stack ends at a multiple of this. A variable of 16 bits that is kept in a register may leave the
/// upper bits of an address there. With this they are the same for all addresses in a stack.
const STACK_ALIGNED: usize = 64 << 10;

/// The event with which a thread goes on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The operation is done, and this is its result.
    Value(u64),
    /// An interruption begins before the operation.
    Interruption,
    /// The thread forks before the operation.
    Fork,
}

/// Something that a thread did between two operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The thread has acquired a lock alone.
    Acquired(usize),
    /// The thread has acquired a lock as a reader.
    Reads(usize),
    /// The thread no longer uses a node. Slot nodes are numbered first, then lent nodes.
    NodeFreed(usize),
    /// The thread is about to reuse the memory of a lock.
    Destroyed(usize),
    /// The thread has seen a broken promise.
    Broken(&'static str),
    /// In the child of a fork new threads begin, in these slots.
    ChildBegins { free: u64 },
}

/// At one address for all OS threads that explore a check, since lock code has the address in its frames.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) tunables: Settings,
}

/// The surroundings of the threads of a check.
pub(crate) struct Surroundings {
    pub(crate) shared: Arc<OnceLock<Shared>>,
    pub(crate) has_slot: Vec<bool>,
    pub(crate) numa_nodes: Vec<u16>,
    pub(crate) priority: Vec<bool>,
    pub(crate) split_release: bool,
    pub(crate) never_park: bool,
    pub(crate) memory: Memory,
    /// A thread may fork.
    pub(crate) forks: bool,
    pub(crate) mutation: Option<Mutation>,
    pub(crate) has_tail_word: bool,
    /// The function that each thread runs, with the client and the thread's number.
    pub(crate) program: unsafe extern "C" fn(*const Client, u32),
}

impl Surroundings {
    fn shared(&self) -> &Shared {
        self.shared.get().expect("the check has set it")
    }
}

/// The coroutine in which threads run.
pub(crate) struct Machine {
    pub(crate) surroundings: Surroundings,
    stack: Box<[UnsafeCell<u8>]>,
    engine: UnsafeCell<MaybeUninit<libc::ucontext_t>>,
    thread: UnsafeCell<MaybeUninit<libc::ucontext_t>>,
    number: Cell<usize>,
    request: Cell<Option<Request>>,
    /// The address where the frames of the lock code begin.
    frames: Cell<usize>,
    /// The answer for the thread, in two cells, so that no copy of it remains on the stack.
    interrupted: Cell<bool>,
    forks: Cell<bool>,
    value: Cell<u64>,
    attributes: Cell<Attributes>,
    effects: RefCell<Vec<Effect>>,
    whereabouts: Arc<Whereabouts>,
}

/// The code of a source runs on one OS thread at a time. The search itself runs none.
static RUNS: Mutex<()> = Mutex::new(());

thread_local! {
    static MACHINE: Cell<Option<*const Machine>> = const { Cell::new(None) };
}

/// Makes `machine` answer the hooks of this OS thread until the guard is dropped.
fn enter(machine: &Machine) -> impl Drop + use<'_> {
    struct Guard<'a>(std::marker::PhantomData<&'a ()>);
    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            MACHINE.set(None);
        }
    }
    MACHINE.set(Some(machine));
    Guard(std::marker::PhantomData)
}

/// Whether this OS thread runs lock code.
pub(crate) fn runs_lock_code() -> bool {
    MACHINE.get().is_some()
}

/// Calls `f` with the machine whose thread is running.
pub(crate) fn with<R>(f: impl FnOnce(&Machine) -> R) -> R {
    let machine = MACHINE.get().expect("lock code runs in a check only");
    // SAFETY: set by `enter`, whose guard has not been dropped, so the machine lives.
    f(unsafe { &*machine })
}

/// A thread that has stopped at an operation or ended.
pub(crate) struct Stopped {
    /// Its operation; None: it has ended.
    pub(crate) request: Option<Request>,
    pub(crate) attributes: Attributes,
    pub(crate) context: Box<libc::ucontext_t>,
    /// Its stack, with the frames of the hooks.
    pub(crate) stack: Box<[u8]>,
    /// The frames of the lock code, and their address.
    pub(crate) frames: Box<[u8]>,
    pub(crate) frames_at: usize,
    pub(crate) effects: Rc<[Effect]>,
    pub(crate) events: u64,
}

impl Machine {
    pub(crate) fn new(surroundings: Surroundings) -> Self {
        Self {
            surroundings,
            stack: (0..STACK + STACK_ALIGNED)
                .map(|_| UnsafeCell::new(0))
                .collect(),
            engine: UnsafeCell::new(MaybeUninit::zeroed()),
            thread: UnsafeCell::new(MaybeUninit::zeroed()),
            number: Cell::new(0),
            request: Cell::new(None),
            frames: Cell::new(0),
            interrupted: Cell::new(false),
            forks: Cell::new(false),
            value: Cell::new(0),
            attributes: Cell::default(),
            effects: RefCell::default(),
            whereabouts: Whereabouts::new(),
        }
    }

    /// The thread that has run last.
    pub(crate) fn stopped(&self) -> Stopped {
        let request = self.request.get();
        let context = Box::new(self.context());
        let frames_at = self.frames.get();
        let (frames, stack) = match request {
            Some(_) => (
                self.stack_from(frames_at),
                self.stack_from(stack_pointer(&context)),
            ),
            None => Default::default(),
        };
        Stopped {
            request,
            attributes: self.attributes.get(),
            context,
            stack,
            frames,
            frames_at,
            effects: self.effects.take().into(),
            events: locks::take_events(),
        }
    }

    /// Makes the thread one that is not in the child of a fork.
    pub(crate) fn die(&self) {
        self.request.set(None);
        self.attributes.set(Attributes::of_dead());
    }

    fn stack_bounds(&self) -> (usize, usize) {
        let end = self.stack.as_ptr() as usize + self.stack.len();
        let top = end & !(STACK_ALIGNED - 1);
        (top - STACK, top)
    }

    pub(crate) fn start(&self, thread: usize, attributes: Attributes) {
        let (base, top) = self.stack_bounds();
        self.attributes.set(attributes);
        self.whereabouts.begin();
        // SAFETY: the stack is ours and no thread runs on it.
        unsafe {
            ptr::write_bytes(base as *mut u8, 0, top - base);
            let context = self.thread.get().cast::<libc::ucontext_t>();
            libc::getcontext(context);
            clear_registers(&mut *context);
            (*context).uc_stack.ss_sp = base as *mut _;
            (*context).uc_stack.ss_size = top - base;
            (*context).uc_link = ptr::null_mut();
            libc::makecontext(context, main, 0);
        }
        self.run(thread);
    }

    /// Runs a thread that has stopped up to its next operation or its end.
    pub(crate) fn resume(
        &self,
        thread: usize,
        attributes: Attributes,
        context: &libc::ucontext_t,
        stack: &[u8],
        answer: Answer,
    ) {
        let (base, top) = self.stack_bounds();
        let used = stack.len();
        self.attributes.set(attributes);
        self.interrupted.set(answer == Answer::Interruption);
        self.forks.set(answer == Answer::Fork);
        if let Answer::Value(value) = answer {
            self.value.set(value);
            self.change(Attributes::go_on);
        }
        // SAFETY: the stack is ours and no thread runs on it; the frames go back to where they were.
        // Below them zeros, so that what is left over never tells equal states apart.
        unsafe {
            ptr::write_bytes(base as *mut u8, 0, top - base - used);
            ptr::copy_nonoverlapping(stack.as_ptr(), (top - used) as *mut u8, used);
            *self.thread.get() = MaybeUninit::new(*context);
        }
        self.run(thread);
    }

    /// Runs the thread up to its next operation or its end.
    fn run(&self, thread: usize) {
        self.number.set(thread);
        self.request.set(None);
        locks::take_events();
        // A source's own accesses are to memory that all machines share.
        let _alone = image::is_set().then(|| RUNS.lock().unwrap_or_else(PoisonError::into_inner));
        let _guard = enter(self);
        self.whereabouts.switch();
        // SAFETY: `thread` is a context that makecontext or swapcontext has made.
        unsafe { libc::swapcontext(self.engine.get().cast(), self.thread.get().cast()) };
        self.whereabouts.switch();
    }

    /// Switches back to the engine, which later resumes this thread.
    fn leave(&self) {
        // SAFETY: `run` has saved the engine's context and is waiting.
        unsafe { libc::swapcontext(self.thread.get().cast(), self.engine.get().cast()) };
    }

    fn context(&self) -> libc::ucontext_t {
        // SAFETY: initialised by getcontext in `start`.
        unsafe { (*self.thread.get()).assume_init() }
    }

    fn stack_from(&self, address: usize) -> Box<[u8]> {
        let (_, top) = self.stack_bounds();
        // SAFETY: a suspended thread's frames reach from its stack pointer to the top.
        unsafe { std::slice::from_raw_parts(address as *const u8, top - address) }.into()
    }

    fn change(&self, f: impl FnOnce(&mut Attributes)) {
        let mut attributes = self.attributes.get();
        f(&mut attributes);
        self.attributes.set(attributes);
    }
}

extern "C" fn main() {
    with(|machine| {
        let surroundings = &machine.surroundings;
        run_program(
            surroundings.program,
            &surroundings.shared().client,
            machine.thread() as u32,
        );
        machine.request.set(None);
        machine.leave();
    });
    unreachable!("a thread that has ended is not resumed");
}

/// Calls `program` without values of the caller in the registers that a call preserves: lock code
/// saves them in its frames, where they would tell the local states of two OS threads apart.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
extern "C" fn run_program(_: unsafe extern "C" fn(*const Client, u32), _: *const Client, _: u32) {
    std::arch::naked_asm!(
        "push rbx",
        "push rbp",
        "push r12",
        "push r13",
        "push r14",
        "push r15",
        "sub rsp, 8",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov esi, edx",
        "xor edx, edx",
        "xor ebx, ebx",
        "xor ebp, ebp",
        "xor r12d, r12d",
        "xor r13d, r13d",
        "xor r14d, r14d",
        "xor r15d, r15d",
        "call rax",
        "add rsp, 8",
        "pop r15",
        "pop r14",
        "pop r13",
        "pop r12",
        "pop rbp",
        "pop rbx",
        "ret",
    )
}

/// The same: x19 to x28, and the frame's address.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
extern "C" fn run_program(_: unsafe extern "C" fn(*const Client, u32), _: *const Client, _: u32) {
    std::arch::naked_asm!(
        "stp x29, x30, [sp, #-96]!",
        "stp x19, x20, [sp, #16]",
        "stp x21, x22, [sp, #32]",
        "stp x23, x24, [sp, #48]",
        "stp x25, x26, [sp, #64]",
        "stp x27, x28, [sp, #80]",
        "mov x9, x0",
        "mov x0, x1",
        "mov w1, w2",
        "mov x19, xzr",
        "mov x20, xzr",
        "mov x21, xzr",
        "mov x22, xzr",
        "mov x23, xzr",
        "mov x24, xzr",
        "mov x25, xzr",
        "mov x26, xzr",
        "mov x27, xzr",
        "mov x28, xzr",
        "mov x29, xzr",
        "blr x9",
        "ldp x27, x28, [sp, #80]",
        "ldp x25, x26, [sp, #64]",
        "ldp x23, x24, [sp, #48]",
        "ldp x21, x22, [sp, #32]",
        "ldp x19, x20, [sp, #16]",
        "ldp x29, x30, [sp], #96",
        "ret",
    )
}

/// The answers to the hooks. They take `&self`, since a thread may be suspended in one.
impl Machine {
    /// Performs an operation. `frames` is the stack address where the caller's frames begin, with its
    /// registers first.
    pub(crate) fn operate(&self, request: Request, frames: usize) -> u64 {
        loop {
            self.frames.set(frames);
            self.request.set(Some(request));
            self.leave();
            self.whereabouts.go_on(request.site);
            if self.interrupted.get() {
                self.interrupt();
            } else if self.forks.get() {
                self.fork();
            } else {
                return self.value.get();
            }
        }
    }

    /// The lowest address of the stack on which the running thread runs. Values that the thread
    /// leaves on its unused part are set to zero.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn stack_end(&self) -> usize {
        self.stack_bounds().0
    }

    /// Whether an address is in the stack on which threads run.
    pub(crate) fn is_on_stack(&self, address: usize) -> bool {
        let (base, top) = self.stack_bounds();
        (base..top).contains(&address)
    }

    /// Ends the process if an operation is on a variable of the thread's stack, or gives others the address
    /// of one: all threads run on one stack, so another thread would find its own variables there.
    pub(crate) fn keep_own_variables(&self, site: &Site, address: usize, a: u64, b: u64) {
        let writes = match site.kind {
            OperationKind::Store | OperationKind::Exchange => Some(a),
            OperationKind::CompareExchange => Some(b),
            _ => None,
        };
        let gives = writes.filter(|_| usize::from(site.size) == size_of::<usize>());
        let addresses = site.kind.is_access().then_some(address);
        let mut all = addresses
            .into_iter()
            .chain(gives.map(|value| value as usize));
        if all.any(|address| self.is_on_stack(address)) {
            lost::refuse(format_args!(
                "thread {} shares a local variable of its own: {site} ({}:{}, {}); put it into the lock, or \
                 into a node that the caller gives",
                self.thread(),
                site.file(),
                site.line,
                site.function()
            ));
        }
    }

    /// The number of the running thread.
    pub(crate) fn thread(&self) -> usize {
        self.number.get()
    }

    /// Where the running thread is.
    pub(crate) fn whereabouts(&self) -> &Whereabouts {
        &self.whereabouts
    }

    pub(crate) fn numa_node(&self) -> u16 {
        self.surroundings.numa_nodes[self.thread()]
    }

    pub(crate) fn is_priority(&self) -> bool {
        self.surroundings.priority[self.thread()]
    }

    pub(crate) fn tunables(&self) -> *const Settings {
        &self.surroundings.shared().tunables
    }

    pub(crate) fn release_is_split(&self) -> bool {
        self.surroundings.split_release
    }

    pub(crate) fn waiters_park(&self) -> bool {
        !self.surroundings.never_park
    }

    /// The number that stands for a lock's address where locks share the queues of NUMA nodes.
    pub(crate) fn identity(&self, address: usize) -> u64 {
        mutation::identity(self.surroundings.mutation, address)
    }

    /// The number of slots.
    pub(crate) fn slots(&self) -> u32 {
        self.surroundings.has_slot.len() as u32
    }

    /// The running thread's slot, if it has one.
    pub(crate) fn slot(&self) -> Option<usize> {
        self.surroundings.has_slot[self.thread()].then(|| self.thread() + 1)
    }

    /// Takes a node of the running thread's slot, which is returned; 0 if it has none.
    pub(crate) fn slot_enter(&self) -> u32 {
        if !self.surroundings.has_slot[self.thread()] {
            return 0;
        }
        self.change(|now| now.depth += 1);
        self.thread() as u32 + 1
    }

    pub(crate) fn slot_leave(&self, slot: u32) {
        if slot == 0 {
            return;
        }
        self.change(|now| now.depth -= 1);
        let depth = usize::from(self.attributes.get().depth);
        if depth < layout::NODES {
            self.effects.borrow_mut().push(Effect::NodeFreed(depth));
        }
    }

    pub(crate) fn note(&self, mark: Mark, lock: usize, node: usize) {
        self.change(|now| now.note(mark, lock, node));
        match mark {
            Mark::Acquired => self.effects.borrow_mut().push(Effect::Acquired(lock)),
            Mark::Reads => self.effects.borrow_mut().push(Effect::Reads(lock)),
            Mark::Released => {
                let freed = Effect::NodeFreed(layout::NODES + node);
                self.effects.borrow_mut().push(freed);
            }
            Mark::Destroyed => self.effects.borrow_mut().push(Effect::Destroyed(lock)),
            Mark::Begin | Mark::Release => {}
        }
    }

    /// How far the code that the thread runs or has interrupted is with a lock.
    pub(crate) fn had(&self, lock: usize) -> Had {
        let now = self.attributes.get();
        // Each thread lends the node with the lock's number for the lock.
        match 1 << lock {
            bit if now.holding & bit != 0 => Had::Held,
            bit if (now.wanted | now.lent) & bit != 0 => Had::Tries,
            _ => Had::Nothing,
        }
    }

    pub(crate) fn result(&self, digit: u64) {
        self.change(|now| now.result = now.result << 4 | (digit + 1));
    }

    pub(crate) fn broken(&self, promise: &'static str) {
        self.effects.borrow_mut().push(Effect::Broken(promise));
    }

    /// Whether a thread may fork in this check.
    pub(crate) fn may_fork(&self) -> bool {
        self.surroundings.forks
    }

    /// Whether the running thread is in the child of a fork.
    pub(crate) fn is_forked(&self) -> bool {
        self.attributes.get().forked
    }

    /// The queues of a NUMA node.
    pub(crate) fn node_queues(&self, node: usize) -> usize {
        match self.attributes.get().queues_ended {
            true => 0,
            false => layout::node_queues(node),
        }
    }

    pub(crate) fn node_queues_end(&self) {
        self.change(|now| now.queues_ended = true);
    }

    pub(crate) fn slot_free(&self, slot: usize) {
        self.change(|now| now.free |= 1 << (slot - 1));
    }

    /// Runs the child of a fork up to the point where its other threads begin.
    fn fork(&self) {
        let before = self.attributes.get();
        self.change(Attributes::fork);
        let slot = self.slot().unwrap_or(0);
        // SAFETY: it calls the hooks of this check only.
        unsafe { locks::lw_check_forked_child(slot as u32) };
        let free = self.attributes.get().free;
        self.effects.borrow_mut().push(Effect::ChildBegins { free });
        self.change(|now| {
            now.resume(&before);
            now.alone = false;
            now.free = 0;
        });
    }

    fn interrupt(&self) {
        let before = self.attributes.get();
        self.change(Attributes::interrupt);
        let level = self.attributes.get().level;
        // SAFETY: the client's lock type and addresses are those of this check.
        unsafe { locks::lw_check_interruption(&self.surroundings.shared().client, level.into()) };
        self.change(|now| now.resume(&before));
    }
}

/// Clears the registers with which a thread starts. The thread saves them in its frames, where they
/// would make equal local states different.
fn clear_registers(context: &mut libc::ucontext_t) {
    #[cfg(target_arch = "x86_64")]
    context.uc_mcontext.gregs.fill(0);
    #[cfg(target_arch = "aarch64")]
    context.uc_mcontext.regs.fill(0);
}

#[cfg(target_arch = "x86_64")]
fn stack_pointer(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.gregs[libc::REG_RSP as usize] as usize
}

#[cfg(target_arch = "aarch64")]
fn stack_pointer(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.sp as usize
}
