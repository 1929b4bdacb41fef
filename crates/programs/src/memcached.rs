//! memcached under memaslap, which Debian calls memcaslap.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::process::{Process, command, output};
use crate::{LoadOutcome, Program, Runner, Size};

/// The cache, loaded with get and set.
pub struct Memcached;

/// The counts of the load that must be the same under every lock.
const COUNTS: [&str; 5] = [
    "cmd_get",
    "cmd_set",
    "get_misses",
    "verify_misses",
    "verify_failed",
];

/// The statistics of the server that must be the same under every lock.
const STATISTICS: [&str; 5] = ["get_hits", "get_misses", "curr_items", "evictions", "bytes"];

impl Program for Memcached {
    fn name(&self) -> &'static str {
        "memcached"
    }

    fn operation(&self) -> &'static str {
        "get, and every tenth a set"
    }

    fn needs(&self) -> Vec<PathBuf> {
        ["memcached", "memcaslap", "memcstat"]
            .map(PathBuf::from)
            .into()
    }

    fn clients(&self, size: Size) -> &'static [usize] {
        size.of(&[16], &[4, 16, 64])
    }

    fn run(&self, runner: &Runner, clients: usize, size: Size) -> Result<LoadOutcome> {
        let directory = tempfile::tempdir()?;
        let said = directory.path().join("port");
        let mut server = Process::start(
            "memcached",
            runner
                .command("memcached")
                .args(["--user", "root", "--listen", "127.0.0.1"])
                .args(["--port", "-1", "--udp-port", "0", "--threads", "4"])
                .env("MEMCACHED_PORT_FILENAME", &said),
        )?;
        let mut port = None;
        server.wait_until(|| {
            let said = fs::read_to_string(&said).unwrap_or_default();
            port = said.trim().strip_prefix("TCP INET: ").map(str::to_string);
            port.is_some()
        })?;
        runner.check(&server)?;
        let server_at = format!("127.0.0.1:{}", port.context("no port")?);

        let operations = size.of(20_000, 100_000);
        let load = output(
            "memcaslap",
            command("memcaslap")
                .args([
                    "-s", &server_at, "-T", "2", "-X", "100", "-w", "1k", "-v", "1",
                ])
                .args(["-c", &clients.to_string(), "-x", &operations.to_string()]),
        )?;
        let server_arg = format!("--servers={server_at}");
        let statistics = output("memcstat", command("memcstat").arg(server_arg))?;
        server.terminate()?;

        let per_second = load
            .split_once("TPS: ")
            .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok())
            .with_context(|| format!("memcaslap gave no TPS:\n{load}"))?;
        let results = [lines(&load, &COUNTS), lines(&statistics, &STATISTICS)].concat();
        Ok(LoadOutcome {
            results,
            per_second,
        })
    }
}

/// The lines `key: value` that have one of these keys.
fn lines(text: &str, keys: &[&str]) -> String {
    let of = |line: &&str| keys.iter().any(|key| line.split(':').next() == Some(key));
    let lines = text.lines().map(str::trim).filter(of);
    lines.map(|line| format!("{line}\n")).collect()
}
