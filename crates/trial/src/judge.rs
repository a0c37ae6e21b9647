//! Whether what a run left behind is right.

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

pub use crate::canonical::Share;
use crate::{canonical, run::Record};
pub use allowances::{ALLOWANCES, Allowance};
pub(crate) use end_state::differ;
pub use fences::FENCE;
pub(crate) use watches::streams;

/// What is asked of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Oracle {
    /// O1: what is there in the end of each step is what is there when nothing goes wrong.
    EndState,
    /// O2: everything was made and deleted as often.
    Counts,
    /// O3: everything has a living owner, or none.
    Orphan,
    /// O5: what is done outside is done once, and not too late.
    Outside,
    /// O6: what only grows did not shrink, and what is over stayed so.
    Backwards,
    /// O7: it came to rest, and stayed there.
    Rest,
    /// O9: watches told everything, in order and once.
    Watch,
    /// O10: nobody tried and tried.
    Storm,
    /// O11: what cannot be done for one object keeps no other waiting.
    BlastRadius,
    /// O12: nothing was looked at again on a view older than what was last written for it.
    ReadYourWrites,
    /// O13: nothing secret was told.
    Secret,
    /// O14: nothing panicked or ended by itself.
    Panic,
}

impl Oracle {
    /// All of them.
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

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Who says so.
    pub oracle: Oracle,
    /// With which kind of object.
    pub kind: String,
    /// What.
    pub text: String,
}

impl Violation {
    /// What an oracle says of a kind of object.
    pub fn new(oracle: Oracle, kind: &str, text: String) -> Self {
        Self {
            oracle,
            kind: kind.to_owned(),
            text,
        }
    }
}

impl Violation {
    /// The same oracle about the same kind: anything else is another mistake.
    pub fn is_like(&self, other: &Self) -> bool {
        self.oracle == other.oracle && self.kind == other.kind
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.oracle.id(), self.text)
    }
}

/// Objects by place; at one place there may be several that are all the same to their owner.
type States<V> = BTreeMap<String, Vec<V>>;

/// A run in which nothing went wrong, prepared for comparison.
#[derive(Debug, Serialize, Deserialize)]
pub struct Reference {
    states: Vec<States<Value>>,
    counts: BTreeMap<String, (u32, u32)>,
    effects: ledger::Effects,
    effort: history::Effort,
    moments: blast::Moments,
    /// How much of what there was is compared.
    pub share: Share,
}

impl Reference {
    /// Takes `record` as what is right; what is wrong with it by itself.
    pub fn new(record: &Record) -> (Self, Vec<Violation>) {
        let mut share = Share::default();
        let forms = Forms::of(record);
        let states = forms.states(record, &mut share).into_iter();
        let reference = Self {
            states: states.map(owned).collect(),
            counts: history::counts(&record.history),
            effects: ledger::effects(&record.ledger),
            effort: history::Effort::of(&record.entries),
            moments: blast::moments(record),
            share,
        };
        let violations = reference.judge(record);
        (reference, violations)
    }

    /// How many writes those under trial make.
    pub fn writes(&self) -> usize {
        self.effort.writes
    }

    /// What is there otherwise in `record` at the end of a step, in words.
    pub fn differs(&self, record: &Record) -> Vec<String> {
        let forms = Forms::of(record);
        let states = forms.states(record, &mut Share::default());
        let differing = end_state::compare(&self.states, &states).into_iter();
        differing.map(|violation| violation.text).collect()
    }

    /// What is wrong with `record`.
    pub fn judge(&self, record: &Record) -> Vec<Violation> {
        let mut violations = record.violations.clone();
        let mut share = Share::default();
        let forms = Forms::of(record);
        let states = forms.states(record, &mut share);
        violations.extend(end_state::compare(&self.states, &states));
        violations.extend(history::compare_counts(&self.counts, &record.history));
        violations.extend(history::orphans(record));
        violations.extend(ledger::judge(&self.effects, &record.ledger));
        violations.extend(history::storm(
            self.effort,
            history::Effort::of(&record.entries),
        ));
        violations.extend(written(&record.history));
        if record.poisoned {
            blast::blamed(&mut violations);
            violations.extend(blast::late(&self.moments, record));
        }
        violations
    }
}

/// What is wrong with what was written, whatever it came to.
pub(crate) fn written(history: &[Arc<Event>]) -> Vec<Violation> {
    let mut violations = history::backwards(history);
    violations.extend(fences::backwards(history));
    violations.extend(secrets::written(history));
    violations
}

/// The canonical form of everything that was there at the end of a step, by its revision: most of it
/// is still there at the end of the next.
struct Forms(HashMap<u64, (String, Value, Share)>);

impl Forms {
    fn of(record: &Record) -> Self {
        let names = canonical::Names::of(&record.history);
        let mut forms = HashMap::new();
        for (resource, path, object) in record.states.iter().flatten() {
            if is_compared(resource) {
                forms.entry(object.revision()).or_insert_with(|| {
                    let (value, share) = canonical::canonical(object, &names);
                    (canonical::place(resource, path, object), value, share)
                });
            }
        }
        Self(forms)
    }

    fn states(&self, record: &Record, share: &mut Share) -> Vec<States<&Value>> {
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

/// What an oracle asks of an object. One that it cannot read it must not pass over: it would say
/// nothing, whatever went wrong.
fn read<'a, T: Deserialize<'a>>(event: &'a Event, oracle: Oracle) -> Result<T, Violation> {
    serde_json::from_slice(event.object.json()).map_err(|error| {
        let text = format!("{}/{} cannot be read: {error}", event.resource, event.path);
        Violation::new(oracle, &event.resource, text)
    })
}

fn is_compared(resource: &str) -> bool {
    !allowances::NOT_COMPARED.contains(&resource)
}

/// What came of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// What is wrong.
    pub violations: Vec<Violation>,
    /// The rules that never struck: if there is one, the run says nothing.
    pub idle: Vec<usize>,
    /// A number that any difference in what passed changes.
    pub fingerprint: u64,
    /// How long the slowest step took to come to rest, in virtual milliseconds.
    pub slowest: u64,
    /// What it cost, in microseconds of one core.
    pub cost: u64,
}

impl Outcome {
    pub(crate) fn of(record: &Record, reference: &Reference) -> Self {
        let slowest = record.took.iter().max().map_or(0, Duration::as_millis);
        let violations = reference.judge(record);
        Self {
            violations,
            idle: record.idle.clone(),
            fingerprint: record.fingerprint,
            slowest: slowest as u64,
            cost: neap_replay::cost().as_micros() as u64,
        }
    }

    /// The outcome of a plan whose moment never came.
    pub(crate) fn never(rules: usize) -> Self {
        Self {
            violations: Vec::new(),
            idle: (0..rules).collect(),
            fingerprint: 0,
            slowest: 0,
            cost: 0,
        }
    }

    /// The outcome of a run whose process told nothing of it, and why.
    pub(crate) fn silent(why: &str) -> Self {
        Self {
            violations: vec![Violation::new(Oracle::Panic, "process", why.to_owned())],
            idle: Vec::new(),
            fingerprint: 0,
            slowest: 0,
            cost: 0,
        }
    }
}
