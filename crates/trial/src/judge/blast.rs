//! O11: what cannot be done for one object keeps no other waiting.

use std::{collections::BTreeMap, time::Duration};

use super::{Oracle, Violation, is_compared};
use crate::{canonical, run::Record};

/// Others may notice that much.
const DELAY: Duration = Duration::from_secs(1);

/// For each step, when each place was written for the last time, in milliseconds after the step
/// began.
pub(super) type Moments = Vec<BTreeMap<String, u64>>;

pub(super) fn moments(record: &Record) -> Moments {
    let mut moments = Vec::new();
    let mut history = record.history.iter().peekable();
    for end in &record.ends {
        let mut places = BTreeMap::new();
        let begun = history.peek().map(|event| event.at);
        while let Some(event) = history.next_if(|event| event.revision() <= *end) {
            let passed = begun.map(|begun| event.at.duration_since(begun).as_millis());
            let passed = passed.and_then(|passed| u64::try_from(passed).ok());
            if is_compared(&event.resource) {
                let place = canonical::place(&event.resource, &event.path, &event.object);
                places.insert(place, passed.unwrap_or_default());
            }
        }
        moments.push(places);
    }
    moments
}

/// What came later beside poisoned objects than without them.
pub(super) fn late(calm: &Moments, record: &Record) -> Vec<Violation> {
    let found = moments(record);
    let mut violations = Vec::new();
    for (step, (calm, found)) in calm.iter().zip(&found).enumerate() {
        for (place, &usual) in calm {
            let Some(&late) = found.get(place) else {
                continue;
            };
            if Duration::from_millis(late) > Duration::from_millis(usual) + DELAY {
                let kind = place.split('/').nth(1).unwrap_or_default();
                let text = format!(
                    "step {step}: {place} was done {late} ms after its beginning, and {usual} ms without a poisoned object beside it"
                );
                violations.push(Violation::new(Oracle::BlastRadius, kind, text));
            }
        }
    }
    violations
}

/// Whatever differs beside a poisoned object differs because of it.
pub(super) fn blamed(violations: &mut [Violation]) {
    for violation in violations {
        if matches!(violation.oracle, Oracle::EndState | Oracle::Counts) {
            violation.oracle = Oracle::BlastRadius;
        }
    }
}
