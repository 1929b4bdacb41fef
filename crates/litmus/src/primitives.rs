//! The operations that litmus tests call, of the kernel and of C11: their names, and how their arguments
//! stand.

use super::execution::{Fence, Mark};
use super::syntax::Binary;

/// How an operation is called, and what it does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Primitive {
    /// `READ_ONCE(*x)`.
    LoadOf(Mark),
    /// `smp_load_acquire(x)`.
    LoadAt(Mark),
    /// `WRITE_ONCE(*x, 1)`, and a fence after it.
    StoreTo(Mark, Option<Fence>),
    /// `smp_store_release(x, 1)`.
    StoreAt(Mark),
    Fence(Fence),
    /// `xchg(x, 1)`.
    Exchange(Mark),
    /// `cmpxchg(x, 0, 1)`.
    CompareExchange(Mark),
    /// `atomic_add(1, x)`, or `atomic_inc(x)` if the operand is given.
    Atomic {
        operation: Binary,
        operand: Option<i64>,
        result: Outcome,
        mark: Mark,
    },
    /// `atomic_add_unless(x, 1, 0)`.
    AddUnless,
    Lock,
    Unlock,
    TryLock,
    IsLocked,
    SyncSrcu,
}

/// The result of an atomic operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Nothing,
    Old,
    New,
    /// Whether the new value is zero.
    IsZero,
    IsNegative,
}

/// The operation of a name.
pub(super) fn find(name: &str) -> Option<Primitive> {
    use Primitive::{LoadAt, LoadOf, StoreAt, StoreTo};
    Some(match name {
        "READ_ONCE" | "rcu_dereference" => LoadOf(Mark::Once),
        "WRITE_ONCE" => StoreTo(Mark::Once, None),
        "smp_store_mb" => StoreTo(Mark::Once, Some(Fence::Mb)),
        "rcu_assign_pointer" => StoreTo(Mark::Release, None),
        "smp_load_acquire" | "atomic_read_acquire" => LoadAt(Mark::Acquire),
        "smp_store_release" | "atomic_set_release" => StoreAt(Mark::Release),
        "atomic_read" => LoadAt(Mark::Once),
        "atomic_set" => StoreAt(Mark::Once),
        "smp_mb" => Primitive::Fence(Fence::Mb),
        "smp_rmb" => Primitive::Fence(Fence::Rmb),
        "smp_wmb" => Primitive::Fence(Fence::Wmb),
        "barrier" => Primitive::Fence(Fence::Barrier),
        "smp_mb__before_atomic" => Primitive::Fence(Fence::BeforeAtomic),
        "smp_mb__after_atomic" => Primitive::Fence(Fence::AfterAtomic),
        "smp_mb__after_spinlock" => Primitive::Fence(Fence::AfterSpinlock),
        "smp_mb__after_unlock_lock" => Primitive::Fence(Fence::AfterUnlockLock),
        "smp_mb__after_srcu_read_unlock" => Primitive::Fence(Fence::AfterSrcuReadUnlock),
        "rcu_read_lock" => Primitive::Fence(Fence::RcuLock),
        "rcu_read_unlock" => Primitive::Fence(Fence::RcuUnlock),
        "synchronize_rcu" | "synchronize_rcu_expedited" => Primitive::Fence(Fence::SyncRcu),
        "srcu_read_lock" | "srcu_down_read" => LoadAt(Mark::SrcuLock),
        "srcu_read_unlock" | "srcu_up_read" => StoreAt(Mark::SrcuUnlock),
        "synchronize_srcu" | "synchronize_srcu_expedited" => Primitive::SyncSrcu,
        "spin_lock" => Primitive::Lock,
        "spin_unlock" => Primitive::Unlock,
        "spin_trylock" => Primitive::TryLock,
        "spin_is_locked" => Primitive::IsLocked,
        "atomic_add_unless" => Primitive::AddUnless,
        _ => return ordered(name),
    })
}

/// A function of C11's `<stdatomic.h>`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AtomicFunction {
    Load,
    Store,
    /// It is not atomic.
    Init,
    Exchange,
    Fetch(Binary),
    CompareExchange {
        is_weak: bool,
    },
    Fence,
}

