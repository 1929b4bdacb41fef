//! Explores all states of threads that share memory.
//!
//! A [`Model`] says what each thread may do next, and what is promised. A [`Search`] goes through all of its
//! states, breadth first, and a [`Run`] through some at random. A [`State`] is that of a promise-free view
//! machine, with which models of weak memory can be made.

mod limits;
mod model;
mod random;
mod results;
mod search;
mod state;
mod symmetry;

pub use limits::{LIMIT_OF_STATES, Limits};
pub use model::{Model, Stop, Stops};
pub use random::Run;
pub use results::{Broken, Coverage, End, Step};
pub use search::{
    Encoded, Expanded, Expander, Halt, Keeper, Kept, KeptError, More, Outcome, Proof, Search,
    SearchPlan,
};
pub use state::{
    Barrier, CellNames, Histories, LocalId, Message, RenamedCells, Sibling, State, Thread, View,
    WINDOW, WORD, Window, merged,
};
pub use symmetry::{Composed, Naming, Renaming, Symmetry};
