//! Reproducible choices.

use std::time::Duration;

/// A small generator; the same seed makes the same choices.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Choices that follow from `seed` alone.
    pub fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        dice.next();
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number from 0 up to but not including `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit.max(1)
    }

    /// A moment before `limit`.
    pub fn moment(&mut self, limit: Duration) -> Duration {
        Duration::from_micros(self.below(limit.as_micros() as usize) as u64)
    }

    /// Another generator, for somebody who chooses independently.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self::new(self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_follow_from_the_seed() {
        let draw = |seed| {
            let mut dice = Dice::new(seed);
            (0..20).map(|_| dice.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert!(draw(7).iter().all(|&n| n < 1000));
    }
}
