//! What happened in an election, in numbers.

use std::{fmt, time::Duration};

use super::history::{Attempt, History, Outcome};

/// What happened.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// How often a leader was stopped and went on.
    pub stops: usize,
    /// From the last renewal to the next leader: after a stop,
    pub after_stops: Vec<Duration>,
    /// after a kill,
    pub after_kills: Vec<Duration>,
    /// and, from the request to end, after an end in order.
    pub after_ends: Vec<Duration>,
    /// Writes that the server accepted.
    pub written: usize,
    /// Writes that the server refused because somebody else had written.
    pub replaced: usize,
    /// Writes that were held back because their writer no longer led.
    pub fenced: usize,
    /// Terms in which somebody led.
    pub terms: usize,
}

impl Tally {
    pub(super) fn count(&mut self, history: &History) {
        let of = |outcome| {
            let is = |attempt: &&Attempt| attempt.outcome == outcome;
            history.attempts.iter().filter(is).count()
        };
        self.written = history.ledger.len();
        self.replaced = of(Outcome::Replaced);
        self.fenced = of(Outcome::Fenced);
        let mut terms: Vec<_> = history.leases.iter().map(|held| held.term).collect();
        terms.dedup();
        self.terms = terms.len();
    }

    /// How many leaders had something happen to them.
    pub fn rounds(&self) -> usize {
        self.stops + self.after_kills.len() + self.after_ends.len()
    }
}

impl fmt::Display for Tally {
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

/// The middle one and the longest.
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
        let tally = Tally {
            stops: 3,
            after_kills: vec![second(3), second(1), second(2)],
            ..Tally::default()
        };
        let told = tally.to_string();
        assert_eq!(told, "3 stops, 3 after a kill (p50 2.00s, max 3.00s)");
    }
}
