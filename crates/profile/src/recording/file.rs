//! The file of a recording: gzip of a line of JSON, and the steps in binary.
//! `docs/reference/recordings.md` describes it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use super::sites::Sites;

/// What a file calls itself.
const FORMAT: &str = "lockworks recording";

/// The version of the format. Another version is another format.
const VERSION: u32 = 1;

/// The bytes of a step.
const STEP: usize = 24;

/// The place of steps that have none.
const NO_PLACE: u32 = u32::MAX;

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[repr(u8)]
pub enum Kind {
    /// Begins.
    Begins = 1,
    /// Ends.
    Ends,
    /// Begins to wait for a lock that another thread has.
    Waits,
    /// Has acquired a lock.
    Acquires,
    /// Could not acquire a lock, without a wait or until a deadline.
    Fails,
    /// Releases a lock.
    Releases,
    /// Begins to wait for a condition.
    Awaits,
    /// Woke from that wait.
    Woken,
    /// The wait ended at its deadline.
    Expired,
    /// Wakes one that waits for a condition.
    Signals,
    /// Wakes all that do.
    Broadcasts,
    /// Returns from the call of the step before, in which it may have woken another thread.
    Returns,
    /// Lets other threads have the CPU, until it returns.
    Yields,
}

impl Kind {
    /// All kinds, in the order of their numbers, from 1.
    pub const ALL: [Self; 13] = [
        Self::Begins,
        Self::Ends,
        Self::Waits,
        Self::Acquires,
        Self::Fails,
        Self::Releases,
        Self::Awaits,
        Self::Woken,
        Self::Expired,
        Self::Signals,
        Self::Broadcasts,
        Self::Returns,
        Self::Yields,
    ];

    /// Whether its steps are of a lock or a condition.
    pub fn has_object(self) -> bool {
        !matches!(
            self,
            Self::Begins | Self::Ends | Self::Returns | Self::Yields
        )
    }

    /// The kind of this number.
    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// A step of a thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// When, in nanoseconds since the beginning of the recording.
    pub ns: u64,
    /// What the thread does.
    pub kind: Kind,
    /// The lock or condition, by its place in [`Recording::objects`]. None: the step has none.
    pub object: Option<u32>,
    /// The call, by its place in [`Recording::places`]. None: not known.
    pub place: Option<u32>,
    /// The time since the thread's last step in which it had no CPU, in nanoseconds.
    pub away_ns: u64,
    /// Whether it waited in the kernel meanwhile.
    pub slept: bool,
    /// Whether a trylock acquired the lock.
    pub tried: bool,
    /// The mode of a lock: 0 a mutex, 1 a reader, 2 a writer.
    pub mode: u8,
    /// The CPU. None: not known.
    pub cpu: Option<u16>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// The function that it runs. None: it is the first thread, or began before the recording.
    pub function: Option<String>,
    /// The number of its steps.
    pub steps: usize,
}

/// The first line of the file.
#[derive(Serialize, Deserialize)]
struct Header<Recording> {
    format: String,
    version: u32,
    #[serde(flatten)]
    recording: Recording,
}

/// What a program's threads did with locks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The seconds that were recorded.
    pub seconds: f64,
    /// The CPUs that the program could use.
    pub cpus: usize,
    /// Whether the time without a CPU is known.
    pub knows_away: bool,
    /// The nanoseconds that steps add to the time for which a lock is held, and to the time until its next
    /// acquisition. The time of an acquisition and a release of a free mutex is in them.
    pub step_ns: [u64; 2],
    /// Whether a thread had a real-time priority.
    #[serde(default)]
    pub real_time: bool,
    /// The CPUs that other work had meanwhile, on average.
    pub other_cpus: f64,
    /// The description of the machine, as `lockworks machines this` writes it. None: it was not measured.
    pub machine: Option<String>,
    /// Steps that had no room.
    pub lost: u64,
    /// Processes of the program that were not recorded.
    pub other_processes: u64,
    /// The threads.
    pub threads: Vec<Thread>,
    /// The locks and conditions: the variable's name if it has one, else the address.
    pub objects: Vec<String>,
    /// The places in the code.
    pub places: Vec<String>,
    /// Where plans find the locks.
    #[serde(default)]
    pub sites: Sites,
    /// The steps of all threads, thread by thread, each in its order.
    #[serde(skip)]
    pub steps: Vec<Step>,
}

/// A lock of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct Lock {
    /// The lock: its name, or its address.
    pub lock: String,
    /// The place that acquired it first.
    pub place: String,
    /// The number of acquisitions.
    pub acquisitions: u64,
    /// Those for which a thread had to wait.
    pub contended: u64,
}

