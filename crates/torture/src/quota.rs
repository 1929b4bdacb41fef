//! CPU quotas, as containers have them: a control group that may use the CPUs for a share of the time.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use serde::Serialize;

/// The period in which a group may use its quota, in microseconds: the default of Linux.
const PERIOD: u64 = 100_000;

/// The counts that the kernel gave for a quota when it was over.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Throttling {
    /// The share of all CPUs' time, in percent.
    pub percent: u32,
    /// The number of periods in which threads ran.
    pub periods: u64,
    /// The number of periods whose quota was used up before their end.
    pub throttled_periods: u64,
    /// The time for which CPUs were withheld, in seconds, of all CPUs together.
    pub throttled_seconds: f64,
}

/// The control group that this process is in, until this is dropped.
#[derive(Debug)]
pub struct Quota {
    percent: u32,
    group: PathBuf,
    /// The group that the process was in before.
    before: PathBuf,
}

impl Quota {
    /// Moves this process to a new group that may use `percent` of the time of `cpus` CPUs.
    pub fn enter(percent: u32, cpus: usize) -> Result<Self> {
        let quota = PERIOD * cpus as u64 * u64::from(percent) / 100;
        let before = own_group()?;
        let group = make_group(&before, quota).map_err(|error| {
            anyhow!(
                "cannot make a control group with a CPU quota: {error}; run as root, or without \
                 --quota under `systemd-run --user --scope -p CPUQuota={}%`",
                percent as usize * cpus
            )
        })?;
        let quota = Self {
            percent,
            group,
            before,
        };
        enter(&quota.group)?;
        Ok(quota)
    }

    /// The counts of the kernel.
    pub fn throttling(&self) -> Result<Throttling> {
        let path = self.group.join("cpu.stat");
        let text = fs::read_to_string(&path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let count = |name: &str| -> Option<f64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line?.trim().parse().ok()
        };
        let seconds = count("throttled_usec ").map(|us| us / 1e6);
        let seconds = seconds.or_else(|| count("throttled_time ").map(|ns| ns / 1e9));
        Ok(Throttling {
            percent: self.percent,
            periods: count("nr_periods ").unwrap_or(0.0) as u64,
            throttled_periods: count("nr_throttled ").unwrap_or(0.0) as u64,
            throttled_seconds: seconds.unwrap_or(0.0),
        })
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        // If this fails, the next command that makes a group removes this one.
        let _ = enter(&self.before).map(|()| fs::remove_dir(&self.group));
    }
}

fn enter(group: &Path) -> Result<()> {
    let path = group.join("cgroup.procs");
    fs::write(&path, "0").with_context(|| format!("cannot write to {}", path.display()))
}

/// The directory of this process' group, in the hierarchy that has CPU quotas.
fn own_group() -> Result<PathBuf> {
    let read = |path| fs::read_to_string(path).with_context(|| format!("cannot read {path}"));
    let (groups, mounts) = (read("/proc/self/cgroup")?, read("/proc/self/mountinfo")?);
    group_of(&groups, &mounts).context("no control groups with CPU quotas are mounted")
}

/// As [`own_group`], from the texts of these files.
fn group_of(groups: &str, mounts: &str) -> Option<PathBuf> {
    // Version 1 has a hierarchy for each controller, version 2 one for all, without a name.
    let has_cpu = |list: &str| list.split(',').any(|one| one == "cpu");
    let path = |is_ours: &dyn Fn(&str) -> bool| {
        let mut lines = groups.lines().map(|line| line.splitn(3, ':'));
        lines.find_map(|mut fields| {
            let (controllers, path) = (fields.nth(1)?, fields.next()?);
            is_ours(controllers).then_some(path)
        })
    };
    let mount = |is_ours: &dyn Fn(&str, &str) -> bool| {
        mounts.lines().find_map(|line| {
            let (place, system) = line.split_once(" - ")?;
            let mut place = place.split(' ').skip(3);
            let (root, at) = (place.next()?, place.next()?);
            let mut system = system.split(' ');
            let (kind, options) = (system.next()?, system.nth(1)?);
            is_ours(kind, options).then_some((root, at))
        })
    };
    let first = path(&has_cpu).zip(mount(&|kind, options| kind == "cgroup" && has_cpu(options)));
    let second = || path(&str::is_empty).zip(mount(&|kind, _| kind == "cgroup2"));
    let (path, (root, at)) = first.or_else(second)?;
    let below = Path::new(path).strip_prefix(root).ok()?;
    Some(Path::new(at).join(below))
}

/// Makes a group with this quota in each period, in the group `near` or beside it.
fn make_group(near: &Path, quota: u64) -> io::Result<PathBuf> {
    let name = format!("{PREFIX}{}", std::process::id());
    // In version 2, a group that has processes can have no groups with controllers.
    let parents = [Some(near), near.parent()];
    let mut made = Err(io::ErrorKind::NotFound.into());
    for parent in parents.into_iter().flatten() {
        remove_left_over(parent);
        made = make_in(parent, &name, quota);
        if made.is_ok() {
            break;
        }
    }
    made
}

fn make_in(parent: &Path, name: &str, quota: u64) -> io::Result<PathBuf> {
    let group = parent.join(name);
    // Fails in version 1, where groups always have their controller, and where it is enabled already.
    let _ = fs::write(parent.join("cgroup.subtree_control"), "+cpu");
    fs::create_dir(&group)?;
    let limited = if group.join("cpu.cfs_quota_us").exists() {
        fs::write(group.join("cpu.cfs_period_us"), PERIOD.to_string())
            .and_then(|()| fs::write(group.join("cpu.cfs_quota_us"), quota.to_string()))
    } else {
        fs::write(group.join("cpu.max"), format!("{quota} {PERIOD}"))
    };
    match limited {
        Ok(()) => Ok(group),
        Err(error) => {
            fs::remove_dir(&group)?;
            Err(error)
        }
    }
}

/// The names of groups are this and the number of the process.
const PREFIX: &str = "lockworks-quota-";

/// Removes the groups of commands that were killed.
fn remove_left_over(parent: &Path) {
    let is_left = |name: &OsStr| {
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        process.is_some_and(|process| !Path::new("/proc").join(process).exists())
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if is_left(&entry.file_name()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::group_of;
    use std::path::Path;

    #[test]
    fn the_group_is_found_in_both_versions() {
        let first = "3:cpuset:/\n1:cpu,cpuacct:/docker/ab\n0::/\n";
        let mounts = "30 24 0:25 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
                      31 24 0:26 /docker /sys/fs/cgroup/cpu rw,nosuid - cgroup cgroup rw,cpu,cpuacct\n\
                      32 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let group = group_of(first, mounts);
        assert_eq!(group.as_deref(), Some(Path::new("/sys/fs/cgroup/cpu/ab")));

        let second = "0::/user.slice/a.scope\n";
        let mounts = "25 24 0:22 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let group = group_of(second, mounts);
        let expected = Path::new("/sys/fs/cgroup/user.slice/a.scope");
        assert_eq!(group.as_deref(), Some(expected));

        assert_eq!(group_of(second, ""), None);
    }
}
