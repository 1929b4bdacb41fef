//! Machine descriptions for the Lockworks simulator.
//!
//! A machine is a TOML file: a nested topology, the costs of its caches, and what it costs to move
//! a cache line between two CPUs, by how the two are related. Every number carries its source and a
//! [`Mark`] saying how far to trust it. [`Machine::find`] opens one of the machines built into this
//! crate or a file of your own; [`measure::this_machine`] describes the machine it runs on.
//!
//! ```
//! use lockworks_machine::Machine;
//!
//! let machine = Machine::find("oracle-x5-4")?;
//! let far = machine.relation(0, machine.cpus() - 1);
//! assert_eq!(machine.relations()[far].name, "machine");
//! # Ok::<(), lockworks_machine::Error>(())
//! ```

pub mod affinity;
pub mod description;
mod error;
mod file;
mod kernel;
mod machine;
pub mod measure;
pub mod ticks;
mod units;
mod value;

use include_dir::{Dir, include_dir};

pub use description::{Builtin, Library};
pub use error::Error;
pub use kernel::Kernel;
pub use machine::{CoreType, Directory, Hops, Machine, MemoryOrder, Relation};
pub use units::{Count, Level};
pub use value::{Mark, Value};

static FILES: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../machines");

/// The machines that are part of Lockworks: every file in `machines/`.
pub const MACHINES: Library = Library {
    kind: "machine",
    directory: "machines",
    command: "lockworks machines",
    files: &FILES,
};

/// The machines that are part of Lockworks, by name.
///
/// # Errors
///
/// If a file in `machines/` is not UTF-8.
pub fn builtin() -> Result<Vec<Builtin>, Error> {
    MACHINES.all()
}
