//! The steps that automata have learned, in their order.
//!
//! Automata of the same check that learn the same steps in the same order give the same numbers to
//! local states. So several OS threads, each with automata of its own, can explore one check.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use lockworks_explore::LocalId;
use serde::{Deserialize, Serialize};

use crate::machine::Answer;

use super::{Automata, Next};

/// A step that was not known before.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Learned {
    thread: u8,
    local: LocalId,
    answer: Answer,
    /// The number of local states that are known after it.
    known: usize,
}

/// The steps learned so far.
#[derive(Debug, Default)]
pub(crate) struct Log {
    steps: Mutex<Vec<Learned>>,
    /// Their number.
    count: AtomicUsize,
}

impl Log {
    /// A log of these steps.
    pub(crate) fn of(steps: Vec<Learned>) -> Arc<Self> {
        Arc::new(Self {
            count: AtomicUsize::new(steps.len()),
            steps: Mutex::new(steps),
        })
    }

    /// The steps.
    pub(crate) fn steps(&self) -> MutexGuard<'_, Vec<Learned>> {
        self.steps.lock().expect("lock code does not panic")
    }
}

impl Automata {
    /// The step of `thread` from `local` with `answer`, which these automata do not know.
    #[cold]
    pub(super) fn find_out(&mut self, thread: usize, local: LocalId, answer: Answer) -> Next {
        let log = Arc::clone(&self.log);
        let mut steps = log.steps();
        self.learn_all(&steps);
        if let Some(next) = self.known(local, answer) {
            return next.clone();
        }
        let next = self.learn_for_all_alike(thread, local, answer);
        steps.push(Learned {
            thread: thread as u8,
            local,
            answer,
            known: self.locals.len(),
        });
        self.learned = steps.len();
        log.count.store(steps.len(), Ordering::Release);
        next
    }

    /// Learns the steps that other automata have learned.
    pub(crate) fn catch_up(&mut self) {
        if self.learned != self.log.count.load(Ordering::Acquire) {
            let log = Arc::clone(&self.log);
            self.learn_all(&log.steps());
        }
    }

    pub(crate) fn log(&self) -> &Arc<Log> {
        &self.log
    }

    fn learn_all(&mut self, steps: &[Learned]) {
        while let Some(step) = steps.get(self.learned) {
            self.learned += 1;
            self.learn_for_all_alike(step.thread.into(), step.local, step.answer);
            // Otherwise local states have values that lock code has not put there.
            assert_eq!(self.locals.len(), step.known, "automata differ");
        }
    }

    fn learn_for_all_alike(&mut self, thread: usize, local: LocalId, answer: Answer) -> Next {
        let next = self.learn(thread, local, answer);
        self.mirror(thread, local, answer, next.clone());
        next
    }
}
