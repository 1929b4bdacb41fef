//! Tokens: words that hold a check and a run that breaks a promise, so that the run can be replayed.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lockworks_explore::Step;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::check::Check;
use crate::config::Config;
use crate::mutation::Mutation;
use crate::results::Broken;
use crate::site::Site;

/// A check, and a run of it that breaks a promise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// The configuration of the check.
    pub config: Config,
    /// The mutation of the lock, if it is a mutant.
    pub mutation: Option<Mutation>,
    /// [`Violation::name`](crate::Violation::name).
    violation: String,
    shortest: bool,
    steps: Vec<Step>,
}

/// A token cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The text is no token, or not all of one.
    #[error("this is no token, or a damaged one; copy all of the word after --replay")]
    Damaged,
    /// The token was made with other locks.
    #[error("the token was made by another version of the locks; run the check again")]
    Stale,
}

impl Token {
    /// The token of a violation that a check found.
    pub fn new(check: &Check, broken: &Broken) -> Self {
        Self {
            config: check.config.clone(),
            mutation: check.mutation,
            violation: broken.violation.name().to_owned(),
            shortest: broken.shortest,
            steps: broken.run.clone(),
        }
    }

    /// Replays the run. `check` must have the token's configuration and mutation.
    ///
    /// # Errors
    /// The check has no such run, or the run does not break that promise.
    pub fn replay(&self, check: &Check) -> Result<Broken, TokenError> {
        let (_, violation) = check
            .replay(&self.steps)
            .filter(|(_, violation)| violation.name() == self.violation)
            .ok_or(TokenError::Stale)?;
        Ok(Broken {
            violation,
            run: self.steps.clone(),
            shortest: self.shortest,
        })
    }
}

/// A hash of everything that a run depends on: the operations of the locks, but not their lines.
fn fingerprint() -> u64 {
    let mut hash = Xxh3::new();
    hash.update(env!("CARGO_PKG_VERSION").as_bytes());
    for site in Site::all() {
        for text in [site.file(), site.function(), site.operand()] {
            hash.update(text.as_bytes());
            hash.update(&[0]);
        }
        hash.update(&[site.kind as u8, site.order as u8, site.size]);
    }
    hash.digest()
}

const WORD: usize = size_of::<u64>();

/// The word that holds these bytes, behind a hash of them.
pub(crate) fn seal(contents: &[u8]) -> String {
    let hash = xxh3_64(contents).to_le_bytes();
    URL_SAFE_NO_PAD.encode([&hash[..], contents].concat())
}

/// The bytes that [`seal`] was given. None if the text is no such word, or is damaged.
pub(crate) fn unseal(text: &str) -> Option<Vec<u8>> {
    let mut bytes = URL_SAFE_NO_PAD.decode(text.trim()).ok()?;
    let hash = *bytes.first_chunk::<WORD>()?;
    let contents = bytes.split_off(WORD);
    (xxh3_64(&contents).to_le_bytes() == hash).then_some(contents)
}

/// A token's bytes are the fingerprint and the contents.
impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let contents = postcard::to_stdvec(self).map_err(|_| fmt::Error)?;
        f.write_str(&seal(
            &[&fingerprint().to_le_bytes(), &contents[..]].concat(),
        ))
    }
}

impl FromStr for Token {
    type Err = TokenError;

