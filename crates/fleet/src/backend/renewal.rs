//! How long a worker trusts its lease. Pure.

use std::time::Duration;

/// What a worker knows about its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeaseTrust {
    /// How long a lease lasts from its last renewal, by the clock of the database.
    lease: Duration,
    /// When the last renewal that succeeded was sent, by the clock of the worker.
    renewed_at: Duration,
}

/// How a renewal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Renewal {
    Succeeded,
    /// The database did not answer as it should: perhaps it does next time.
    Failed,
    /// Another worker has the lease, or there was no answer for as long as it is trusted.
    Lost,
}

impl LeaseTrust {
    /// A lease that was claimed by a call which was sent at `sent`.
    pub(super) fn claimed(lease: Duration, sent: Duration) -> Self {
        let renewed_at = sent;
        Self { lease, renewed_at }
    }

    /// How long the worker may go on without another renewal: two thirds of the lease, so that it has ended
    /// what it does before another worker begins.
    pub(super) fn left(&self, now: Duration) -> Duration {
        (self.renewed_at + self.lease * 2 / 3).saturating_sub(now)
    }

    /// The trust after a renewal that was sent at `sent`; none if the worker must stop at `now`.
    pub(super) fn after(self, renewal: Renewal, sent: Duration, now: Duration) -> Option<Self> {
        let trust = match renewal {
            // Since it was sent and not since it was answered: the database counts from a time between.
            Renewal::Succeeded => Self {
                renewed_at: sent,
                ..self
            },
            Renewal::Failed => self,
            Renewal::Lost => return None,
        };
        (!trust.left(now).is_zero()).then_some(trust)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEASE: u64 = 12_000;
    const RENEWAL: u64 = 3_000;

    fn millis(time: u64) -> Duration {
        Duration::from_millis(time)
    }

    /// What happens to one renewal: the time until the database gets it, and until its answer is there, and
    /// whether the database does it and answers.
    #[derive(Debug, Clone, Copy)]
    struct Call {
        until_there: u64,
        until_back: u64,
        is_done: bool,
        is_answered: bool,
        /// How long the worker then looks whether the work was cancelled.
        look: u64,
    }

    fn call() -> impl Strategy<Value = Call> {
        let times = (0_u64..9_000, 0_u64..9_000, 0..=RENEWAL);
        (times, any::<bool>(), any::<bool>()).prop_map(
            |((until_there, until_back, look), is_done, is_answered)| Call {
                until_there,
                until_back,
                is_done,
                is_answered,
                look,
            },
        )
    }

    fn left(trust: &LeaseTrust, now: u64) -> u64 {
        u64::try_from(trust.left(millis(now)).as_millis()).unwrap()
    }

    proptest! {
        /// Whatever becomes of renewals, a worker stops before its lease ends at the database, and another
        /// one can have it.
        #[test]
        fn a_worker_stops_before_its_lease_ends(
            claim_took in 0_u64..20_000,
            calls in prop::collection::vec(call(), 0..12),
        ) {
            // The claim was sent at zero, and the database did it at once, at the worst.
            let (mut ends, mut now) = (LEASE, claim_took);
            let mut trust = LeaseTrust::claimed(millis(LEASE), Duration::ZERO);
            if left(&trust, now) == 0 {
                return Ok(());
            }
            for call in calls {
                now += RENEWAL.min(left(&trust, now));
                let (sent, left_at) = (now, left(&trust, now));
                let took = call.until_there + call.until_back;
                let in_time = call.is_answered && took < left_at;
                // A renewal that comes after the end of the lease still holds if no other worker has claimed it.
                if call.is_done && call.until_there <= left_at {
                    ends = ends.max(sent + call.until_there + LEASE);
                }
                now = sent + took.min(left_at);
                prop_assert!(now <= ends, "it works at {now}, and its lease ended at {ends}");
                let renewal = match (in_time, call.is_done) {
                    (true, true) => Renewal::Succeeded,
                    (true, false) => Renewal::Failed,
                    (false, _) => Renewal::Lost,
                };
                match trust.after(renewal, millis(sent), millis(now)) {
                    Some(next) => trust = next,
                    None => return Ok(()),
                }
                now += call.look.min(left(&trust, now));
            }
            let stops = now + left(&trust, now);
            prop_assert!(stops <= ends, "it stops at {stops}, and its lease ended at {ends}");
        }

        #[test]
        fn renewals_in_time_keep_a_lease_for_ever(times in prop::collection::vec(0_u64..4_900, 1..50)) {
            let (mut now, mut trust) = (0, LeaseTrust::claimed(millis(LEASE), Duration::ZERO));
            for took in times {
                now += RENEWAL;
                let sent = millis(now);
                now += took;
                let next = trust.after(Renewal::Succeeded, sent, millis(now));
                prop_assert!(next.is_some(), "an answer after {took} ms");
                trust = next.unwrap();
            }
        }
    }
}
