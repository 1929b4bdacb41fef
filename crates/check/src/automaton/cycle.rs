//! Cycles of local states, without which every run of a check ends.

use super::Automata;

impl Automata {
    /// Whether a thread can reach a local state twice. If not, every run of the check ends.
    pub(crate) fn has_cycle(&self) -> bool {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Closed,
        }
        let mut marks = vec![Mark::New; self.locals.len()];
        for root in 0..self.locals.len() {
            let mut path = vec![(root, 0)];
            if marks[root] != Mark::New {
                continue;
            }
            marks[root] = Mark::Open;
            while let Some((local, edge)) = path.last_mut() {
                match self.locals[*local].next.get(*edge) {
                    Some((_, next)) => {
                        *edge += 1;
                        let next = next.local as usize;
                        match marks[next] {
                            Mark::Open => return true,
                            Mark::New => {
                                marks[next] = Mark::Open;
                                path.push((next, 0));
                            }
                            Mark::Closed => {}
                        }
                    }
                    None => {
                        marks[*local] = Mark::Closed;
                        path.pop();
                    }
                }
            }
        }
        false
    }
}
