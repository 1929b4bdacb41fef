//! How the commands talk to a person: the words they take and the results they show.

pub mod figures;
pub mod interruption;
pub mod output;
pub mod plot;
pub mod progress;
pub mod table;
pub mod terminal;
pub mod timeline;
pub mod usage;
pub mod waiters;
