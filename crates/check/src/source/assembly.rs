//! The assembly of a source, in which each access is a call. Each call gets sites, by which the engine knows
//! its operation.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::site::{OperationKind, Order};

/// A line of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) file: String,
    pub(super) number: u32,
}

/// The assembly with sites.
#[derive(Default)]
pub(super) struct Rewritten {
    pub(super) text: String,
    /// The number of sites of each call that has some, from the top.
    pub(super) sites: Vec<usize>,
    /// Inline assembly that may access memory, and where it stands.
    pub(super) inline: Vec<(Line, String)>,
    /// The first call of each other function.
    pub(super) calls: HashMap<String, Line>,
}

/// An operation of a call.
struct Operation {
    kind: OperationKind,
    order: Order,
    size: u8,
    failure: Order,
}

impl Operation {
    fn new(kind: OperationKind, order: Order, size: u8) -> Self {
        let failure = Order::Relaxed;
        Self {
            kind,
            order,
            size,
            failure,
        }
    }
}

/// The operations of the sizes 1, 2, 4 and 8.
fn of_all_sizes(kind: OperationKind, order: Order) -> impl Iterator<Item = Operation> {
    (0..4).map(move |size| Operation::new(kind, order, 1 << size))
}

/// The operations of a call of this function. `order`: the memory order in the argument of this number.
fn operations(function: &str, order: &dyn Fn(usize) -> Order) -> Option<Vec<Operation>> {
    use OperationKind as Kind;
    let one = |kind| vec![Operation::new(kind, Order::SeqCst, 4)];
    let all = |kinds: &[OperationKind]| {
        let sizes = kinds
            .iter()
            .flat_map(|kind| of_all_sizes(*kind, Order::Plain));
        Some(sizes.collect())
    };
    match function {
        "memset" => return all(&[Kind::Store]),
        "memcpy" | "memmove" => return all(&[Kind::Load, Kind::Store]),
        "syscall" => {
            return Some(
                [one(Kind::Park), one(Kind::Unpark)]
                    .into_iter()
                    .flatten()
                    .collect(),
            );
        }
        "lw_check_rmb" => return Some(vec![Operation::new(Kind::Fence, Order::Acquire, 0)]),
        "lw_check_wmb" => return Some(vec![Operation::new(Kind::Fence, Order::Release, 0)]),
        "abort" | "__assert_fail" => {
            return Some(vec![Operation::new(Kind::Pause, Order::Relaxed, 0)]);
        }
        _ => {}
    }
    let access = function.strip_prefix("__tsan_")?;
    if access == "atomic_thread_fence" {
        return Some(vec![Operation::new(Kind::Fence, order(0), 0)]);
    }
    if let Some(atomic) = access.strip_prefix("atomic") {
        let (bits, name) = atomic.split_once('_')?;
        let size = bits.parse::<u8>().ok().filter(|bits| *bits <= 64)? / 8;
        let (kind, argument) = match name {
            "load" => (Kind::Load, 1),
            "store" => (Kind::Store, 2),
            "exchange" => (Kind::Exchange, 2),
            "fetch_add" | "fetch_sub" => (Kind::Add, 2),
            "fetch_and" => (Kind::And, 2),
            "fetch_or" => (Kind::Or, 2),
            "fetch_xor" | "fetch_nand" => (Kind::CompareExchange, 2),
            _ if name.starts_with("compare_exchange_") => {
                // What it expects may be shared, too.
                let plain = |kind| Operation::new(kind, Order::Plain, size);
                return Some(vec![
                    Operation {
                        failure: order(4),
                        ..Operation::new(Kind::CompareExchange, order(3), size)
                    },
                    plain(Kind::Load),
                    plain(Kind::Store),
                ]);
            }
            _ => return None,
        };
        return Some(vec![Operation::new(kind, order(argument), size)]);
    }
    let (rest, is_unaligned) = match access.strip_prefix("unaligned_") {
        Some(rest) => (rest, true),
        None => (access, false),
    };
    let (rest, order) = match rest.strip_prefix("volatile_") {
        Some(rest) => (rest, Order::Relaxed),
        None => (rest, Order::Plain),
    };
    let (kind, bytes) = match (rest.strip_prefix("read"), rest.strip_prefix("write")) {
        (Some(bytes), None) => (Kind::Load, bytes),
        (None, Some(bytes)) => (Kind::Store, bytes),
        _ => return None,
    };
    match bytes.parse::<u8>() {
        Ok(size @ 1..=8) if !is_unaligned => Some(vec![Operation::new(kind, order, size)]),
        Ok(1..=16) => Some(of_all_sizes(kind, order).collect()),
        _ if bytes == "_range" => Some(of_all_sizes(kind, order).collect()),
        _ => None,
    }
}

/// The registers with the arguments of a call.
const ARGUMENTS: [[&str; 5]; 2] = [
    ["%edi", "%esi", "%edx", "%ecx", "%r8d"],
    ["w0", "w1", "w2", "w3", "w4"],
];

