//! Properties of workload files: what no text may do.

use lockworks_machine::Machine;
use lockworks_properties::{names_a_line, nearly};
use proptest::prelude::*;

use super::workload_files::SMALL;
use super::{brief, lock};
use crate::{RunError, Scenario, WORKLOADS, Workload};

/// A text is refused in one line that names the place, or describes a workload that can be run.
fn refused_or_run(text: &str) -> Result<(), TestCaseError> {
    let workload = match Workload::parse(text, "x.toml") {
        Ok(workload) => workload,
        Err(error) => return names_a_line(&error.to_string()),
    };
    let machine = Machine::find("oracle-x5-4").unwrap();
    let checked = workload.check(&machine, 3);
    let scenario = Scenario::new(machine, workload);
    let mut run = brief(&scenario, lock("mutex37"), 3);
    run.seconds = 20e-6;
    match (checked, run.run()) {
        (Err(error), Err(RunError::Workload(_))) => names_a_line(&error.to_string()),
        (Ok(()), Ok(_) | Err(RunError::Deadlock { .. })) => Ok(()),
        (checked, run) => Err(TestCaseError::fail(format!("{checked:?}, but {run:?}"))),
    }
}

proptest! {
    #[test]
    fn any_text_is_refused_or_run(text in "\\PC*|.*") {
        refused_or_run(&text)?;
    }

    #[test]
    fn a_changed_file_is_refused_or_run(text in nearly(vec![SMALL], 3)) {
        refused_or_run(&text)?;
    }

    #[test]
    fn a_changed_workload_of_lockworks_is_refused_or_run(
        text in nearly(WORKLOADS.all().unwrap().iter().map(|builtin| builtin.text).collect(), 1),
    ) {
        refused_or_run(&text)?;
    }
}
