//! A run as a list of steps in words.

use std::fmt::Write as _;

use lockworks::LockType;
use lockworks_explore::{LocalId, Model as _, State, Step};

use crate::cells::{Findings, Parts, Place};
use crate::check::{Check, by_view};
use crate::config::{LOCKREF_COUNT, Subject, queue_of_tail};
use crate::headers::{self, NodeLayout};
use crate::image;
use crate::layout::{self, Region, UNINITIALISED};
use crate::model::{Choice, Model, Picks, Stop, woken};
use crate::results::Broken;
use crate::site::{OperationKind, Request};
use crate::violation::Violation;

/// The lowest bit of the tail in a lock's word.
const TAIL_SHIFT: u32 = headers::WORD.tail_shift;

/// One step of a run.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TraceStep {
    /// The thread.
    pub thread: usize,
    /// The source file and line.
    pub place: String,
    /// The function, the operation and its operand.
    pub operation: String,
    /// The memory order of the operation; empty if it has none.
    pub order: &'static str,
    /// The values that the operation read and wrote.
    pub effect: String,
    /// The lock words after the step.
    pub word: String,
    /// The queues after the step; empty if no thread is queued.
    pub queue: String,
}

impl Check<'_> {
    /// The run that broke a promise.
    ///
    /// # Panics
    /// If the run is not one of this check.
    pub fn trace(&self, broken: &Broken) -> Vec<TraceStep> {
        let (trace, _) = self.replay(&broken.run).expect("a run of this check");
        trace
    }

    /// Repeats a run that breaks a promise. None: this check has no such run.
    pub(crate) fn replay(&self, steps: &[Step]) -> Option<(Vec<TraceStep>, Violation)> {
        let mut findings = self.findings();
        loop {
            let attempt = by_view!(findings.view, self.attempt_replay(&mut findings, steps));
            if let Some(replayed) = attempt {
                return replayed;
            }
            findings = Findings::new(findings.view);
        }
    }

    /// Replays with views of N entries. None: N is too small.
    fn attempt_replay<const N: usize>(
        &self,
        findings: &mut Findings,
        steps: &[Step],
    ) -> Option<Option<(Vec<TraceStep>, Violation)>> {
        // A search makes random runs before it begins, and its violations may depend on their findings.
        let mut automata = self.rehearse::<N>(findings)?;
        while findings.view == N {
            let mut trace = Vec::new();
            let mut model = self.model::<N>(std::mem::take(findings), automata);
            match replay(&mut model, steps, &mut trace) {
                Ok(violation) => return Some(violation.map(|violation| (trace, violation))),
                Err(Stop::Violation(violation)) => return Some(Some((trace, violation))),
                Err(Stop::Restart) => (*findings, automata) = (model.findings, model.automata),
                Err(Stop::TooLarge(_)) => return Some(None),
            }
        }
        None
    }
}

/// Replays steps up to a violation. None: there are no such steps, or they break no promise.
fn replay<const N: usize>(
    model: &mut Model<N>,
    steps: &[Step],
    trace: &mut Vec<TraceStep>,
) -> Result<Option<Violation>, Stop> {
    let mut choices = Vec::new();
    let mut state = model.start()?;
    for (i, step) in steps.iter().enumerate() {
        let Some(choice) = model.choice(&state, *step, &mut choices)? else {
            return Ok(None);
        };
        let thread = usize::from(step.0);
        let before = state.clone();
        let result = model.step(&mut state, thread, choice);
        trace.push(describe(model, &before, &state, thread, choice));
        if matches!(result, Err(Stop::Violation(_))) && i + 1 < steps.len() {
            return Ok(None);
        }
        result?;
    }
    if model.is_over(&state) {
        return Ok(model.check_end(&state).err());
    }
    let mut can_go_on = false;
    for thread in 0..state.threads.len() {
        model.choices(&state, thread, &mut choices)?;
        can_go_on |= choices
            .iter()
            .any(|choice| Model::<N>::is_progress(*choice));
    }
    Ok(Some(match can_go_on {
        true => Violation::Livelock,
        false => model.deadlock(&state),
    }))
}