/// A recording in figures.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The number of steps.
    pub steps: u64,
    /// The number of threads.
    pub threads: u64,
    /// The seconds that were recorded.
    pub seconds: f64,
    /// The acquisitions of all locks.
    pub acquisitions: u64,
    /// Those for which a thread had to wait.
    pub contended: u64,
    /// The share of the threads' time in which they had no CPU.
    pub away_share: f64,
    /// Whether that is known.
    pub knows_away: bool,
    /// Steps that had no room.
    pub lost: u64,
    /// The locks, those with the most acquisitions first.
    pub locks: Vec<Lock>,
}

impl Recording {
    /// Writes the file.
    pub fn write(&self, to: impl Write) -> Result<()> {
        let header = Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            recording: self,
        };
        let mut to = GzEncoder::new(to, Compression::fast());
        serde_json::to_writer(&mut to, &header)?;
        to.write_all(b"\n")?;
        for step in &self.steps {
            let mut bytes = [0; STEP];
            bytes[..8].copy_from_slice(&step.ns.to_le_bytes());
            bytes[8..12].copy_from_slice(&step.object.unwrap_or(NO_PLACE).to_le_bytes());
            bytes[12..16].copy_from_slice(&step.place.unwrap_or(NO_PLACE).to_le_bytes());
            let away = u32::try_from(step.away_ns / 16).unwrap_or(u32::MAX);
            bytes[16..20].copy_from_slice(&away.to_le_bytes());
            bytes[20..22].copy_from_slice(&step.cpu.unwrap_or(u16::MAX).to_le_bytes());
            bytes[22] = step.kind as u8;
            bytes[23] = step.mode | u8::from(step.slept) << 2 | u8::from(step.tried) << 3;
            to.write_all(&bytes)?;
        }
        to.finish()?;
        Ok(())
    }

    /// Reads the file at a path.
    ///
    /// # Errors
    ///
    /// If it is no recording, one of another version, or cut off.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        let file = std::fs::File::open(path).with_context(|| {
            format!("cannot read {shown}; `lockworks record -o {shown}` writes one")
        })?;
        Self::read(file).with_context(|| format!("{shown} cannot be used"))
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// As [`Recording::open`].
    pub fn read(from: impl Read) -> Result<Self> {
        let mut from = BufReader::new(GzDecoder::new(from));
        let mut line = Vec::new();
        let no_recording = "it is no recording; `lockworks record` makes one";
        from.read_until(b'\n', &mut line).context(no_recording)?;
        let head: serde_json::Value = serde_json::from_slice(&line).context(no_recording)?;
        ensure!(head["format"] == FORMAT, no_recording);
        if head["version"] != VERSION {
            bail!(
                "it is a recording of version {}, and this command reads version {VERSION}; record again",
                head["version"]
            );
        }
        let head: Header<Self> = serde_json::from_value(head).context("its header is damaged")?;
        let mut recording = head.recording;
        let cpus = recording.cpus;
        ensure!(
            cpus > 0 && (0.0..=cpus as f64).contains(&recording.other_cpus),
            "its header is damaged: {} of {cpus} CPUs with other work",
            recording.other_cpus
        );
        let cut = "it is cut off; record again";
        let damaged = "a step is damaged; record again";
        let mut steps = Vec::new();
        for thread in &recording.threads {
            let mut last = 0;
            for _ in 0..thread.steps {
                let mut bytes = [0; STEP];
                from.read_exact(&mut bytes).context(cut)?;
                let step = recording.step(&bytes).context(damaged)?;
                ensure!(step.ns >= last, damaged);
                last = step.ns;
                steps.push(step);
            }
        }
        // The end has the check sum.
        ensure!(from.read(&mut [0]).context(cut)? == 0, damaged);
        recording.steps = steps;
        Ok(recording)
    }

    /// The steps of each thread.
    pub fn by_thread(&self) -> impl Iterator<Item = (&Thread, &[Step])> {
        let mut at = 0;
        self.threads.iter().map(move |thread| {
            let steps = &self.steps[at..at + thread.steps];
            at += thread.steps;
            (thread, steps)
        })
    }

    /// Whether a lock was acquired.
    pub fn has_locks(&self) -> bool {
        self.steps.iter().any(|step| step.kind == Kind::Acquires)
    }

    /// The figures.
    pub fn summary(&self) -> Summary {
        let mut locks: BTreeMap<u32, Lock> = BTreeMap::new();
        let (mut away_ns, mut life_ns) = (0, 0);
        for (_, steps) in self.by_thread() {
            // That of the first step is before it.
            away_ns += steps.iter().skip(1).map(|step| step.away_ns).sum::<u64>();
            life_ns += match steps {
                [first, .., last] => last.ns - first.ns,
                _ => 0,
            };
            let mut waits = false;
            for step in steps {
                if let (Kind::Acquires, Some(object)) = (step.kind, step.object) {
                    let lock = locks.entry(object).or_insert_with(|| Lock {
                        lock: self.objects[object as usize].clone(),
                        place: step
                            .place
                            .map_or_else(String::new, |at| self.places[at as usize].clone()),
                        acquisitions: 0,
                        contended: 0,
                    });
                    lock.acquisitions += 1;
                    lock.contended += u64::from(waits);
                }
                waits = step.kind == Kind::Waits;
            }
        }
        let mut locks: Vec<Lock> = locks.into_values().collect();
        locks.sort_by_key(|lock| std::cmp::Reverse(lock.acquisitions));
        Summary {
            steps: self.steps.len() as u64,
            threads: self.threads.len() as u64,
            seconds: self.seconds,
            acquisitions: locks.iter().map(|lock| lock.acquisitions).sum(),
            contended: locks.iter().map(|lock| lock.contended).sum(),
            away_share: away_ns as f64 / life_ns.max(1) as f64,
            knows_away: self.knows_away,
            lost: self.lost,
            locks,
        }
    }

    /// A step of the file. None: it names what does not exist.
    fn step(&self, bytes: &[u8]) -> Option<Step> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let named = |at: usize, names: &[String]| match word(at) {
            NO_PLACE => Some(None),
            n => ((n as usize) < names.len()).then_some(Some(n)),
        };
        let cpu = u16::from_le_bytes([bytes[20], bytes[21]]);
        let kind = Kind::of(bytes[22])?;
        let object = named(8, &self.objects)?;
        if object.is_some() != kind.has_object() {
            return None;
        }
        Some(Step {
            ns: u64::from_le_bytes(bytes[..8].try_into().expect("8 bytes")),
            kind,
            object,
            place: named(12, &self.places)?,
            away_ns: u64::from(word(16)) * 16,
            slept: bytes[23] & 4 != 0,
            tried: bytes[23] & 8 != 0,
            mode: bytes[23] & 3,
            cpu: (cpu != u16::MAX).then_some(cpu),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording() -> Recording {
        let step = |ns, kind, away_ns| Step {
            ns,
            kind,
            object: (kind != Kind::Begins).then_some(0),
            place: (kind == Kind::Acquires).then_some(1),
            away_ns,
            slept: away_ns > 0,
            tried: kind == Kind::Acquires,
            mode: 2,
            cpu: Some(3),
        };
        Recording {
            command: vec!["program".to_owned()],
            seconds: 1.5,
            cpus: 2,
            knows_away: true,
            step_ns: [20, 30],
            real_time: true,
            other_cpus: 0.5,
            machine: Some("name = \"m\"".to_owned()),
            lost: 0,
            other_processes: 0,
            threads: [2, 3]
                .map(|steps| Thread {
                    function: Some("run".to_owned()),
                    steps,
                })
                .to_vec(),
            objects: vec!["lock".to_owned()],
            places: vec!["main".to_owned(), "run".to_owned()],
            sites: Sites::default(),
            steps: vec![
                step(0, Kind::Begins, 4800),
                step(100, Kind::Acquires, 0),
                step(50, Kind::Waits, 0),
                step(450, Kind::Acquires, 320),
                step(550, Kind::Releases, 0),
            ],
        }
    }

    fn written(recording: &Recording) -> Vec<u8> {
        let mut bytes = Vec::new();
        recording.write(&mut bytes).expect("written");
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(
            Recording::read(&*written(&recording())).expect("read"),
            recording()
        );
    }

    #[test]
    fn contended_acquisitions_and_time_without_a_cpu_are_counted() {
        let summary = recording().summary();
        assert_eq!((summary.acquisitions, summary.contended), (2, 1));
        assert!((summary.away_share - 320.0 / 600.0).abs() < 1e-9);
        assert_eq!(summary.locks[0].place, "run");
    }

    #[test]
    fn a_file_that_is_cut_or_of_another_version_is_refused() {
        let whole = written(&recording());
        for end in 0..whole.len() {
            assert!(Recording::read(&whole[..end]).is_err(), "{end}");
        }
        let mut other = GzEncoder::new(Vec::new(), Compression::fast());
        other
            .write_all(b"{\"format\":\"lockworks recording\",\"version\":99}\n")
            .expect("written");
        let error =
            Recording::read(&*other.finish().expect("written")).expect_err("another version");
        assert!(error.to_string().contains("version 99"), "{error:#}");
        let mut damaged = recording();
        damaged.places.pop();
        assert!(Recording::read(&*written(&damaged)).is_err());
        let damages: [fn(&mut Recording); 6] = [
            |of| of.steps[3].ns = 10,
            |of| of.steps[3].object = None,
            |of| of.threads[0].steps = usize::MAX,
            |of| of.threads[1].steps -= 1,
            |of| of.cpus = 0,
            |of| of.other_cpus = 1e300,
        ];
        for (number, damage) in damages.iter().enumerate() {
            let mut damaged = recording();
            damage(&mut damaged);
            assert!(Recording::read(&*written(&damaged)).is_err(), "{number}");
        }
    }
}
