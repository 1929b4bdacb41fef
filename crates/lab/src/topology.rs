//! The CPUs, NUMA nodes and memory of a guest.

/// A topology that is not possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)]
pub enum TopologyError {
    #[error("a guest has 1 to {MOST_CPUS} CPUs, not {0}")]
    Cpus(u32),
    #[error("a guest has 1 to {MOST_NODES} nodes, not {0}")]
    Nodes(u32),
    #[error("{cpus} CPUs are too few for {nodes} nodes; each node needs a CPU")]
    EmptyNodes { nodes: u32, cpus: u32 },
    #[error("{memory} MiB are not enough; give the guest at least {least}")]
    Memory { memory: u32, least: u32 },
}

/// The number of CPUs that the emulated interrupt controller supports.
const MOST_CPUS: u32 = 255;
/// The limit of the configured kernels, CONFIG_NODES_SHIFT=6.
const MOST_NODES: u32 = 64;
/// The least memory of a node, in MiB.
const NODE_MEMORY: u32 = 64;
/// The least memory of a guest, in MiB.
const LEAST_MEMORY: u32 = 256;

/// The memory that can be added to a running guest, in MiB: a block, as Linux on x86-64 has them.
pub(crate) const ADDED_MEMORY: u32 = 128;

/// CPUs and memory, distributed over nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Topology {
    nodes: u32,
    cpus: u32,
    node_memory: u32,
}

impl Topology {
    /// Makes a topology. `memory` is in MiB. Each node has an equal part of the memory, and of the CPUs
    /// if they can be divided equally.
    pub fn new(nodes: u32, cpus: u32, memory: u32) -> Result<Self, TopologyError> {
        if !(1..=MOST_CPUS).contains(&cpus) {
            return Err(TopologyError::Cpus(cpus));
        }
        if !(1..=MOST_NODES).contains(&nodes) {
            return Err(TopologyError::Nodes(nodes));
        }
        if nodes > cpus {
            return Err(TopologyError::EmptyNodes { nodes, cpus });
        }
        let least = LEAST_MEMORY.max(nodes * NODE_MEMORY);
        if memory < least {
            return Err(TopologyError::Memory { memory, least });
        }
        Ok(Self {
            nodes,
            cpus,
            node_memory: memory / nodes,
        })
    }

    /// The number of CPUs.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The options of QEMU. With `room`, memory of `ADDED_MEMORY` can be added while the guest runs.
    pub(crate) fn arguments(&self, room: bool) -> Vec<String> {
        let Self {
            nodes,
            cpus,
            node_memory,
        } = *self;
        // A socket that spans nodes would make the scheduler complain.
        let sockets = if cpus % nodes == 0 { nodes } else { cpus };
        let mut arguments = vec![
            "-smp".to_owned(),
            format!(
                "{cpus},sockets={sockets},cores={},threads=1",
                cpus / sockets
            ),
            "-m".to_owned(),
            match room {
                true => {
                    let memory = nodes * node_memory;
                    format!("{memory}M,slots=1,maxmem={}M", memory + ADDED_MEMORY)
                }
                false => format!("{}M", nodes * node_memory),
            },
        ];
        for node in 0..nodes {
            let (first, last) = (node * cpus / nodes, (node + 1) * cpus / nodes - 1);
            arguments.extend([
                "-object".to_owned(),
                format!("memory-backend-ram,id=m{node},size={node_memory}M"),
                "-numa".to_owned(),
                format!("node,nodeid={node},memdev=m{node},cpus={first}-{last}"),
            ]);
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_share_cpus_and_memory() {
        let text = Topology::new(4, 8, 2048)
            .unwrap()
            .arguments(false)
            .join(" ");
        assert!(text.starts_with("-smp 8,sockets=4,cores=2,threads=1 -m 2048M -object"));
        assert!(text.contains("id=m3,size=512M -numa node,nodeid=3,memdev=m3,cpus=6-7"));
    }

    #[test]
    fn uneven_nodes_have_every_cpu_once() {
        let text = Topology::new(3, 8, 2048).unwrap().arguments(true).join(" ");
        assert!(text.starts_with(
            "-smp 8,sockets=8,cores=1,threads=1 -m 2046M,slots=1,maxmem=2174M -object"
        ));
        for cpus in ["cpus=0-1", "cpus=2-4", "cpus=5-7"] {
            assert!(text.contains(cpus), "{text}");
        }
    }

    #[test]
    fn refuses_what_cannot_be() {
        let refused = |nodes, cpus, memory| Topology::new(nodes, cpus, memory).unwrap_err();
        assert_eq!(refused(1, 0, 2048), TopologyError::Cpus(0));
        assert_eq!(refused(1, 256, 2048), TopologyError::Cpus(256));
        assert_eq!(refused(0, 8, 2048), TopologyError::Nodes(0));
        assert_eq!(refused(65, 255, 9000), TopologyError::Nodes(65));
        let (nodes, cpus) = (4, 2);
        assert_eq!(
            refused(nodes, cpus, 2048),
            TopologyError::EmptyNodes { nodes, cpus }
        );
        let (memory, least) = (512, 16 * 64);
        assert_eq!(
            refused(16, 16, memory),
            TopologyError::Memory { memory, least }
        );
        assert!(Topology::new(1, 255, 256).is_ok());
    }
}
