//! Reproducible random delays, so that operators that started together do not poll together.

use std::time::Duration;

/// A pseudo-random sequence that is determined by its seed.
#[derive(Debug, Clone)]
pub struct Jitter(u64);

impl Jitter {
    /// The sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, by SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// An independent sequence, for a concurrent task.
    pub fn another(&mut self) -> Self {
        Self(self.next())
    }

    /// A duration from zero up to, but not including, `max`.
    pub fn below(&mut self, max: Duration) -> Duration {
        let nanos = (u128::from(self.next()) * max.as_nanos()) >> 64;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The time to the next poll: `interval`, or up to a tenth shorter.
    pub fn around(&mut self, interval: Duration) -> Duration {
        interval.saturating_sub(self.below(interval / 10))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_seed_repeats_itself_and_stays_within_bounds(seed: u64, millis in 1_u64..100_000) {
            let interval = Duration::from_millis(millis);
            let row = |mut jitter: Jitter| -> Vec<_> {
                (0..20).map(|_| jitter.around(interval)).collect()
            };
            let first = row(Jitter::new(seed));
            prop_assert_eq!(&first, &row(Jitter::new(seed)));
            for one in &first {
                prop_assert!(*one <= interval && *one >= interval * 9 / 10);
            }
            prop_assert!(first.iter().any(|one| *one != first[0]));
        }
    }

    #[test]
    fn nothing_is_below_zero() {
        assert_eq!(Jitter::new(1).below(Duration::ZERO), Duration::ZERO);
    }
}
