//! Every pair of faults, in random order.

use neap_trial::{generate::SeededRng, plan::Rule};

/// Pairs with the same first fault that are played together: up to that fault they are one run.
const PAIRS_PER_RUN: usize = 20;

/// The pairs that have not been played.
pub(super) struct Pairs {
    all: usize,
    /// The first fault, and the first of those that it is paired with.
    left: Vec<(u32, u32)>,
}

impl Pairs {
    /// All pairs of `faults` faults, in an order that depends on `seed`.
    pub(super) fn of(faults: usize, seed: u64) -> Self {
        let mut left = Vec::new();
        for first in 0..faults {
            let others = (first + 1..faults).step_by(PAIRS_PER_RUN);
            left.extend(others.map(|other| (first as u32, other as u32)));
        }
        let mut rng = SeededRng::new(seed);
        for index in (1..left.len()).rev() {
            left.swap(index, rng.below(index + 1));
        }
        Self {
            all: faults * faults.saturating_sub(1) / 2,
            left,
        }
    }

    pub(super) fn all(&self) -> usize {
        self.all
    }

    pub(super) fn is_over(&self) -> bool {
        self.left.is_empty()
    }

    /// About `count` more pairs; none if all have been played.
    pub(super) fn next(&mut self, count: usize, rules: &[Rule]) -> impl Iterator<Item = Vec<Rule>> {
        let left = self.left.len().saturating_sub(count / PAIRS_PER_RUN);
        let cells = self.left.split_off(left);
        cells.into_iter().flat_map(move |(first, from)| {
            let (first, from) = (first as usize, from as usize);
            let others = rules[from..].iter().take(PAIRS_PER_RUN);
            others.map(move |other| vec![rules[first].clone(), other.clone()])
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use neap_trial::plan::parse;

    use super::*;

    #[test]
    fn every_pair_comes_once() {
        let rules: Vec<_> = (1..=45)
            .map(|nth| format!("on read #{nth} for any do fail 500\n"))
            .collect();
        let text = format!("plan p\nworkload w seed 1\n{}", rules.concat());
        let rules = parse(&text).unwrap().remove(0).rules;
        let mut pairs = Pairs::of(rules.len(), 1);
        assert_eq!(pairs.all(), 45 * 44 / 2);
        let mut seen = HashSet::new();
        loop {
            let before = seen.len();
            for pair in pairs.next(100, &rules) {
                let [one, other] = &pair[..] else {
                    panic!("{pair:?}")
                };
                let pair = format!("{one}{other}");
                assert!(seen.insert(pair), "a pair came twice");
            }
            if seen.len() == before {
                break;
            }
        }
        assert_eq!(seen.len(), 45 * 44 / 2);
    }
}
