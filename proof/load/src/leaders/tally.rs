//! The counts of an election.

use std::{fmt, time::Duration};

use super::history::{History, WriteAttempt, WriteOutcome};

/// The counts of an election.
#[derive(Debug, Clone, Default)]
pub struct ElectionTally {
    /// How often a leader was paused and resumed.
    pub stops: usize,
    /// Times from the last renewal to the next leader, after a pause.
    pub after_stops: Vec<Duration>,
    /// The same after a kill.
    pub after_kills: Vec<Duration>,
    /// Times from SIGTERM to the next leader.
    pub after_ends: Vec<Duration>,
    /// Writes that the server accepted.
    pub written: usize,
    /// Writes that the server refused because of a conflict.
    pub replaced: usize,
    /// Writes that were not sent because their writer no longer led.
    pub fenced: usize,
    /// Terms with a leader.
    pub terms: usize,
}

impl ElectionTally {
    pub(super) fn count(&mut self, history: &History) {
        let of = |outcome| {
            let is = |attempt: &&WriteAttempt| attempt.outcome == outcome;
            history.attempts.iter().filter(is).count()
        };
        self.written = history.ledger.len();
        self.replaced = of(WriteOutcome::Replaced);
        self.fenced = of(WriteOutcome::Fenced);
        let mut terms: Vec<_> = history.leases.iter().map(|held| held.term).collect();
        terms.dedup();
        self.terms = terms.len();
    }

    /// The number of leaders that were disturbed.
    pub fn rounds(&self) -> usize {
        self.stops + self.after_kills.len() + self.after_ends.len()
    }
}

impl fmt::Display for ElectionTally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stops, written, .. } = self;
        write!(f, "{stops} stops")?;
        for (what, times) in [
            ("takeovers after a stop", &self.after_stops),
            ("after a kill", &self.after_kills),
            ("after an end in order", &self.after_ends),
        ] {
            if let Some((middle, longest)) = summary(times) {
                write!(
                    f,
                    ", {} {what} (p50 {middle:.2?}, max {longest:.2?})",
                    times.len()
                )?;
            }
        }
        if self.terms > 0 {
            let (terms, fenced, replaced) = (self.terms, self.fenced, self.replaced);
            write!(
                f,
                "; {terms} terms, {written} writes, {fenced} held back, {replaced} refused"
            )?;
        }
        Ok(())
    }
}

/// The median and the maximum.
fn summary(times: &[Duration]) -> Option<(Duration, Duration)> {
    let mut sorted = times.to_vec();
    sorted.sort();
    Some((*sorted.get(sorted.len() / 2)?, *sorted.last()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_longest_are_told() {
        let second = Duration::from_secs;
        let tally = ElectionTally {
            stops: 3,
            after_kills: vec![second(3), second(1), second(2)],
            ..ElectionTally::default()
        };
        let reported = tally.to_string();
        assert_eq!(reported, "3 stops, 3 after a kill (p50 2.00s, max 3.00s)");
    }
}
