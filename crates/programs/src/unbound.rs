//! Unbound under dnsperf. Each of its threads reads the rwlocks of its zones for every query.

use std::fmt::Write;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process::{Process, command, output};
use crate::{LoadOutcome, Program, Runner, Size};

/// The DNS server, loaded with queries of names that it knows and of names that do not exist.
pub struct Unbound;

/// The number of names that exist, and of those asked for that do not.
const NAMES: usize = 500;

const SERVER: &str = "/usr/sbin/unbound";

/// A count of the load that must be the same under every lock.
const COUNTS: [&str; 4] = [
    "Queries sent:",
    "Queries completed:",
    "Queries lost:",
    "Response codes:",
];

impl Program for Unbound {
    fn name(&self) -> &'static str {
        "Unbound"
    }

    fn operation(&self) -> &'static str {
        "query, each second one of a name that does not exist"
    }

    fn needs(&self) -> Vec<PathBuf> {
        [SERVER, "dnsperf"].map(PathBuf::from).into()
    }

    fn clients(&self, size: Size) -> &'static [usize] {
        size.of(&[8], &[4, 16])
    }

    fn run(&self, runner: &Runner, clients: usize, size: Size) -> Result<LoadOutcome> {
        let directory = tempfile::tempdir()?;
        let at = |name: &str| directory.path().join(name);
        let port = free_port()?.to_string();
        fs::write(at("unbound.conf"), configuration(directory.path(), &port))?;
        fs::write(at("queries"), queries())?;
        // AppArmor's rules for this path would let it read neither these files nor the library.
        fs::copy(SERVER, at("unbound"))?;
        let mut server = Process::start(
            "unbound",
            runner
                .command(at("unbound"))
                .args(["-d", "-p", "-c"])
                .arg(at("unbound.conf")),
        )?;
        server.wait_until(|| {
            let said = fs::read_to_string(at("log")).unwrap_or_default();
            said.contains("start of service")
        })?;
        runner.check(&server)?;

        let passes = size.of("20", "200");
        let load = output(
            "dnsperf",
            command("dnsperf")
                .args(["-s", "127.0.0.1", "-p", &port, "-n", passes, "-t", "60"])
                .args(["-c", &clients.to_string(), "-d"])
                .arg(at("queries")),
        )?;
        server.terminate()?;

        let counts = load.lines().map(str::trim);
        let counts = counts.filter(|line| COUNTS.iter().any(|count| line.starts_with(count)));
        let per_second = load
            .split_once("Queries per second:")
            .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok())
            .with_context(|| format!("dnsperf printed no rate:\n{load}"))?;
        Ok(LoadOutcome {
            results: counts.map(|line| format!("{line}\n")).collect(),
            per_second,
        })
    }
}

/// A port of 127.0.0.1 that nobody uses. Another program could take it before the server does.
fn free_port() -> Result<u16> {
    Ok(UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A server of one zone, with four threads. It asks no other server.
fn configuration(directory: &Path, port: &str) -> String {
    let directory = directory.display();
    let mut text = format!(
        "server:\n\
         interface: 127.0.0.1\n\
         port: {port}\n\
         num-threads: 4\n\
         do-ip6: no\n\
         do-daemonize: no\n\
         username: \"\"\n\
         chroot: \"\"\n\
         directory: \"{directory}\"\n\
         pidfile: \"\"\n\
         use-syslog: no\n\
         logfile: \"{directory}/log\"\n\
         module-config: \"iterator\"\n\
         local-zone: \"example.\" static\n"
    );
    for name in 0..NAMES {
        let _ = writeln!(text, "local-data: \"name{name}.example. A 127.0.0.1\"");
    }
    text + "remote-control:\ncontrol-enable: no\n"
}

fn queries() -> String {
    let queries = (0..NAMES).map(|name| format!("name{name}.example A\nnone{name}.example A\n"));
    queries.collect()
}
