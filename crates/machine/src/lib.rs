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

mod error;
mod file;
mod machine;
pub mod measure;
mod value;

pub use error::Error;
pub use machine::{Directory, Hops, Level, Machine, MemoryOrder, Relation};
pub use value::{Mark, Value};

/// A machine description that is part of this crate.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// What [`Machine::find`] takes.
    pub name: &'static str,
    /// The TOML.
    pub text: &'static str,
}

macro_rules! builtins {
    ($($name:literal)*) => {
        &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../../../machines/", $name, ".toml")),
        }),*]
    };
}

/// The machines that are part of this crate.
pub fn builtin() -> &'static [Builtin] {
    builtins! {
        "oracle-x5-4"
        "epyc-9654-nps1"
        "epyc-9654-nps2"
        "epyc-9654-nps4"
        "epyc-9654-nps12"
        "kunpeng-920"
        "westmere-ex-8"
        "westmere-ex-8x4"
        "haswell-ex-4"
        "sapphire-rapids-2"
        "ice-lake-8375c-2"
        "graviton4-2"
    }
}
