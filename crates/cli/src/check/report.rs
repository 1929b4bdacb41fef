//! The result of a check, as text and as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use itertools::Itertools;
use lockworks_check::mutants::{SizeShows, shows};
use lockworks_check::{
    Broken, Check, CheckOutcome, Config, Coverage, End, Event, LIMIT_OF_STATES, Memory, Order,
    RandomOutcome, RandomRuns, Site, Token, TraceStep, WINDOW, loaded_hint, loaded_makes,
    loaded_options, loaded_source, loaded_summary,
};
use serde::{Serialize, Serializer};

use lockworks_ui::output;
use lockworks_ui::plot::figure::{Data, Draw, Figure};
use lockworks_ui::terminal::fitted;

/// The result of a check.
#[derive(Serialize)]
pub struct CheckReport {
    #[serde(flatten)]
    config: Config,
    /// All states were explored.
    pub complete: bool,
    /// The limit that ended the check; none if a promise is broken.
    limit: Option<&'static str>,
    #[serde(flatten)]
    extent: Extent,
    seconds: f64,
    violations: usize,
    /// The run that breaks a promise.
    #[serde(flatten, serialize_with = "or_nulls")]
    pub counterexample: Option<Counterexample>,
    /// What a complete search of this size can find, by the mistakes that are planted in the lock.
    size: Option<SizeShows>,
    /// Operations of which one with a stronger order keeps the promises.
    pub stronger: Vec<Stronger>,
    /// Operations of the lock that no run reached; empty if a promise is broken.
    uncovered: Vec<Uncovered>,
    /// The events that the lock counted; empty if a promise is broken.
    events: Vec<Event>,
}

/// How much was checked.
#[derive(Serialize)]
#[serde(untagged)]
enum Extent {
    /// A search.
    Search(Coverage),
    /// Random runs.
    Random {
        /// The number of runs that were asked for.
        random: u64,
        seed: u64,
        /// The number of runs that were made.
        runs: u64,
        /// The number of those that were cut.
        cut_runs: u64,
        /// The number of steps of all runs.
        steps: u64,
    },
}

/// A run that breaks a promise.
pub struct Counterexample {
    /// The promise.
    pub broken: Broken,
    /// The steps of the run.
    pub trace: Vec<TraceStep>,
    /// The run as a word to replay.
    pub token: String,
}

impl Counterexample {
    /// The command that repeats the run.
    pub fn replay(&self) -> String {
        let source = loaded_options().map(|options| options + " ");
        let source = source.unwrap_or_default();
        format!("lockworks check {source}--replay {}", self.token)
    }

    /// The run of a check that breaks a promise.
    pub fn new(check: &Check, broken: Broken) -> Self {
        Self {
            token: Token::new(check, &broken).to_string(),
            trace: check.trace(&broken),
            broken,
        }
    }
}

#[derive(Serialize)]
struct Violation<'a> {
    name: &'a str,
    text: String,
}

#[derive(Default, Serialize)]
struct CounterexampleKeys<'a> {
    violation: Option<Violation<'a>>,
    trace: &'a [TraceStep],
    token: Option<&'a str>,
    shortest: Option<bool>,
}

impl<'a> From<&'a Counterexample> for CounterexampleKeys<'a> {
    fn from(found: &'a Counterexample) -> Self {
        Self {
            violation: Some(Violation {
                name: found.broken.violation.name(),
                text: found.broken.violation.to_string(),
            }),
            trace: &found.trace,
            token: Some(&found.token),
            shortest: Some(found.broken.shortest),
        }
    }
}

fn or_nulls<S: Serializer>(
    counterexample: &Option<Counterexample>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    counterexample
        .as_ref()
        .map_or_else(CounterexampleKeys::default, CounterexampleKeys::from)
        .serialize(serializer)
}

/// An operation, and a stronger order of it that suffices.
#[derive(Serialize)]
pub struct Stronger {
    pub file: &'static str,
    #[serde(skip)]
    pub path: &'static str,
    pub line: u32,
    operation: String,
    pub order: &'static str,
}

