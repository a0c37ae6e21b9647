//! Oracles: whether the result of a run is correct.

pub(crate) mod allowances;
mod blast;
mod end_state;
mod fences;
mod history;
mod ledger;
pub(crate) mod secrets;
mod watches;

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
    time::Duration,
};

use neap_pocket::store::Event;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::canonical::FieldCoverage;
use crate::{canonical, run::RunRecord};
pub use allowances::{ALLOWANCES, Allowance};
pub(crate) use end_state::differ;
pub use fences::FENCE;
pub(crate) use watches::judge_watches;

/// A requirement that every run is checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Oracle {
    /// O1: the state at the end of each step equals that of a run without faults.
    EndState,
    /// O2: every object was created and deleted as many times as without faults.
    Counts,
    /// O3: every object has a live owner, or none.
    Orphan,
    /// O5: external calls take effect once, and none with an outdated fence.
    Outside,
    /// O6: generations never decrease, and finished objects stay finished.
    Backwards,
    /// O7: the system comes to rest, and stays there.
    Rest,
    /// O9: watches deliver every event, in order and once.
    Watch,
    /// O10: no retry storm.
    Storm,
    /// O11: an object that cannot be written delays no other.
    BlastRadius,
    /// O12: no key is reconciled from a view older than the last write for that key.
    ReadYourWrites,
    /// O13: no secret is disclosed.
    Secret,
    /// O14: no process panics or ends by itself.
    Panic,
}

impl Oracle {
    pub const ALL: [Self; 12] = [
        Self::EndState,
        Self::Counts,
        Self::Orphan,
        Self::Outside,
        Self::Backwards,
        Self::Rest,
        Self::Watch,
        Self::Storm,
        Self::BlastRadius,
        Self::ReadYourWrites,
        Self::Secret,
        Self::Panic,
    ];

    /// Its number in the catalogue.
    pub fn id(self) -> &'static str {
        match self {
            Self::EndState => "O1",
            Self::Counts => "O2",
            Self::Orphan => "O3",
            Self::Outside => "O5",
            Self::Backwards => "O6",
            Self::Rest => "O7",
            Self::Watch => "O9",
            Self::Storm => "O10",
            Self::BlastRadius => "O11",
            Self::ReadYourWrites => "O12",
            Self::Secret => "O13",
            Self::Panic => "O14",
        }
    }
}

/// A violated requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    pub oracle: Oracle,
    /// The kind of object that violates it.
    pub kind: String,
    pub text: String,
}

impl Violation {
    pub fn new(oracle: Oracle, kind: &str, text: String) -> Self {
        Self {
            oracle,
            kind: kind.to_owned(),
            text,
        }
    }
}

impl Violation {
    /// Whether both come from the same oracle and concern the same kind: otherwise it is another
    /// defect.
    pub fn is_like(&self, other: &Self) -> bool {
        self.oracle == other.oracle && self.kind == other.kind
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.oracle.id(), self.text)
    }
}

/// Objects by comparison key; objects that are interchangeable to their owner share one.
type States<V> = BTreeMap<String, Vec<V>>;

/// A run without faults, prepared for comparison.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reference {
    states: Vec<States<Value>>,
    counts: BTreeMap<String, (u32, u32)>,
    effects: ledger::Effects,
    effort: history::Effort,
    moments: blast::LastWrites,
    /// How many fields are compared.
    pub share: FieldCoverage,
}

impl Reference {
    /// Takes `record` as the expected result. Also returns what violates an oracle in `record`
    /// itself.
    pub fn new(record: &RunRecord) -> (Self, Vec<Violation>) {
        let mut share = FieldCoverage::default();
        let forms = CanonicalForms::of(record);
        let states = forms.states(record, &mut share).into_iter();
        if record.incomparable {
            share = FieldCoverage::default();
        }
        let reference = Self {
            states: states.map(owned).collect(),
            counts: history::counts(&record.history),
            effects: ledger::effects(&record.ledger),
            effort: history::Effort::of(&record.entries),
            moments: blast::last_writes(record),
            share,
        };
        let violations = reference.judge(record);
        (reference, violations)
    }

    /// The number of writes by the processes under test.
    pub fn writes(&self) -> usize {
        self.effort.writes
    }

    /// Differences between `record` and the reference at the end of each step, as text.
    pub fn differs(&self, record: &RunRecord) -> Vec<String> {
        let forms = CanonicalForms::of(record);
        let states = forms.states(record, &mut FieldCoverage::default());
        let differing = end_state::compare(&self.states, &states).into_iter();
        differing.map(|violation| violation.text).collect()
    }

