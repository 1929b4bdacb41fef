//! A run that breaks a promise as a page: the threads side by side, and beside each step the lock's
//! word and the queue as a picture. The page needs no network and no script.

use lockworks_check::TraceStep;
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The ending of pages.
pub const ENDING: &str = "html";

const STYLE: &str = include_str!("page.css");

/// A run under its title, with the words that repeat it.
pub struct Run<'a> {
    pub title: String,
    pub replay: String,
    pub steps: &'a [TraceStep],
}

/// The page with these runs.
pub fn page(runs: &[Run]) -> String {
    let title = runs.first().map_or("", |run| run.title.as_str());
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                @for run in runs { (section(run)) }
            }
        }
    }
    .into_string()
}

fn section(run: &Run) -> Markup {
    let threads = run.steps.iter().map(|step| step.thread + 1).max();
    let threads = threads.unwrap_or(0);
    let has_queue = run.steps.iter().any(|step| !step.queue.is_empty());
    html! {
        h1 { (run.title) }
        table {
            thead {
                tr {
                    th { "step" }
                    @for thread in 0..threads { th { "thread " (thread) } }
                    th { "lock" }
                    @if has_queue { th { "queue" } }
                }
            }
            tbody {
                @for (i, step) in run.steps.iter().enumerate() {
                    @let before = i.checked_sub(1).map(|i| &run.steps[i]);
                    tr class=[(i + 1 == run.steps.len()).then_some("last")] {
                        td.step { (i + 1) }
                        @for thread in 0..threads {
                            td { @if thread == step.thread { (operation(step)) } }
                        }
                        @let changed = before.is_none_or(|before| before.word != step.word);
                        td class=[changed.then_some("changed")] { code { (step.word) } }
                        @if has_queue { td { (queue(&step.queue)) } }
                    }
                }
            }
        }
        p { "Repeat this run: " code { (run.replay) } }
    }
}

fn operation(step: &TraceStep) -> Markup {
    html! {
        code { (step.operation) } " "
        @if !step.order.is_empty() { span.order { (step.order) } }
        @if !step.effect.is_empty() { span.effect { (step.effect) } }
        span.place { (step.place) }
    }
}

/// The height of a queue node, and the space between two rows of them.
const HEIGHT: usize = 18;
const GAP: usize = 4;
/// The space for the arrow between two nodes.
const ARROW: usize = 16;
/// The width of a character.
const CHARACTER: usize = 7;

/// The chains of linked queue nodes, one below the other: a box for each node, an arrow for each link.
fn queue(text: &str) -> Markup {
    let chains: Vec<Vec<&str>> = text
        .split("; ")
        .filter(|chain| !chain.is_empty())
        .map(|chain| chain.split(" -> ").collect())
        .collect();
    let width = |node: &str| CHARACTER * node.chars().count() + 10;
    let wide = |chain: &Vec<&str>| chain.iter().map(|node| width(node) + ARROW).sum::<usize>();
    let total = chains.iter().map(wide).max().unwrap_or(0);
    html! {
        @if total > 0 {
            svg width=(total) height=(chains.len() * (HEIGHT + GAP)) role="img" aria-label=(text) {
                @for (row, chain) in chains.iter().enumerate() {
                    @let top = row * (HEIGHT + GAP) + 1;
                    @for (i, node) in chain.iter().enumerate() {
                        @let left = chain[..i].iter().map(|n| width(n) + ARROW).sum::<usize>() + 1;
                        rect x=(left) y=(top) width=(width(node)) height=(HEIGHT) rx="3" {}
                        text x=(left + width(node) / 2) y=(top + 13) { (node) }
                        @if i + 1 < chain.len() {
                            path d=(arrow(left + width(node), top + HEIGHT / 2)) {}
                        }
                    }
                }
            }
        }
    }
}

/// An arrow to the right, from a point to the next node.
fn arrow(x: usize, y: usize) -> String {
    let tip = x + ARROW;
    format!(
        "M{x} {y} H{tip} M{} {} L{tip} {y} L{} {}",
        tip - 5,
        y - 4,
        tip - 5,
        y + 4
    )
}
