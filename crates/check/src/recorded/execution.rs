//! A recorded run as an execution, in the words of the axioms.

use std::collections::HashMap;

use lockworks_litmus::Memory;
use lockworks_litmus::{Event, Execution, Fence, Kind, Mark};

use crate::site::{OperationKind, Order};

use super::recorder::{Operation, Recorder, Source};

impl Recorder {
    /// The execution of a run that has ended.
    pub(super) fn execution(&self, model: Memory) -> Execution {
        let mut events = Vec::new();
        let mut numbers = HashMap::new();
        for (place, writes) in self.places.iter().enumerate() {
            numbers.insert((place, Source::Initial), events.len());
            events.push(Event {
                thread: None,
                kind: Kind::Write(Mark::Once),
                location: Some(place),
                value: writes.initial as i64,
                of_rmw: false,
                line: 0,
            });
        }
        let (mut seen, mut rmw) = (Vec::new(), Vec::new());
        for (thread, operations) in self.operations.iter().enumerate() {
            for operation in operations {
                let is_rmw = operation.kind.is_read_modify_write();
                let (read, write) = marks(operation, model);
                let mut event = |kind, location, value: u64| {
                    events.push(Event {
                        thread: Some(thread),
                        kind,
                        location,
                        value: value as i64,
                        of_rmw: is_rmw,
                        line: 0,
                    });
                    events.len() - 1
                };
                for fence in fences(operation, model) {
                    event(Kind::Fence(*fence), None, 0);
                }
                let reads: Vec<usize> = operation
                    .reads
                    .iter()
                    .map(|access| {
                        let number = event(Kind::Read(read), Some(access.place), access.value);
                        seen.push(((access.place, access.from), number));
                        number
                    })
                    .collect();
                for (part, access) in operation.writes.iter().enumerate() {
                    let number = event(Kind::Write(write), Some(access.place), access.value);
                    numbers.insert((access.place, access.from), number);
                    rmw.extend(reads.get(part).map(|read| (*read, number)));
                }
                if is_store_with_barrier(operation, model) {
                    event(Kind::Fence(Fence::Mb), None, 0);
                }
            }
        }
        let mut execution = Execution::new(events);
        for (place, writes) in self.places.iter().enumerate() {
            let order: Vec<usize> = writes
                .order
                .iter()
                .map(|source| numbers[&(place, *source)])
                .collect();
            for (i, first) in order.iter().enumerate() {
                for second in &order[i + 1..] {
                    execution.co.insert(*first, *second);
                }
            }
        }
        for (source, read) in seen {
            execution.rf.insert(numbers[&source], read);
        }
        for (read, write) in rmw {
            execution.rmw.insert(read, write);
        }
        execution
    }
}

/// The fences that an operation is.
fn fences(operation: &Operation, model: Memory) -> &'static [Fence] {
    if operation.kind != OperationKind::Fence {
        return &[];
    }
    match (model, operation.order) {
        // Each fence is smp_mb().
        (Memory::Lkmm | Memory::Lkmm62, _) => &[Fence::Mb],
        // The rest is weaker than the fences of the machine.
        (Memory::Riscv, Order::SeqCst) => &[Fence::Mb],
        (Memory::Riscv, _) => &[],
        (Memory::Arm, Order::Acquire) => &[Fence::Rmb],
        (Memory::Arm, _) => &[Fence::Mb],
        (_, Order::SeqCst) => &[Fence::Mb],
        (_, Order::AcqRel) => &[Fence::Wmb, Fence::Rmb],
        (_, Order::Release) => &[Fence::Wmb],
        (_, Order::Acquire | Order::Dependency) => &[Fence::Rmb],
        (_, Order::Plain | Order::Relaxed) => &[],
    }
}

/// smp_store_mb()
fn is_store_with_barrier(operation: &Operation, model: Memory) -> bool {
    let is_store = operation.kind == OperationKind::Store;
    model.is_kernel() && is_store && operation.order == Order::SeqCst
}

/// The marks of what an operation reads and writes, by the memory order in its source.
fn marks(operation: &Operation, model: Memory) -> (Mark, Mark) {
    let Operation { kind, order, .. } = operation;
    if matches!(kind, OperationKind::PlainRead | OperationKind::PlainWrite) {
        return match model {
            Memory::C11 | Memory::Lkmm | Memory::Lkmm62 => (Mark::Plain, Mark::Plain),
            _ => (Mark::Once, Mark::Once),
        };
    }
    let is_rmw = kind.is_read_modify_write();
    if is_rmw && operation.writes.is_empty() {
        // A compare-and-swap that fails is relaxed.
        return (Mark::Once, Mark::Once);
    }
    let acquires = match model {
        Memory::C11 => order.acquires(),
        // A dependency is none that is recorded.
        _ => order.acquires() && *order != Order::Dependency,
    };
    let is_full = matches!(order, Order::AcqRel | Order::SeqCst);
    let read = match model {
        _ if !acquires => Mark::Once,
        Memory::C11 if *order == Order::SeqCst => Mark::SeqCst,
        Memory::Lkmm | Memory::Lkmm62 if is_rmw && is_full => Mark::Mb,
        Memory::Riscv if is_rmw && is_full => Mark::Mb,
        Memory::Riscv if *order == Order::SeqCst => Mark::SeqCst,
        // AMO.AQ, and less than a load with a fence after it.
        Memory::Riscv => Mark::AcquirePc,
        // LDAPR, unless the source asks for LDAR. An atomic that acquires and releases is a full barrier.
        Memory::Arm if !is_full => Mark::AcquirePc,
        _ => Mark::Acquire,
    };
    let write = match model {
        _ if !order.releases() => Mark::Once,
        Memory::C11 if *order == Order::SeqCst => Mark::SeqCst,
        Memory::Lkmm | Memory::Lkmm62 if is_rmw && is_full => Mark::Mb,
        Memory::Riscv if is_rmw && is_full => Mark::Mb,
        // AMO.RL is less than an operation with a fence before it.
        Memory::Riscv if is_rmw => Mark::Once,
        // A store that is sequentially consistent is smp_store_mb().
        Memory::Lkmm | Memory::Lkmm62 if *order == Order::SeqCst => Mark::Once,
        _ => Mark::Release,
    };
    (read, write)
}
