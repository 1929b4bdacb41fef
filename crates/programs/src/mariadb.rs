//! MariaDB under mariadb-slap. Its clients increment counters in the same few rows and add new
//! rows.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{Process, command, output};
use crate::{LoadOutcome, Program, Runner, Size};

/// The server, loaded with update, insert and select.
pub struct Mariadb;

const CREATE: &str = "\
create table counters (id int primary key, n int) engine=innodb;
insert into counters values (1, 0), (2, 0), (3, 0);
create table events (id int auto_increment primary key, note varchar(20)) engine=innodb";

const QUERIES: &str = "\
update counters set n = n + 1 where id = 1;
insert into events (note) values ('happened');
select count(*) from counters where n > 0;
update counters set n = n + 1 where id = 2";

const RESULTS: &str = "\
select * from counters;
select count(*), min(id), max(id) from events;
checksum table counters, events;
check table counters, events";

impl Program for Mariadb {
    fn name(&self) -> &'static str {
        "MariaDB"
    }

    fn operation(&self) -> &'static str {
        "update, insert, select"
    }

    fn needs(&self) -> Vec<PathBuf> {
        [
            "mariadbd",
            "mariadb-install-db",
            "mariadb-admin",
            "mariadb",
            "mariadb-slap",
        ]
        .map(PathBuf::from)
        .into()
    }

    fn clients(&self, size: Size) -> &'static [usize] {
        size.of(&[8], &[8, 32])
    }

    fn run(&self, runner: &Runner, clients: usize, size: Size) -> Result<LoadOutcome> {
        let directory = tempfile::tempdir()?;
        let mut install = command("mariadb-install-db");
        output(
            "mariadb-install-db",
            options(&mut install, directory.path())
                .args(["--auth-root-authentication-method=normal", "--skip-test-db"]),
        )?;
        let mut serve = runner.command("mariadbd");
        let mut server = Process::start(
            "mariadbd",
            options(&mut serve, directory.path())
                .arg("--skip-networking")
                .arg("--innodb-flush-log-at-trx-commit=0"),
        )?;
        let client = |program| {
            let mut command = command(program);
            command.args(["--no-defaults", "--user=root"]);
            command.arg(socket(directory.path()));
            command
        };
        server
            .wait_until(|| output("mariadb-admin", client("mariadb-admin").arg("ping")).is_ok())?;
        runner.check(&server)?;

        let operations: u32 = size.of(1_600, 32_000);
        let load = output(
            "mariadb-slap",
            client("mariadb-slap")
                .args(["--create-schema=load", "--no-drop", "--delimiter=;"])
                .arg(format!("--create={CREATE}"))
                .arg(format!("--query={QUERIES}"))
                .arg(format!("--concurrency={clients}"))
                .arg(format!("--number-of-queries={operations}")),
        )?;
        let mut ask = client("mariadb");
        let results = output("mariadb", ask.args(["load", "--execute", RESULTS]))?;
        output("mariadb-admin", client("mariadb-admin").arg("shutdown"))?;
        server.finish()?;

        let seconds: f64 = load
            .split_once("Average number of seconds to run all queries: ")
            .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok())
            .with_context(|| format!("mariadb-slap printed no average time:\n{load}"))?;
        Ok(LoadOutcome {
            results,
            per_second: f64::from(operations) / seconds,
        })
    }
}

fn socket(directory: &Path) -> String {
    format!("--socket={}/socket", directory.display())
}

/// The options of the commands that make or serve a data directory.
fn options<'a>(command: &'a mut Command, directory: &Path) -> &'a mut Command {
    command
        .arg("--no-defaults")
        .arg(format!("--datadir={}/data", directory.display()))
        .arg(socket(directory))
        .args(["--user=root", "--innodb-log-file-size=8M"])
}