impl Stronger {
    fn of((site, order): (&'static Site, Order)) -> Self {
        Self {
            file: site.file(),
            path: site.path(),
            line: site.line,
            operation: site.to_string(),
            order: order.name(),
        }
    }
}

#[derive(Serialize)]
struct Uncovered {
    file: &'static str,
    line: u32,
    function: &'static str,
    operation: String,
}

impl CheckReport {
    /// The report on a search, and on the run that breaks a promise if the search found one.
    pub fn new(
        config: &Config,
        outcome: CheckOutcome,
        counterexample: Option<Counterexample>,
        stronger: Vec<(&'static Site, Order)>,
    ) -> Self {
        Self {
            stronger: stronger.into_iter().map(Stronger::of).collect(),
            config: config.clone(),
            complete: outcome.end == End::Kept,
            limit: match outcome.end {
                End::Unfinished(why) => Some(why),
                _ => None,
            },
            extent: Extent::Search(outcome.coverage),
            seconds: outcome.time.as_secs_f64(),
            violations: usize::from(counterexample.is_some()),
            size: match outcome.end {
                End::Kept if loaded_source().is_none() => shows(config),
                _ => None,
            },
            uncovered: uncovered(&outcome.covered),
            events: outcome.events,
            counterexample,
        }
        .unless_broken()
    }

    /// The report without what it says of locks that keep their promises, if this one does not.
    fn unless_broken(mut self) -> Self {
        if self.counterexample.is_some() {
            self.uncovered.clear();
            self.events.clear();
        }
        self
    }

    /// The report on random runs, and on the one that breaks a promise.
    pub fn of_random_runs(
        config: &Config,
        plan: &RandomRuns,
        outcome: RandomOutcome,
        counterexample: Option<Counterexample>,
    ) -> Self {
        let is_broken = counterexample.is_some();
        Self {
            config: config.clone(),
            complete: false,
            limit: (!is_broken && outcome.runs < plan.runs).then_some("the time limit is reached"),
            extent: Extent::Random {
                random: plan.runs,
                seed: plan.seed,
                runs: outcome.runs,
                cut_runs: outcome.cut,
                steps: outcome.steps,
            },
            seconds: outcome.time.as_secs_f64(),
            violations: usize::from(is_broken),
            size: None,
            stronger: Vec::new(),
            uncovered: uncovered(&outcome.covered),
            events: outcome.events,
            counterexample,
        }
        .unless_broken()
    }

    /// The configuration that was checked.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The number of states that a search found.
    fn states(&self) -> usize {
        match &self.extent {
            Extent::Search(coverage) => coverage.states,
            Extent::Random { .. } => 0,
        }
    }

    /// Whether a limit ended the check, other than the limit of states, which `--quick` sets.
    pub fn is_cut(&self) -> bool {
        self.limit.is_some_and(|limit| limit != LIMIT_OF_STATES)
    }

    /// The verdict, if a promise is broken or a limit ended the check.
    pub fn failure(&self) -> Option<String> {
        let failed = self.counterexample.is_some() || self.is_cut();
        failed.then(|| self.verdict().trim_end().to_owned())
    }

    /// Only the verdict, if no promise is broken.
    pub fn in_short(&self) -> String {
        match self.counterexample {
            Some(_) => self.to_string(),
            None => fitted(&self.verdict()),
        }
    }

    /// Threads and acquisitions of each.
    fn threads_and_acquisitions(&self) -> String {
        format!("{}x{}", self.config.threads, self.config.acquisitions)
    }

    /// The result in one line.
    fn verdict(&self) -> String {
        if let Some(found) = &self.counterexample {
            return format!("{}: VIOLATION: {}\n", self.config, found.broken.violation);
        }
        let (what, time) = (&self.config, duration(self.seconds));
        let coverage = match &self.extent {
            Extent::Search(coverage) => coverage,
            Extent::Random {
                runs,
                cut_runs,
                steps,
                seed,
                ..
            } => {
                let runs = grouped(*runs as usize);
                let steps = rounded(*steps as usize);
                let limit = self
                    .limit
                    .map_or_else(String::new, |why| format!("{why}; "));
                let cut = match cut_runs {
                    0 => String::new(),
                    cut => format!(", {} did not end", grouped(*cut as usize)),
                };
                return format!(
                    "{what}: {limit}{runs} random runs, no violation{cut}; {steps} steps, seed {seed}, {time}\n"
                );
            }
        };
        let merged = if coverage.merged { "merged " } else { "" };
        let states = format!("{} {merged}states", grouped(coverage.states));
        let how = match self.limit {
            Some(why) => format!(
                "not complete: {why}; {} states explored, {} waiting, depth {}",
                grouped(coverage.states - coverage.waiting),
                grouped(coverage.waiting),
                coverage.depth
            ),
            None => {
                let staleness = self.config.staleness.filter(|_| coverage.cut);
                let bounds = [
                    staleness.map(|bound| format!("staleness {bound}")),
                    coverage
                        .delays_cut
                        .then(|| format!("{WINDOW} delayed operations")),
                ];
                let bounds = bounds.into_iter().flatten().join(" and ");
                let within = if bounds.is_empty() { "" } else { " within " };
                format!("complete{within}{bounds}, no violation; {states}")
            }
        };
        let disk = match coverage.disk {
            0 => String::new(),
            bytes => format!(", {} MiB on disk", bytes.div_ceil(1 << 20)),
        };
        format!(
            "{what}: {how}, {} transitions, {} MiB{disk}, {time}\n",
            rounded(coverage.transitions),
            coverage.memory.div_ceil(1 << 20),
        )
    }
}

/// The reports of several checks.
pub struct CheckReports(pub Vec<CheckReport>);

/// What the model checker went through: a row for each lock and size of search.
impl Draw for CheckReports {
    fn figures(&self, command: &str) -> Vec<Figure> {
        let size = |search: &&CheckReport| {
            let of = &search.config;
            (of.lock.clone(), of.threads, of.acquisitions, of.memory)
        };
        let sizes = self.0.iter().map(|search| size(&search)).unique();
        let same = |of| self.0.iter().filter(|search| size(search) == of).collect();
        let rows: Vec<Vec<&CheckReport>> = sizes.map(same).collect();
        vec![Figure {
            id: "checked".to_owned(),
            title: "Checked while this page was made".to_owned(),
            text: "The model checker ran the locks' code in small cases: each search is one number of \
                   threads and acquisitions, with an option such as trylock or cancellation. A complete \
                   search went through every interleaving, and in weak memory every reordering that C11 \
                   allows, except load buffering (a load that sees a later store). Larger searches and \
                   planted mistakes: `lockworks check --help` and `lockworks check mutants`."
                .to_owned(),
            command: command.to_owned(),
            chart: None,
            data: Data::of(
                &rows,
                &[
                    ("lock", &|those| those[0].config.lock.as_str().into()),
                    ("threads", &|those| those[0].config.threads.into()),
                    ("acquisitions", &|those| those[0].config.acquisitions.into()),
                    ("memory", &|those| those[0].config.memory.name().into()),
                    ("searches", &|those| those.len().into()),
                    ("complete", &|those| those.iter().filter(|one| one.complete).count().into()),
                    ("states", &|those| those.iter().map(|one| one.states()).sum::<usize>().into()),
                    ("violations", &|those| those.iter().map(|one| one.violations).sum::<usize>().into()),
                ],
            ),
        }]
    }
}

/// What a check of a size finds.
pub fn seen(size: &SizeShows) -> String {
    let of_all = format!("finds {} of {} planted mistakes", size.found, size.mutants);
    match &size.best {
        _ if size.found == size.mutants => format!("finds all {} planted mistakes", size.mutants),
        best if size.found >= size.best_found => {
            let this = if size.is_best {
                ""
            } else {
                &format!(", as many as {best}")
            };
            format!("{of_all}{this}; the others need options or larger sizes")
        }
        best => format!("{of_all}; {best} finds {}", size.best_found),
    }
}

/// An event, and whether waiters were queued after it.
fn counted(event: &Event) -> String {
    let queue = match (event.queued, event.empty) {
        (true, true) => "queued and empty",
        (true, false) => "queued",
        _ => "empty",
    };
    format!("{} ({queue})", event.name)
}

/// Operations that no run reached, in files of which a run reached another: those of this lock. A lock that
/// was loaded from a source has no operations that are built in.
fn uncovered(covered: &[bool]) -> Vec<Uncovered> {
    let is_covered = |site: &Site| covered[site.number()];
    // A call of a source may have several sites, and so has one that is inlined. In a file as it stands, the
    // lines count: a futex call has sites for what it may do, and what makes the lock runs before the search.
    let stands = loaded_summary().is_some();
    let text = |site: &Site| {
        if stands {
            String::new()
        } else {
            site.to_string()
        }
    };
    let place = |site: &Site| (site.file(), site.line, text(site));
    let reached: BTreeSet<_> = Site::all()
        .iter()
        .filter(|site| is_covered(site))
        .map(place)
        .collect();
    let files: BTreeSet<_> = Site::all()
        .iter()
        .filter(|site| is_covered(site) && !site.is_of_client())
        .map(Site::file)
        .collect();
    let mut found: Vec<_> = Site::all()
        .iter()
        .filter(|site| !reached.contains(&place(site)) && files.contains(site.file()))
        .filter(|site| loaded_source().is_none() || !site.is_built_in())
        .filter(|site| !loaded_makes(site.function()))
        // Those of variables on a thread's stack are no operations.
        .filter(|site| site.order != Order::Plain)
        .map(|site| Uncovered {
            file: site.file(),
            line: site.line,
            function: site.function(),
            operation: site.to_string(),
        })
        .collect();
    found.sort_by_key(|site| (site.file, site.line));
    found
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&fitted(&self.verdict()))?;
        if let Some(found) = &self.counterexample {
            let places = self.stronger.iter();
            let places = places.map(|at| format!("{}:{} {}", at.file, at.line, at.order));
            return f.write_str(&run(found, &places.collect::<Vec<_>>()));
        }
        if let Some(shows) = &self.size {
            let size = self.threads_and_acquisitions();
            let line = format!("  complete for {size}, which {}", seen(shows));
            writeln!(f, "{}", fitted(&line))?;
        }
        let forms = self.config.other_forms();
        if !forms.is_empty() {
            writeln!(f, "  other forms of this lock: {}", forms.join(", "))?;
        }
        if !self.events.is_empty() {
            let events: Vec<String> = self.events.iter().map(counted).collect();
            let events = format!("  happened: {}", events.join(", "));
            writeln!(f, "{}", fitted(&events))?;
        }
        match loaded_source() {
            None => f.write_str(&never_reached(&self.uncovered.iter().collect::<Vec<_>>())),
            Some(_) => Ok(()),
        }
    }
}

