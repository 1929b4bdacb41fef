//! The operations of the kernel that litmus tests call: their names, and how their arguments stand.

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
