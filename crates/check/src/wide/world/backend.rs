//! The answers of the world to lock code: operations, slots and the thread's surroundings.

use lockworks::Settings;

use crate::headers::{self, Mark};
use crate::hooks::{Backend, Request};
use crate::layout;
use crate::mutation::{self, Change};
use crate::violation::Violation;

use super::memory::is_count;
use super::{World, thread_of};

impl Backend for World {
    fn operate(&self, request: Request, _frames: usize) -> u64 {
        let thread = self.thread();
        self.interruptions(thread, request.site);
        if self.change(&request) == Some(Change::Defer) {
            let mut run = self.run();
            let of = &mut run.threads[thread];
            if of.deferred.is_none() {
                of.deferred = Some(request);
                of.now.go_on();
                return 0;
            }
        }
        let value = self.step(thread, request);
        self.do_deferred(thread);
        value
    }

    fn stack_end(&self) -> usize {
        usize::MAX
    }

    fn thread(&self) -> usize {
        thread_of(shuttle::current::me().into()).expect("lock code runs in threads")
    }

    fn numa_node(&self) -> u16 {
        self.config.node(self.thread())
    }

    fn is_priority(&self) -> bool {
        let inverted = self
            .mutation
            .is_some_and(|m| m.change == Change::InvertPriority);
        self.config.priority.contains(&self.thread()) != inverted
    }

    fn tunables(&self) -> *const Settings {
        &self.tunables
    }

    fn release_is_split(&self) -> bool {
        false
    }

    fn identity(&self, address: usize) -> u64 {
        mutation::identity(self.mutation, address)
    }

    fn slots(&self) -> u32 {
        self.config.threads as u32
    }

    fn slot_enter(&self) -> u32 {
        if !self.config.has_slot(self.thread()) {
            return 0;
        }
        self.run().threads[self.thread()].now.depth += 1;
        self.thread() as u32 + 1
    }

    fn slot_leave(&self, slot: u32) {
        if slot == 0 {
            return;
        }
        let thread = self.thread();
        let mut run = self.run();
        let now = &mut run.threads[thread].now;
        now.depth -= 1;
        let index = usize::from(now.depth);
        if index < layout::NODES {
            let size = headers::NODE.size;
            let node = layout::slot_nodes(thread + 1) + index * size;
            run.forget(node, size, |offset| index == 0 && is_count(offset, size));
        }
    }

    fn note(&self, mark: Mark, lock: usize, node: usize) {
        let thread = self.thread();
        let mut run = self.run();
        run.threads[thread].now.note(mark, lock, node);
        match mark {
            Mark::Acquired => {
                let holder = (0..run.threads.len()).find(|other| {
                    *other != thread && run.threads[*other].now.holding & 1 << lock != 0
                });
                if let Some(holder) = holder {
                    let other = thread;
                    drop(run);
                    self.stop(Violation::MutualExclusion { holder, other }.into());
                }
            }
            Mark::Released => {
                let size = self.lock.node_size();
                run.forget(layout::lent(thread, node), size, |_| false);
            }
            Mark::Begin | Mark::Release => {}
        }
    }

    fn result(&self, _digit: u64) {
        unreachable!("litmus tests are for searches");
    }

    fn broken(&self, _promise: &'static str) {
        unreachable!("lockrefs are for searches");
    }
}