fn describe<const N: usize>(
    model: &Model<N>,
    before: &State<N>,
    after: &State<N>,
    thread: usize,
    choice: Choice,
) -> TraceStep {
    if choice == Choice::Barrier {
        return TraceStep {
            thread,
            place: String::new(),
            operation: "full barrier of a read-modify-write".to_owned(),
            order: "",
            effect: String::new(),
            word: lock_words(model, after),
            queue: queue(model, after),
        };
    }
    let local = model.chosen(before, thread, choice);
    let request = &model.operation(local).expect("it has made a choice");
    let site = request.site;
    let name = format!("{}: {site}", site.function());
    let (operation, order, effect) = match choice {
        Choice::Barrier => unreachable!("described above"),
        Choice::Delay => (
            name,
            "",
            "delayed, later operations may be done first".to_owned(),
        ),
        Choice::Forward { .. } => {
            let order = model.order(request).name();
            (
                name,
                order,
                "reads the thread's own delayed store".to_owned(),
            )
        }
        Choice::Late { picks, .. } => {
            let effect = effect(model, before, local, request, &picks);
            (
                name,
                model.order(request).name(),
                format!("done late: {effect}"),
            )
        }
        Choice::Interruption => ("interruption".to_owned(), "", String::new()),
        Choice::Fork => ("fork".to_owned(), "", "goes on in the child".to_owned()),
        Choice::Wake => ("wakes for no reason".to_owned(), "", String::new()),
        Choice::TimeOut => ("its sleep ends by time".to_owned(), "", String::new()),
        Choice::Operate { picks, .. } => {
            let order = match site.kind {
                OperationKind::Pause
                | OperationKind::Clock
                | OperationKind::Choose
                | OperationKind::PlainRead
                | OperationKind::PlainWrite => "",
                OperationKind::Park | OperationKind::Unpark => "",
                _ => model.order(request).name(),
            };
            (name, order, effect(model, before, local, request, &picks))
        }
    };
    TraceStep {
        thread,
        place: format!("{}:{}", site.file(), site.line),
        operation,
        order,
        effect,
        word: lock_words(model, after),
        queue: queue(model, after),
    }
}

fn effect<const N: usize>(
    model: &Model<N>,
    before: &State<N>,
    local: LocalId,
    request: &Request,
    picks: &Picks,
) -> String {
    let kind = model.kind(request);
    let show = |value| value_at(model, request, value);
    match kind {
        OperationKind::Fence | OperationKind::Pause => String::new(),
        OperationKind::PlainRead | OperationKind::PlainWrite => "the protected data".to_owned(),
        OperationKind::Clock => match picks[0] {
            0 => "no threshold reached".to_owned(),
            _ => "every threshold reached".to_owned(),
        },
        OperationKind::Choose => format!("{}", picks[0]),
        OperationKind::Unpark => format!("wakes {}", u8::from(woken(picks).is_some())),
        OperationKind::Store => {
            let mut text = format!(
                "{} := {}",
                name_of(model.config.threads, request.address),
                show(request.a)
            );
            if let Some(parts) = model.parts_of(local)
                && is_behind(model, before, &parts, picks, 0)
            {
                text += ", before a write that others have seen";
            }
            text
        }
        _ => {
            let parts = model.parts_of(local).unwrap_or_default();
            let old = model.value(before, &parts, picks);
            // An operation wraps at the size of its variable.
            let bits = 8 * u32::from(request.site.size).clamp(1, 8);
            let new = kind.written(old, request.a, request.b);
            let new = new.map(|new| new & u64::MAX >> (64 - bits));
            let mut text = format!(
                "{} is {}",
                name_of(model.config.threads, request.address),
                show(old)
            );
            if is_behind(model, before, &parts, picks, 1) {
                text += " (an old value)";
            }
            match new {
                Some(new) => _ = write!(text, ", becomes {}", show(new)),
                None if kind == OperationKind::CompareExchange => text += ", fails",
                None => {}
            }
            text
        }
    }
}

/// Whether a read or write comes before the newest write.
fn is_behind<const N: usize>(
    model: &Model<N>,
    state: &State<N>,
    parts: &Parts,
    picks: &Picks,
    ahead: usize,
) -> bool {
    parts.cells().iter().zip(picks).any(|(id, pick)| {
        match model.cells.cells[usize::from(*id)].place {
            Place::Shared { number } => {
                usize::from(*pick) + ahead < state.messages(usize::from(number)).len()
            }
            Place::Private { .. } => false,
        }
    })
}

/// The name of the memory at an address.
pub(crate) fn name_of(threads: usize, address: usize) -> String {
    match layout::resolve(address, threads) {
        Some((Region::Lock(i), offset)) => format!("{}{}", lock_name(i), field(offset)),
        Some((Region::Data(_), _)) => "data".to_owned(),
        Some((Region::Node { thread, index }, offset)) => {
            format!("{}{}", node_name(thread, index), field(offset))
        }
        Some((Region::Lent { thread, index }, offset)) => {
            format!("{}{}", node_name(thread, index), field(offset))
        }
        Some((Region::Wanted { thread }, _)) => format!("t{thread}.wanted"),
        Some((Region::Reads { thread }, offset)) => {
            let field = ["of", "", "unnoted", "left"][offset / 4 % 4];
            format!("t{thread}.reads.{field}")
        }
        Some((Region::Held { thread }, offset)) => {
            format!("t{thread}.held[{}]", offset / size_of::<u64>())
        }
        Some((Region::Queue { node }, offset)) if offset == headers::NODE.waiters => {
            format!("{}.waiters", queue_name(node))
        }
        Some((Region::Queue { node }, offset)) => {
            format!("{}{}", queue_name(node), field(offset))
        }
        Some((Region::Table, offset)) => {
            let (entry, offset) = (
                offset / headers::PARKED_HEAD_SIZE,
                offset % headers::PARKED_HEAD_SIZE,
            );
            format!("parked head {entry}{}", field(offset))
        }
        Some((Region::Variables, offset)) => format!("v{offset}"),
        Some((Region::Local { thread }, offset)) => {
            format!("t{thread}.thread-local{}", field(offset))
        }
        Some((Region::Global, offset)) => image::name(offset),
        None => format!("{address:#x}"),
    }
}

