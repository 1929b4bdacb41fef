//! Livelocks: states from which no progress leads to an end.

use super::Search;

impl<const N: usize> Search<'_, N> {
    /// A state from which no progress leads to an end: a livelock.
    pub(super) fn stranded(&self) -> Option<u32> {
        if !self.model.automata.has_cycle() {
            // Every run ends, and none in a deadlock.
            return None;
        }
        let states = self.degrees.len();
        // Predecessors, by counting.
        let mut first = vec![0u32; states + 1];
        for to in &self.edges {
            first[*to as usize + 1] += 1;
        }
        for i in 0..states {
            first[i + 1] += first[i];
        }
        let mut next = first.clone();
        let mut predecessors = vec![0u32; self.edges.len()];
        let mut edges = self.edges.iter();
        for (state, degree) in self.degrees.iter().enumerate() {
            for to in edges.by_ref().take(*degree as usize) {
                let slot = &mut next[*to as usize];
                predecessors[*slot as usize] = state as u32;
                *slot += 1;
            }
        }
        let mut can_end = vec![false; states];
        let mut open = self.ends.clone();
        for end in &open {
            can_end[*end as usize] = true;
        }
        while let Some(state) = open.pop() {
            let range = first[state as usize] as usize..first[state as usize + 1] as usize;
            for from in &predecessors[range] {
                if !std::mem::replace(&mut can_end[*from as usize], true) {
                    open.push(*from);
                }
            }
        }
        can_end.iter().position(|can| !can).map(|i| i as u32)
    }
}