/// A line with operations that no run reached, if there are any.
fn never_reached(uncovered: &[&Uncovered]) -> String {
    let mut lines: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for site in uncovered {
        lines.entry(site.file).or_default().insert(site.line);
    }
    if lines.is_empty() {
        return String::new();
    }
    let files = lines.iter();
    let files = files.map(|(file, lines)| format!("{file}:{}", lines.iter().join(",")));
    fitted(&format!("  never reached: {}\n", files.format(" ")))
}

/// The functions of a lock in a file, said once before its checks.
pub fn functions() -> String {
    let functions = loaded_summary();
    functions.map_or_else(String::new, |functions| {
        fitted(&format!("functions: {functions}\n"))
    })
}

/// What is said once after all checks of a lock that was loaded from a source.
pub fn of_source(reports: &[CheckReport]) -> String {
    let Some(path) = loaded_source() else {
        return String::new();
    };
    let broken: Vec<_> = reports
        .iter()
        .filter(|report| report.counterexample.is_some())
        .collect();
    if !broken.is_empty() {
        let is_c11 = |report: &&CheckReport| report.config.memory == Memory::C11;
        let hint = loaded_hint().filter(|_| broken.iter().all(is_c11));
        let tries = broken.iter().all(|report| report.config.trylock);
        let zero =
            "Only trials break it. If 0 is success: --functions trylock=!NAME, or trywait=!NAME";
        let hints = [hint, tries.then_some(zero)].into_iter().flatten();
        return hints.map(|hint| fitted(&format!("{hint}\n"))).collect();
    }
    let mut text = String::new();
    let complete = reports.iter().filter(|report| report.complete);
    let sizes: Vec<String> = complete
        .map(CheckReport::threads_and_acquisitions)
        .unique()
        .collect();
    if !sizes.is_empty() {
        text += &fitted(&format!(
            "  complete for {}; which mistakes that finds: lockworks check mutants --source {}\n",
            sizes.join(" and "),
            path.display()
        ));
    }
    // What one use of the lock does not reach, another may.
    let place = |site: &Uncovered| (site.file, site.line, site.operation.clone());
    let of_others: Vec<BTreeSet<_>> = reports
        .iter()
        .map(|report| report.uncovered.iter().map(place).collect())
        .collect();
    let uncovered = reports.first().map_or(&[][..], |first| &first.uncovered);
    let uncovered: Vec<_> = uncovered
        .iter()
        .filter(|site| of_others.iter().all(|sites| sites.contains(&place(site))))
        .collect();
    text + &never_reached(&uncovered)
}