fn lock_name(i: usize) -> String {
    match i {
        0 => "lock".to_owned(),
        layout::SECOND_LOCK => "second lock".to_owned(),
        level => format!("lock {level}"),
    }
}

fn node_name(thread: usize, index: usize) -> String {
    match index {
        0 => format!("t{thread}"),
        _ => format!("t{thread}.{index}"),
    }
}

fn queue_name(numa_node: usize) -> String {
    format!("n{numa_node}")
}

fn field(offset: usize) -> String {
    match offset {
        0 => String::new(),
        _ => format!("+{offset}"),
    }
}

/// A value in words, by the meaning that it has at its address.
fn value_at<const N: usize>(model: &Model<N>, request: &Request, value: u64) -> String {
    let size = usize::from(request.site.size);
    if value == UNINITIALISED & u64::MAX >> (64 - 8 * size.clamp(1, 8)) {
        return "uninitialised".to_owned();
    }
    let region = layout::resolve(request.address, model.config.threads);
    if let (Some((Region::Lock(0), offset)), Subject::Lockref(_)) = (region, model.subject()) {
        match (offset, size) {
            (0, 8) => return lockref(model, value),
            (LOCKREF_COUNT, 4) => return count(value),
            _ => {}
        }
    }
    if let Some((Region::Queue { .. }, offset)) = region
        && offset == headers::NODE.waiters
    {
        return waiters(value);
    }
    if size == 8 {
        return match layout::resolve(value as usize, model.config.threads) {
            _ if value == 0 => "NULL".to_owned(),
            Some((_, 0)) => name_of(model.config.threads, value as usize),
            _ => format!("{value:#x}"),
        };
    }
    let lock = model.subject().lock();
    match region {
        Some((Region::Lock(_), 0)) if model.has_tail_word() && size == 4 => word(lock, value),
        Some((Region::Lock(_), 0)) if model.has_tail_word() && size == 2 => pieces(lock, value),
        Some((Region::Lock(_), 1)) if model.has_tail_word() && size == 1 => {
            pending(lock, value << 8)
        }
        Some((Region::Lock(_), 2)) if model.has_tail_word() && size == 2 => {
            tail(value << TAIL_SHIFT)
        }
        Some((Region::Node { .. }, _)) if slot_and_node(value).0 != 0 => tail(value),
        _ => value.to_string(),
    }
}

/// A lockref's word as `(lock, count)`.
fn lockref<const N: usize>(model: &Model<N>, value: u64) -> String {
    let lock = value & u64::from(u32::MAX);
    let lock = match model.has_tail_word() {
        true => word(model.subject().lock(), lock),
        false => format!("{lock:#x}"),
    };
    format!("({lock}, {})", count(value >> (8 * LOCKREF_COUNT)))
}

fn count(value: u64) -> String {
    match value as i32 {
        dead if dead < 0 => "dead".to_owned(),
        alive => alive.to_string(),
    }
}

/// A lock word as `(tail, pending, locked)`.
fn word(lock: &LockType, value: u64) -> String {
    format!("({},{}", tail(value), &pieces(lock, value)[1..])
}

/// The lower half of a lock word as `(pending, locked)`.
fn pieces(lock: &LockType, value: u64) -> String {
    format!(
        "({},{})",
        pending(lock, value),
        value & u64::from(headers::WORD.locked_mask)
    )
}

/// The pending bit, and the names of the bits above it that are set.
fn pending(lock: &LockType, value: u64) -> String {
    let word = headers::WORD;
    let service = [
        (word.hq, "hq"),
        (word.hq_numa, "numa"),
        (word.queue_locked, "queue locked"),
        (word.parked, "parked"),
    ];
    let starved = u64::from(word.starved);
    let flags = [
        (word.head_asleep, "asleep"),
        (word.open, "open"),
        (word.retaken, "retaken"),
        if value & starved == starved {
            (word.starved, "starved")
        } else {
            (word.starved, "bypassed")
        },
    ];
    let names = match lock.has_mutex_word() {
        true => &flags[..],
        false => &service[..],
    };
    let set = names.iter().filter(|(bit, _)| value & u64::from(*bit) != 0);
    let names: String = set.map(|(_, name)| format!(" {name}")).collect();
    let pending = value & u64::from(word.pending) != 0;
    format!("{}{names}", u8::from(pending))
}

