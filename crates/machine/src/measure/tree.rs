//! Nested units of CPUs, and the largest part of them in which all units of a level are alike.

use std::collections::BTreeSet;

/// A unit with its inner units, which need not be alike.
pub(super) enum Tree {
    Cpu(usize),
    Unit(Vec<Tree>),
}

impl Tree {
    /// Makes the units from sorted paths. A path has the unit of a CPU at every level.
    pub(super) fn grow(paths: &[(Vec<usize>, usize)], depth: usize) -> Tree {
        let levels = paths.first().map_or(0, |(path, _)| path.len());
        Tree::Unit(if depth == levels {
            paths.iter().map(|(_, cpu)| Tree::Cpu(*cpu)).collect()
        } else {
            paths
                .chunk_by(|a, b| a.0[depth] == b.0[depth])
                .map(|unit| Tree::grow(unit, depth + 1))
                .collect()
        })
    }

    fn children(&self) -> &[Tree] {
        match self {
            Tree::Cpu(_) => &[],
            Tree::Unit(children) => children,
        }
    }

    /// The CPUs of the first units that form this shape, if there are enough.
    pub(super) fn trim(&self, shape: &[usize]) -> Option<Vec<usize>> {
        match (self, shape) {
            (Tree::Cpu(cpu), []) => Some(vec![*cpu]),
            (Tree::Unit(children), [count, rest @ ..]) => {
                let fit = children.iter().filter_map(|c| c.trim(rest));
                let fit: Vec<_> = fit.take(*count).collect();
                (fit.len() == *count).then(|| fit.concat())
            }
            _ => None,
        }
    }

    /// The shape with equal units that keeps the most CPUs.
    pub(super) fn largest_shape(&self) -> Vec<usize> {
        shapes(&[self])
            .into_iter()
            .max_by_key(|shape| shape.iter().product::<usize>())
            .unwrap_or_default()
    }
}

/// Every shape to which some of these units can be trimmed, each with as many children as possible.
fn shapes(units: &[&Tree]) -> Vec<Vec<usize>> {
    let children: Vec<&Tree> = units.iter().flat_map(|u| u.children()).collect();
    if children.is_empty() {
        return vec![Vec::new()];
    }
    let mut out = Vec::new();
    for rest in shapes(&children) {
        let fits = |unit: &&Tree| {
            let children = unit.children().iter();
            children.filter(|c| c.trim(&rest).is_some()).count()
        };
        let counts: BTreeSet<usize> = units.iter().map(fits).filter(|n| *n > 0).collect();
        out.extend(counts.iter().map(|&count| [&[count], &rest[..]].concat()));
    }
    out
}