/// The constant that an argument of a call has, by the instructions before it.
fn constant(before: &[&str], argument: usize) -> Option<u32> {
    const MOST: usize = 40;
    for line in before.iter().rev().take(MOST) {
        let (instruction, operands) = line.split_once([' ', '\t'])?;
        let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
        let [a, b] = operands[..] else { continue };
        let number = |text: &str| text.trim_start_matches(['$', '#']).parse().ok();
        if instruction == "xorl" && a == b && b == ARGUMENTS[0][argument] {
            return Some(0);
        }
        if b == ARGUMENTS[0][argument] && instruction.starts_with("mov") {
            return number(a);
        }
        if a == ARGUMENTS[1][argument] && instruction == "mov" {
            return if b == "wzr" { Some(0) } else { number(b) };
        }
    }
    None
}

/// The order of C's number for it; any if it is not known, which is tested when the call is made.
fn order_of(number: Option<u32>) -> Order {
    match number {
        Some(0) => Order::Relaxed,
        Some(1 | 2) => Order::Acquire,
        Some(3) => Order::Release,
        Some(4) => Order::AcqRel,
        _ => Order::SeqCst,
    }
}

/// Whether inline assembly only waits a little, or does nothing.
fn is_harmless(assembly: &str) -> bool {
    assembly.split([';', '\n']).map(str::trim).all(|line| {
        matches!(
            line,
            "" | "rep" | "nop" | "rep nop" | "rep\tnop" | "pause" | "yield" | "isb"
        )
    })
}

/// The function that an instruction calls.
fn called(line: &str) -> Option<&str> {
    let (instruction, target) = line.split_once([' ', '\t'])?;
    let target = target.trim().split('@').next()?;
    matches!(instruction, "call" | "callq" | "bl").then_some(target)
}

/// Gives each call that accesses memory its sites.
pub(super) fn rewrite(text: &str) -> Rewritten {
    let mut done = Rewritten::default();
    let mut files: HashMap<&str, &str> = HashMap::new();
    let mut at = Line::default();
    let mut inline: Option<(Line, String)> = None;
    let mut before: Vec<&str> = Vec::new();
    for line in text.lines() {
        done.text += line;
        done.text.push('\n');
        let line = line.trim();
        if line.starts_with("#APP") || line.starts_with("//APP") {
            inline = Some((at.clone(), String::new()));
            continue;
        }
        if line.starts_with("#NO_APP") || line.starts_with("//NO_APP") {
            done.inline
                .extend(inline.take().filter(|(_, text)| !is_harmless(text)));
            continue;
        }
        if line.starts_with('#') || line.starts_with("//") {
            continue;
        }
        if let Some(rest) = line.strip_prefix(".file ") {
            let mut words = rest.split('"');
            let number = words.next().unwrap_or_default().trim();
            let names: Vec<&str> = words.step_by(2).collect();
            let is_name = |name: &&&str| !name.is_empty() && !name.starts_with("0x");
            files.insert(
                number,
                names.iter().rfind(is_name).copied().unwrap_or_default(),
            );
            continue;
        }
        if let Some(rest) = line.strip_prefix(".loc ") {
            let mut words = rest.split_whitespace();
            let file = words.next().and_then(|file| files.get(file));
            at.file = file.copied().unwrap_or_default().to_owned();
            at.number = words.next().and_then(|line| line.parse().ok()).unwrap_or(0);
            continue;
        }
        let is_label = line.starts_with(".L") && line.ends_with(':');
        if let (Some((_, text)), false) = (&mut inline, is_label) {
            text.push_str(line);
            text.push('\n');
            continue;
        }
        if line.starts_with('.') {
            continue;
        }
        let Some(function) = called(line) else {
            before.push(line);
            continue;
        };
        let order = |argument| order_of(constant(&before, argument));
        match operations(function, &order) {
            Some(operations) => add_sites(&mut done, &operations),
            None => {
                done.calls
                    .entry(function.to_owned())
                    .or_insert_with(|| at.clone());
            }
        }
        before.clear();
    }
    done
}

/// Adds the sites of the call that the text ends with.
fn add_sites(done: &mut Rewritten, operations: &[Operation]) {
    let number = done.sites.len();
    done.sites.push(operations.len());
    let text = &mut done.text;
    let _ = writeln!(
        text,
        ".Llw_return_{number}:\n\t.pushsection lw_check_sites,\"aw\"\n\t.balign 16\n.Llw_sites_{number}:"
    );
    for operation in operations {
        let _ = writeln!(
            text,
            "\t.zero 28\n\t.byte {}, {}, {}, {}",
            operation.kind as u8, operation.order as u8, operation.size, operation.failure as u8
        );
    }
    let _ = writeln!(
        text,
        "\t.popsection\n\t.pushsection lw_check_returns,\"aw\"\n\t.balign 8\n\
         \t.8byte .Llw_return_{number}, .Llw_sites_{number}\n\t.popsection"
    );
}