/// A run that was replayed.
#[derive(Serialize)]
pub struct Replay<'a> {
    #[serde(flatten)]
    config: &'a Config,
    mutation: Option<String>,
    violations: usize,
    #[serde(flatten)]
    keys: CounterexampleKeys<'a>,
}

impl<'a> Replay<'a> {
    /// The report on a token's run.
    pub fn new(token: &'a Token, found: &'a Counterexample) -> Self {
        Self {
            config: &token.config,
            mutation: mutation(token),
            violations: 1,
            keys: CounterexampleKeys::from(found),
        }
    }
}

/// A run that was replayed, as text.
pub fn replayed(token: &Token, found: &Counterexample) -> String {
    let mutation = mutation(token).map_or_else(String::new, |m| format!(", changed: {m}"));
    let verdict = format!(
        "{}{mutation}: VIOLATION: {}\n",
        token.config, found.broken.violation
    );
    fitted(&verdict) + &run(found, &[])
}

fn mutation(token: &Token) -> Option<String> {
    let mutation = token.mutation?;
    let site = mutation.site.and_then(|number| Site::all().get(number));
    Some(match site {
        Some(site) => format!("{site:?}: {:?}", mutation.change),
        None => format!("{:?}", mutation.change),
    })
}

/// The most steps of a run that are shown as text: the last ones.
const SHOWN: usize = 100;