/// The function of C11 of a name, and whether its memory orders are arguments.
pub(super) fn atomic_function(name: &str) -> Option<(AtomicFunction, bool)> {
    use AtomicFunction::{CompareExchange, Exchange, Fence, Fetch, Init, Load, Store};
    let base = name.strip_suffix("_explicit");
    let function = match base.unwrap_or(name).strip_prefix("atomic_")? {
        "load" => Load,
        "store" => Store,
        "init" if base.is_none() => return Some((Init, false)),
        "exchange" => Exchange,
        "compare_exchange_strong" => CompareExchange { is_weak: false },
        "compare_exchange_weak" => CompareExchange { is_weak: true },
        "thread_fence" if base.is_none() => return Some((Fence, true)),
        // The kernel has functions of these names too, with the address last.
        other if base.is_some() => Fetch(match other.strip_prefix("fetch_")? {
            "add" => Binary::Add,
            "sub" => Binary::Subtract,
            "and" => Binary::And,
            "or" => Binary::Or,
            "xor" => Binary::Xor,
            _ => return None,
        }),
        _ => return None,
    };
    Some((function, base.is_some()))
}

/// A memory order of C11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

impl Order {
    /// The order of a name such as `memory_order_relaxed`. Consume is as strong as acquire.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name.strip_prefix("memory_order_")? {
            "relaxed" => Self::Relaxed,
            "acquire" | "consume" => Self::Acquire,
            "release" => Self::Release,
            "acq_rel" => Self::AcqRel,
            "seq_cst" => Self::SeqCst,
            _ => return None,
        })
    }

    /// The mark of a load, if a load may have this order.
    pub(super) fn of_load(self) -> Option<Mark> {
        (!matches!(self, Self::Release | Self::AcqRel)).then(|| self.marks().0)
    }

    /// The mark of a store, if a store may have this order.
    pub(super) fn of_store(self) -> Option<Mark> {
        (!matches!(self, Self::Acquire | Self::AcqRel)).then(|| self.marks().1)
    }

    /// The marks of the read and the write of a read-modify-write.
    pub(super) fn marks(self) -> (Mark, Mark) {
        match self {
            Self::Relaxed => (Mark::Once, Mark::Once),
            Self::Acquire => (Mark::Acquire, Mark::Once),
            Self::Release => (Mark::Once, Mark::Release),
            Self::AcqRel => (Mark::Acquire, Mark::Release),
            Self::SeqCst => (Mark::SeqCst, Mark::SeqCst),
        }
    }

    /// The fences of the kernel that are the same in C11.
    pub(super) fn fences(self) -> &'static [Fence] {
        match self {
            Self::Relaxed => &[],
            Self::Acquire => &[Fence::Rmb],
            Self::Release => &[Fence::Wmb],
            Self::AcqRel => &[Fence::Rmb, Fence::Wmb],
            Self::SeqCst => &[Fence::Mb],
        }
    }
}

/// The operation of a name that may end with a memory order.
fn ordered(name: &str) -> Option<Primitive> {
    let orders = [
        ("_relaxed", Mark::Once),
        ("_acquire", Mark::Acquire),
        ("_release", Mark::Release),
    ];
    let with_order = orders
        .iter()
        .find_map(|(end, mark)| Some((name.strip_suffix(end)?, *mark)));
    let (base, mark) = with_order.unwrap_or((name, Mark::Mb));
    match base {
        "xchg" | "atomic_xchg" => return Some(Primitive::Exchange(mark)),
        "cmpxchg" | "atomic_cmpxchg" => return Some(Primitive::CompareExchange(mark)),
        _ => {}
    }
    let base = base.strip_prefix("atomic_")?;
    let has_order = with_order.is_some();
    let (operation, result) = if let Some(operation) = base.strip_prefix("fetch_") {
        (operation, Outcome::Old)
    } else if let Some(operation) = base.strip_suffix("_return") {
        (operation, Outcome::New)
    } else if base == "add_negative" {
        ("add", Outcome::IsNegative)
    } else if has_order {
        return None;
    } else if let Some(operation) = base.strip_suffix("_and_test") {
        (operation, Outcome::IsZero)
    } else {
        (base, Outcome::Nothing)
    };
    let (operation, operand) = match operation {
        "add" => (Binary::Add, None),
        "sub" => (Binary::Subtract, None),
        "inc" => (Binary::Add, Some(1)),
        "dec" => (Binary::Subtract, Some(1)),
        "and" => (Binary::And, None),
        "or" => (Binary::Or, None),
        "xor" => (Binary::Xor, None),
        "andnot" => (Binary::AndNot, None),
        _ => return None,
    };
    let is_arithmetic = matches!(operation, Binary::Add | Binary::Subtract);
    // The kernel has these with arithmetic only; of atomic_add(), no test.
    let exists = match result {
        Outcome::New => is_arithmetic,
        Outcome::IsZero => is_arithmetic && base != "add_and_test",
        Outcome::Nothing | Outcome::Old | Outcome::IsNegative => true,
    };
    let mark = match result {
        Outcome::Nothing => Mark::Noreturn,
        _ => mark,
    };
    exists.then_some(Primitive::Atomic {
        operation,
        operand,
        result,
        mark,
    })
}