/// The slot and the queue node of the tail in the upper half of a value.
fn slot_and_node(value: u64) -> (usize, usize) {
    headers::slot_and_node((value >> TAIL_SHIFT) as usize)
}

/// A tail in words: the thread and its queue node, or the NUMA node whose queue it stands for.
fn tail(value: u64) -> String {
    if let Some(node) = queue_of_tail((value >> TAIL_SHIFT) as u32) {
        return queue_name(node);
    }
    match slot_and_node(value) {
        (0, _) => "0".to_owned(),
        (slot, node) => node_name(slot - 1, node),
    }
}

/// The waiters in the queue of a NUMA node: their lock, and the last of them.
fn waiters(value: u64) -> String {
    match value {
        0 => "0".to_owned(),
        _ => format!(
            "({}, {})",
            lock_name((value >> 16) as usize),
            tail(value << TAIL_SHIFT & 0xffff_ffff)
        ),
    }
}

fn lock_words<const N: usize>(model: &Model<N>, state: &State<N>) -> String {
    let locks = [0, layout::SECOND_LOCK, layout::THIRD_LOCK];
    locks[..model.config.locks]
        .iter()
        .map(|lock| lock_word(model, state, *lock))
        .collect::<Vec<_>>()
        .join(" ")
}

fn lock_word<const N: usize>(model: &Model<N>, state: &State<N>, lock: usize) -> String {
    let size = model.subject().size().min(8);
    match model.newest(state, layout::lock(lock), size) {
        Some(value) if matches!(model.subject(), Subject::Lockref(_)) => lockref(model, value),
        Some(value) if model.has_tail_word() => {
            word(model.subject().lock(), value & u64::from(u32::MAX))
        }
        Some(value) if size == 8 => match layout::resolve(value as usize, model.config.threads) {
            Some((_, 0)) => name_of(model.config.threads, value as usize),
            _ if value == 0 => "NULL".to_owned(),
            _ => format!("{value:#x}"),
        },
        Some(value) => format!("{value:#x}"),
        None => String::new(),
    }
}

/// The chains of linked queue nodes, with secondary queues in brackets.
fn queue<const N: usize>(model: &Model<N>, state: &State<N>) -> String {
    let threads = model.config.threads;
    let layout @ NodeLayout { size, .. } = headers::NODE;
    let mut nodes = Vec::new();
    for thread in 0..threads {
        let now = model.attributes(state, thread);
        for index in 0..usize::from(now.depth).min(layout::NODES) {
            nodes.push((layout::slot_nodes(thread + 1) + index * size, layout.next));
        }
        for index in (0..layout::LENT).filter(|i| now.lent & 1 << i != 0) {
            nodes.push((layout::lent(thread, index), 0));
        }
    }
    for node in 0..model.config.nodes {
        let queue = layout::node_queues(node);
        if model
            .newest(state, queue + layout.waiters, 8)
            .is_some_and(|waiters| waiters != 0)
        {
            nodes.push((queue, layout.next));
        }
    }
    let next = |(node, offset): (usize, usize)| {
        model
            .newest(state, node + offset, 8)
            .and_then(|next| nodes.iter().find(|n| n.0 as u64 == next).copied())
    };
    let chain = |first: (usize, usize)| {
        let mut text = name_of(model.config.threads, first.0);
        let mut at = first;
        for _ in 0..nodes.len() {
            let Some(after) = next(at) else { break };
            _ = write!(text, " -> {}", name_of(model.config.threads, after.0));
            at = after;
        }
        text
    };
    let linked: Vec<usize> = nodes.iter().filter_map(|n| next(*n)).map(|n| n.0).collect();
    let mut text = Vec::new();
    for node in nodes.iter().filter(|n| !linked.contains(&n.0)) {
        if model
            .newest(state, node.0 + node.1, 8)
            .is_none_or(|value| value == UNINITIALISED)
        {
            continue;
        }
        let mut queue = chain(*node);
        let locked = model.newest(state, node.0 + layout.locked, 4).unwrap_or(0);
        let (slot, index) = slot_and_node(locked);
        if node.1 == layout.next
            && node.0 < layout::lent(0, 0)
            && slot != 0
            && locked != UNINITIALISED & u64::from(u32::MAX)
        {
            let last = layout::slot_nodes(slot) + index * size;
            if let Some(first) = model.newest(state, last + layout.secondary_head, 8)
                && let Some(first) = nodes.iter().find(|n| n.0 as u64 == first)
            {
                _ = write!(queue, " [{}]", chain(*first));
            }
        }
        text.push(queue);
    }
    text.join("; ")
}
