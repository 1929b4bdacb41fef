//! The relations of a description: which relation each pair of CPUs has.

use std::ops::Range;

use toml::Spanned;

use crate::description::Fault;
use crate::machine::{Hops, scope_name};
use crate::units::Units;
use crate::{Level, Relation};

use super::{FileRelation, depth, scope};

/// The most relations of a machine, since an entry of the table of CPU pairs is a byte.
const MAX_RELATIONS: usize = 256;

/// The relations, with the closest first, and the relation of each pair of CPUs. Inherited relations in
/// which no two CPUs stand are left out.
pub(super) fn relations(
    levels: &[Level],
    units: &Units,
    hops: &[Hops],
    from_file: Spanned<Vec<Spanned<FileRelation>>>,
    is_inherited: &dyn Fn(&Range<usize>) -> bool,
) -> Result<(Vec<Relation>, Vec<u8>), Fault> {
    let whole = from_file.span();
    let mut given = Vec::new();
    for relation in from_file.into_inner() {
        let span = relation.span();
        let relation = relation.into_inner();
        let share = scope(levels, &relation.share)?;
        let mut name = relation.share.into_inner();
        if let Some(hops) = relation.hops {
            name = format!("{name}.{hops}");
        }
        let relation = Relation {
            name,
            share,
            hops: relation.hops,
            cache_to_cache: relation.cache_to_cache_ns,
        };
        given.push((relation, span));
    }
    given.sort_by_key(|(r, _)| (std::cmp::Reverse(depth(r.share)), r.hops));
    if let Some(twice) = given.windows(2).find(|w| w[0].0.name == w[1].0.name) {
        let message = format!("relation `{}` is given twice; keep one", twice[1].0.name);
        return Err(Fault {
            span: twice[1].1.clone(),
            message,
        });
    }
    if given.len() > MAX_RELATIONS {
        let message = format!("more than {MAX_RELATIONS} relations; merge some");
        return Err(Fault {
            span: whole,
            message,
        });
    }
    let (mut relations, spans): (Vec<Relation>, Vec<_>) = given.into_iter().unzip();

    let cpus = units.cpus();
    let mut pairs = vec![0; cpus * cpus];
    let mut used = vec![false; relations.len()];
    for a in 0..cpus {
        for b in a + 1..cpus {
            let index =
                classify(levels, units, hops, &relations, a, b).map_err(|message| Fault {
                    span: whole.clone(),
                    message,
                })?;
            used[index] = true;
            pairs[a * cpus + b] = index as u8;
            pairs[b * cpus + a] = index as u8;
        }
    }
    let unused = |at: usize| !used[at];
    if let Some(at) = (0..relations.len()).find(|&at| unused(at) && !is_inherited(&spans[at])) {
        let message = format!(
            "no two CPUs stand in relation `{}`; check it against levels and hops, or remove it",
            relations[at].name
        );
        return Err(Fault {
            span: spans[at].clone(),
            message,
        });
    }
    for at in (0..relations.len()).rev().filter(|&at| unused(at)) {
        relations.remove(at);
        for pair in pairs.iter_mut().filter(|pair| usize::from(**pair) > at) {
            *pair -= 1;
        }
    }
    Ok((relations, pairs))
}

/// The relation of two CPUs. It belongs to the innermost unit around both CPUs that has relations. In
/// that unit it is the relation with their distance, or else the relation without a distance.
fn classify(
    levels: &[Level],
    units: &Units,
    hops: &[Hops],
    relations: &[Relation],
    a: usize,
    b: usize,
) -> Result<usize, String> {
    let shares = |level: &usize| units.of(Some(*level), a) == units.of(Some(*level), b);
    let innermost = (0..levels.len()).rev().find(shares);
    let covering = relations
        .iter()
        .map(|r| r.share)
        .find(|share| depth(*share) <= depth(innermost));
    let share = covering.unwrap_or(innermost);
    let distance = hops.iter().find(|h| h.within == share).map(|h| {
        let first = units.inside(share, units.of(share, a), h.level).start;
        let unit = |cpu| units.of(Some(h.level), cpu) - first;
        h.matrix[unit(a)][unit(b)]
    });
    let find = |hops| {
        relations
            .iter()
            .position(|r| r.share == share && r.hops == hops)
    };
    distance
        .and_then(|d| find(Some(d)))
        .or_else(|| find(None))
        .ok_or_else(|| {
            let name = scope_name(levels, share);
            let hops = distance.map_or(String::new(), |d| format!(" and hops = {d}"));
            format!(
                "no relation covers CPUs {a} and {b}; add a [[relation]] with share = \"{name}\"{hops}"
            )
        })
}
