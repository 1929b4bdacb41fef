//! Which CPUs the NUMA-aware locks treat as near each other.
//!
//! CPUs are near if they are on one NUMA node. With [`Near::LastLevelCache`] or
//! `LOCKWORKS_NEAR=llc` they are near if they share a last-level cache. Each set of near CPUs is
//! called a node here; nodes are numbered from 0 without gaps. `LOCKWORKS_TOPOLOGY=0-3,8:4-7` sets
//! the nodes by hand.

use core::ffi::{c_char, c_int, c_uint};

use crate::constants::{LW_NEAR_LLC, LW_NEAR_NODE};
use crate::lock_type::text;

unsafe extern "C" {
    safe fn lw_topology_nodes() -> c_uint;
    safe fn lw_topology_node_of_cpu(cpu: c_uint) -> c_uint;
    safe fn lw_current_node() -> c_uint;
    safe fn lw_topology_warning() -> *const c_char;
    safe fn lw_set_near(near: c_int) -> c_int;
}

/// The property that makes CPUs near each other.
///
/// ```
/// use lockworks::topology::{Near, set_near};
///
/// set_near(Near::LastLevelCache);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Near {
    /// They are on the same NUMA node.
    #[default]
    NumaNode = LW_NEAR_NODE as isize,
    /// They share a last-level cache.
    LastLevelCache = LW_NEAR_LLC as isize,
}

/// The number of nodes, at least 1.
///
/// ```
/// assert!(lockworks::topology::nodes() >= 1);
/// ```
pub fn nodes() -> u32 {
    lw_topology_nodes()
}

/// The node on which this thread runs now.
///
/// ```
/// use lockworks::topology::{current_node, nodes};
///
/// assert!(current_node() < nodes());
/// ```
pub fn current_node() -> u32 {
    lw_current_node()
}

/// The node of a CPU. It is 0 for a CPU that the system did not name.
///
/// ```
/// use lockworks::topology::{node_of_cpu, nodes};
///
/// assert!(node_of_cpu(0) < nodes());
/// assert_eq!(node_of_cpu(u32::MAX), 0);
/// ```
pub fn node_of_cpu(cpu: u32) -> u32 {
    lw_topology_node_of_cpu(cpu)
}

/// The reason why all CPUs count as one node although the system may have more. `None` if there is
/// no such problem.
///
/// ```
/// if let Some(warning) = lockworks::topology::warning() {
///     eprintln!("{warning}");
/// }
/// ```
pub fn warning() -> Option<&'static str> {
    let warning = lw_topology_warning();
    // SAFETY: a warning that is not NULL is a constant string.
    (!warning.is_null()).then(|| unsafe { text(warning) })
}

/// Reads the topology again, with this meaning of near instead of the one from the environment.
///
/// ```
/// use lockworks::topology::{Near, nodes, set_near};
///
/// set_near(Near::NumaNode);
/// println!("{} NUMA nodes", nodes());
/// ```
pub fn set_near(near: Near) {
    let refused = lw_set_near(near as c_int);
    debug_assert_eq!(refused, 0);
}