    fn from_str(text: &str) -> Result<Self, TokenError> {
        let bytes = unseal(text).ok_or(TokenError::Damaged)?;
        let (made_by, contents) = bytes
            .split_first_chunk::<WORD>()
            .ok_or(TokenError::Damaged)?;
        if fingerprint().to_le_bytes() != *made_by {
            return Err(TokenError::Stale);
        }
        postcard::from_bytes(contents).map_err(|_| TokenError::Stale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::Change;
    use crate::results::End;
    use crate::site::Order;
    use lockworks::Tunable;
    use lockworks_explore::Limits;

    fn broken_by(config: &Config, mutation: Option<Mutation>) -> Token {
        let check = Check::new(config, mutation).unwrap();
        let outcome = check.run(&Limits::NONE, &mut |_| {});
        let End::Broken(broken) = outcome.end else {
            panic!("{config} is not broken");
        };
        let token = Token::new(&check, &broken);
        let again: Token = token.to_string().parse().unwrap();
        assert_eq!(again, token);
        let replayed = again.replay(&check).unwrap();
        assert_eq!(replayed, broken, "{config}");
        assert_eq!(check.trace(&replayed).len(), broken.steps());
        token
    }

    #[test]
    fn a_violation_is_found_again_from_its_token() {
        broken_by(&Config::new("busted"), None);
        let mut config = Config::new("mcs");
        let site = Site::all()
            .iter()
            .filter(|s| s.file() == "mcs.h" && s.function() == "lw_mcs_unlock");
        for site in site.filter(|s| s.order == Order::Release) {
            for change in [Change::Drop, Change::Order(Order::Relaxed)] {
                if change == Change::Drop && site.kind.is_read_modify_write() {
                    continue;
                }
                config.threads = 3;
                broken_by(&config, Some(Mutation::at(site, change)));
            }
        }
    }

    #[test]
    fn values_seen_in_other_runs_count_in_a_replay() {
        let site = |line: &str| {
            Site::all()
                .iter()
                .find(|s| s.file() == "mcs.h" && format!("{s}") == line)
                .expect("it is there")
        };
        let config = Config {
            threads: 3,
            trylock: true,
            ..Config::new("mcs")
        };
        for line in ["store node->next", "store node->locked"] {
            let mutation = Mutation::at(site(line), Change::Drop);
            broken_by(&config, Some(mutation));
        }
    }

    #[test]
    fn an_incomplete_token_is_damaged() {
        let text = broken_by(&Config::new("busted"), None).to_string();
        for bad in ["", "busted", "ä", &text[1..], &text[..text.len() - 1]] {
            assert_eq!(bad.parse::<Token>(), Err(TokenError::Damaged), "{bad:?}");
        }
        let padded: Token = format!(" {text}\n").parse().unwrap();
        assert_eq!(padded.to_string(), text);
    }

    #[test]
    fn a_tunable_out_of_range_is_refused() {
        let mut token = broken_by(&Config::new("busted"), None);
        let highest = Tunable::all().iter().map(|tunable| tunable.maximum);
        for (number, highest) in highest.enumerate() {
            token.config.tunables.by_name[number] = highest;
            assert_eq!(token.to_string().parse(), Ok(token.clone()));
            let mut beyond = token.clone();
            beyond.config.tunables.by_name[number] = highest + 1;
            let refused = beyond.to_string().parse::<Token>();
            assert_eq!(refused, Err(TokenError::Stale));
        }
    }

    #[test]
    fn other_locks_make_it_stale() {
        let token = broken_by(&Config::new("busted"), None);
        let mut bytes = unseal(&token.to_string()).unwrap();
        bytes[0] ^= 1;
        assert_eq!(seal(&bytes).parse::<Token>(), Err(TokenError::Stale));

        let mut config = token.config.clone();
        config.lock = "mcs".to_owned();
        let check = Check::new(&config, None).unwrap();
        assert_eq!(token.replay(&check), Err(TokenError::Stale));
    }
}

#[cfg(test)]
mod properties {
    use proptest::prelude::*;

    use super::*;
    use crate::config::{Mode, Time};
    use lockworks_litmus::Memory;

    prop_compose! {
        /// A token as no check may have made it: any configuration, violation and steps.
        fn tokens()(
            lock in "[a-z0-9-]{0,12}",
            numbers in any::<[u8; 6]>(),
            (trylock, cancel, split_release, never_park, fork, shortest) in any::<(bool, bool, bool, bool, bool, bool)>(),
            bounds in any::<(Option<u8>, Option<u8>, Option<u8>, Option<u8>)>(),
            priority in prop::collection::vec(0..8usize, 0..4),
            choices in (0..2u8, 0..3u8, 0..2u8),
            violation in ".{0,20}",
            steps in prop::collection::vec(any::<Step>(), 0..40),
        ) -> Token {
            let [threads, acquisitions, locks, nodes, spurious, nesting] = numbers;
            let config = Config {
                threads: threads.into(),
                acquisitions: acquisitions.into(),
                locks: locks.into(),
                memory: [Memory::C11, Memory::Sc][usize::from(choices.0)],
                staleness: bounds.0,
                slots: bounds.1.map(usize::from),
                nodes: nodes.into(),
                trylock,
                spurious,
                cancel,
                split_release,
                never_park,
                fork,
                nesting,
                priority,
                time: [Time::Any, Time::Early, Time::Late][usize::from(choices.1)],
                bypass: bounds.2,
                idle: bounds.3,
                mode: [Mode::Plain, Mode::Numa][usize::from(choices.2)],
                ..Config::new(&lock)
            };
            Token { config, mutation: None, violation, shortest, steps }
        }
    }

    proptest! {
        #[test]
        fn every_token_is_read_as_it_was_written(token in tokens()) {
            prop_assert_eq!(token.to_string().parse(), Ok(token));
        }

        #[test]
        fn a_token_with_a_changed_byte_is_damaged(
            token in tokens(),
            at in any::<prop::sample::Index>(),
            change in 1..=u8::MAX,
        ) {
            let mut bytes = URL_SAFE_NO_PAD.decode(token.to_string()).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= change;
            let text = URL_SAFE_NO_PAD.encode(bytes);
            prop_assert_eq!(text.parse::<Token>(), Err(TokenError::Damaged));
        }

        #[test]
        fn other_text_is_no_token(text in ".*") {
            prop_assert_eq!(text.parse::<Token>(), Err(TokenError::Damaged));
        }

        /// Contents that are not those of a token, under a correct hash and fingerprint.
        #[test]
        fn contents_that_are_no_token_are_refused_or_read(contents in any::<Vec<u8>>()) {
            let text = seal(&[&fingerprint().to_le_bytes(), &contents[..]].concat());
            if let Err(error) = text.parse::<Token>() {
                prop_assert_eq!(error, TokenError::Stale);
            }
        }
    }
}
