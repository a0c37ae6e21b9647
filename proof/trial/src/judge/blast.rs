//! O11: an object that cannot be written delays no other.

use std::{collections::BTreeMap, time::Duration};

use super::{Oracle, Violation, is_compared};
use crate::{canonical, run::RunRecord};

/// Tolerated delay of other objects.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// For each step, the time of the last write under each comparison key, in milliseconds since the
/// step began.
pub(super) type LastWrites = Vec<BTreeMap<String, u64>>;

pub(super) fn last_writes(record: &RunRecord) -> LastWrites {
    let mut last_writes = Vec::new();
    let mut history = record.history.iter().peekable();
    for end in &record.ends {
        let mut places = BTreeMap::new();
        let begun = history.peek().map(|event| event.at);
        while let Some(event) = history.next_if(|event| event.revision() <= *end) {
            let passed = begun.map(|begun| event.at.duration_since(begun).as_millis());
            let passed = passed.and_then(|passed| u64::try_from(passed).ok());
            if is_compared(&event.resource) {
                let place = canonical::comparison_key(&event.resource, &event.path, &event.object);
                places.insert(place, passed.unwrap_or_default());
            }
        }
        last_writes.push(places);
    }
    last_writes
}

/// Objects that were written later than in a run without poisoned objects.
pub(super) fn delayed(usual_times: &LastWrites, record: &RunRecord) -> Vec<Violation> {
    let found = last_writes(record);
    let mut violations = Vec::new();
    for (step, (usual_times, found)) in usual_times.iter().zip(&found).enumerate() {
        for (place, &usual) in usual_times {
            let Some(&delayed) = found.get(place) else {
                continue;
            };
            if Duration::from_millis(delayed) > Duration::from_millis(usual) + MAX_DELAY {
                let kind = place.split('/').nth(1).unwrap_or_default();
                let text = format!(
                    "step {step}: {place} was done {delayed} ms after its beginning, and {usual} ms without a poisoned object beside it"
                );
                violations.push(Violation::new(Oracle::BlastRadius, kind, text));
            }
        }
    }
    violations
}

/// Any difference in a run with poisoned objects is attributed to them.
pub(super) fn attribute_to_poison(violations: &mut [Violation]) {
    for violation in violations {
        if matches!(violation.oracle, Oracle::EndState | Oracle::Counts) {
            violation.oracle = Oracle::BlastRadius;
        }
    }
}
