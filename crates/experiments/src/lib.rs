//! Published tables about locks, their simulation, and fits of the simulation to them.
//!
//! A table is two files: `experiments/NAME.toml` describes the experiment behind it, and
//! `experiments/published/NAME.csv` holds the published figures. A saved fit is a file in
//! `experiments/fits/`. The crate embeds all files of these directories, so a new table needs its two
//! files and nothing else.
//!
//! [`PublishedTable`] reads them, [`reproduce`] simulates a table and compares it with what was
//! published, and [`fit`] searches values of the simulation that bring it closest to a few rows.

mod against_usl;
pub mod command_line;
mod comparison;
mod description;
mod embedded;
mod fitting;
mod published;
mod reproduction;
mod saved_fit;
mod simulation;
mod table;

pub use against_usl::{AgainstUsl, Errors};
pub use comparison::{ComparedFigure, Misordered, Speedup};
pub use fitting::{Candidates, FitPlan, FitResult, fit};
pub use reproduction::{ColumnErrors, FittedReproduction, JudgedOn, Reproduction, reproduce};
pub use saved_fit::{FittedValue, SavedFit};
pub use table::{PublishedSeries, PublishedTable};