/// A table of the steps, and the command that replays them.
fn run(found: &Counterexample, stronger: &[String]) -> String {
    let queues = found.trace.iter().any(|step| !step.queue.is_empty());
    // The effects say what is in the fields of a lock that does not describe its word.
    let words = loaded_summary().is_none();
    let header = [
        "step",
        "thread",
        "place",
        "function: operation",
        "order",
        "effect",
        "lock",
        "queue",
    ];
    let columns = header.len() - usize::from(!queues) - usize::from(!words);
    let mut table = output::table(&header[..columns]);
    let left_out = found.trace.len().saturating_sub(SHOWN);
    for (i, step) in found.trace.iter().enumerate().skip(left_out) {
        let cells = [
            (i + 1).to_string(),
            step.thread.to_string(),
            step.place.clone(),
            step.operation.clone(),
            step.order.to_owned(),
            step.effect.clone(),
            step.word.clone(),
            step.queue.clone(),
        ];
        table.add_row(&cells[..columns]);
    }
    let shortest = match found.broken.shortest {
        true => "No shorter run breaks a promise.",
        false => "A shorter run may exist: none was found in time.",
    };
    let before = match left_out {
        0 => String::new(),
        n => format!("The {n} steps before them: --json.\n"),
    };
    let stronger = match stronger {
        [] => String::new(),
        places => format!("One stronger order would do: {}\n", places.join(", ")),
    };
    let replay = found.replay();
    format!("{table}\n{before}{shortest}\n{stronger}replay: {replay}\n")
}

/// A number with commas between groups of three digits.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn rounded(number: usize) -> String {
    match number {
        0..1_000_000 => grouped(number),
        _ => format!("{:.1} M", number as f64 / 1e6),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        ..9.95 => format!("{seconds:.1} s"),
        _ => format!("{seconds:.0} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::{duration, grouped, rounded};

    #[test]
    fn a_size_is_not_compared_with_itself() {
        let shows = |is_best| {
            super::seen(&super::SizeShows {
                mutants: 51,
                found: 43,
                best: "3x2".to_owned(),
                best_found: 43,
                is_best,
            })
        };
        let rest = "; the others need options or larger sizes";
        let found = "finds 43 of 51 planted mistakes";
        assert_eq!(shows(true), format!("{found}{rest}"));
        assert_eq!(shows(false), format!("{found}, as many as 3x2{rest}"));
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_218_768), "1,218,768");
        assert_eq!(rounded(7_123_456), "7.1 M");
        assert_eq!(rounded(71_234), "71,234");
        assert_eq!(duration(0.04), "0.0 s");
        assert_eq!(duration(35.4), "35 s");
    }
}
