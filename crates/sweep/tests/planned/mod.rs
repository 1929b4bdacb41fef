//! Plans that the tests run, here and as the command is called (`crates/cli/tests/sweep.rs`).

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

/// A directory with a plan and its store.
pub struct Sweep {
    pub directory: TempDir,
}

impl Sweep {
    pub fn new(plan: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let sweep = Self { directory };
        sweep.write("plan.toml", plan);
        sweep
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("a file");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file")
    }
}

/// Six short simulations and two checks.
pub const SMALL: &str = r#"
[[sweep]]
machines = ["oracle-x5-4"]
locks = ["qspinlock", "cna"]
threads = [1, 4]
seeds = 1
ms = 0.2

[[sweep]]
locks = "cna"
threads = 4
ms = 0.2
tune.hqlock_fairness_threshold = 10
set.machine.rmw_cycles = [10, 30]

[[sweep]]
kind = "check"
locks = ["tas", "ticket"]
"#;