    /// The violations in `record`.
    pub fn judge(&self, record: &RunRecord) -> Vec<Violation> {
        let mut violations = record.violations.clone();
        if !record.incomparable {
            let mut share = FieldCoverage::default();
            let forms = CanonicalForms::of(record);
            let states = forms.states(record, &mut share);
            violations.extend(end_state::compare(&self.states, &states));
            violations.extend(history::compare_counts(&self.counts, &record.history));
        }
        violations.extend(history::orphans(record));
        violations.extend(ledger::judge(&self.effects, &record.ledger));
        violations.extend(history::storm(
            self.effort,
            history::Effort::of(&record.entries),
        ));
        violations.extend(written(&record.history));
        if record.poisoned {
            blast::attribute_to_poison(&mut violations);
            violations.extend(blast::delayed(&self.moments, record));
        }
        violations
    }
}

/// Violations in what was written, whatever the final state.
pub(crate) fn written(history: &[Arc<Event>]) -> Vec<Violation> {
    let mut violations = history::backwards(history);
    violations.extend(fences::backwards(history));
    violations.extend(secrets::written(history));
    violations
}

/// The canonical forms of all objects at the end of a step, by revision: most objects are unchanged
/// at the end of the next one.
struct CanonicalForms(HashMap<u64, (String, Value, FieldCoverage)>);

impl CanonicalForms {
    fn of(record: &RunRecord) -> Self {
        let names = canonical::ObjectNames::of(&record.history);
        let mut forms = HashMap::new();
        for (resource, path, object) in record.states.iter().flatten() {
            if is_compared(resource) {
                forms.entry(object.revision()).or_insert_with(|| {
                    let (value, share) = canonical::canonical(object, &names, &record.differences);
                    (
                        canonical::comparison_key(resource, path, object),
                        value,
                        share,
                    )
                });
            }
        }
        Self(forms)
    }

    fn states(&self, record: &RunRecord, share: &mut FieldCoverage) -> Vec<States<&Value>> {
        let mut all = Vec::new();
        for state in &record.states {
            let mut places = States::new();
            for (place, value, of) in state
                .iter()
                .filter_map(|(.., object)| self.0.get(&object.revision()))
            {
                share.compared += of.compared;
                share.masked += of.masked;
                places.entry(place.clone()).or_default().push(value);
            }
            for values in places.values_mut().filter(|values| values.len() > 1) {
                values.sort_by_cached_key(ToString::to_string);
            }
            all.push(places);
        }
        all
    }
}

fn owned(states: States<&Value>) -> States<Value> {
    let states = states.into_iter();
    states
        .map(|(place, values)| (place, values.into_iter().cloned().collect()))
        .collect()
}

/// The part of an object that an oracle needs. An object that cannot be decoded is a violation:
/// skipping it would hide whatever went wrong.
fn read<'a, T: Deserialize<'a>>(event: &'a Event, oracle: Oracle) -> Result<T, Violation> {
    serde_json::from_slice(event.object.json()).map_err(|error| {
        let text = format!("{}/{} cannot be read: {error}", event.resource, event.path);
        Violation::new(oracle, &event.resource, text)
    })
}

fn is_compared(resource: &str) -> bool {
    !allowances::NOT_COMPARED.contains(&resource)
}

/// The result of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanOutcome {
    pub violations: Vec<Violation>,
    /// The rules that never struck. If there is one, the run is void.
    pub idle: Vec<usize>,
    /// A hash of the trace.
    pub fingerprint: u64,
    /// The time that the slowest step took to come to rest, in virtual milliseconds.
    pub slowest: u64,
    /// CPU time in microseconds.
    pub cost: u64,
}

impl PlanOutcome {
    pub(crate) fn of(record: &RunRecord, reference: &Reference) -> Self {
        let slowest = record.took.iter().max().map_or(0, Duration::as_millis);
        let violations = reference.judge(record);
        Self {
            violations,
            idle: record.idle.clone(),
            fingerprint: record.fingerprint,
            slowest: slowest as u64,
            cost: neap_determinism::cpu_time().as_micros() as u64,
        }
    }

    /// The outcome of a plan none of whose rules matched.
    pub(crate) fn not_struck(rules: usize) -> Self {
        Self {
            violations: Vec::new(),
            idle: (0..rules).collect(),
            fingerprint: 0,
            slowest: 0,
            cost: 0,
        }
    }

    /// The outcome of a run whose process returned nothing, with the reason.
    pub(crate) fn lost(why: &str) -> Self {
        Self {
            violations: vec![Violation::new(Oracle::Panic, "process", why.to_owned())],
            idle: Vec::new(),
            fingerprint: 0,
            slowest: 0,
            cost: 0,
        }
    }
}
