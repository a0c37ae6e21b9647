//! What a failing run does otherwise than one in which nothing goes wrong, and a test that shows it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    Entry, Ground, What,
    apart::{apart, calm},
    judge::{Reference, Violation},
    run::{Record, run},
    shrink::Case,
};

/// So many lines about the state; more would say the same.
const LINES: usize = 20;

/// Where a failing run parts from one that passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The first request that only one of them makes; nothing if both ask for the same.
    pub request: Option<Parting>,
    /// What is there otherwise at the end of a step.
    pub state: Vec<String>,
    /// A test for the crate whose controller it is. It asks for a function `workload(name)`.
    pub test: String,
}

/// What each of two runs asks for in the place where they part; nothing if one of them is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parting {
    /// The failing one.
    pub failing: Option<String>,
    /// The passing one.
    pub passing: Option<String>,
}

/// Plays the case with its faults and without, each in a process of its own.
pub fn difference(case: &Case, found: &Violation, ground: &Ground) -> Result<Difference, String> {
    let Case { workload, plan } = case;
    let (reference, entries, _) = calm(workload, plan.seed, ground)?;
    apart(plan.seed, || {
        let failing = run(workload, plan, ground)?;
        let passing = (&reference, &entries[..]);
        Ok(Difference::of(case, found, passing, &failing))
    })
}

impl Difference {
    /// Of two runs of the case; of the passing one, what is right and what passed.
    pub fn of(
        case: &Case,
        found: &Violation,
        (reference, passing): (&Reference, &[Entry]),
        failing: &Record,
    ) -> Self {
        let mut state = reference.differs(failing);
        state.truncate(LINES);
        Self {
            request: parting(passing, &failing.entries),
            state,
            test: test(case, found),
        }
    }
}

/// Where the writes part; where any requests do if the writes are the same. Reads part as soon as
/// somebody tries again, and say little.
fn parting(passing: &[Entry], failing: &[Entry]) -> Option<Parting> {
    let writes = |entry: &&Entry| entry.call.verb.writes();
    let of = |passing: Vec<&Entry>, failing: Vec<&Entry>| {
        let count = passing.len().max(failing.len());
        let part = (0..count).find(|&at| {
            let (one, other) = (passing.get(at), failing.get(at));
            one.map(|entry| asked(entry)) != other.map(|entry| asked(entry))
        })?;
        let line = |entries: &[&Entry]| entries.get(part).map(ToString::to_string);
        Some(Parting {
            failing: line(&failing),
            passing: line(&passing),
        })
    };
    let requests = |entries| requests(entries).collect::<Vec<_>>();
    let written = |entries| requests(entries).into_iter().filter(writes).collect();
    of(written(passing), written(failing)).or_else(|| of(requests(passing), requests(failing)))
}

fn requests(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| entry.what == What::Asked)
}

/// What makes two requests the same: when they come does not.
fn asked(entry: &Entry) -> (&str, &str, &str, &str, &str) {
    let call = &entry.call;
    let verb = call.verb.word();
    (&entry.actor, verb, &call.kind, &call.namespace, &call.name)
}

/// A test that fails as long as `found` is so.
pub fn test(case: &Case, found: &Violation) -> String {
    let Case { workload, plan } = case;
    let steps = workload.steps.iter().map(|step| format!("{:?}", step.name));
    let steps = steps.collect::<Vec<_>>().join(", ");
    let found: String = found.to_string().chars().take(200).collect();
    let found = found.replace(['\n', '\r'], " ");
    format!(
        "/// {found}\n#[test]\nfn {}() -> Result<(), neap_trial::proof::Failure> {{\n    let plan = \"\\\n{plan}\";\n    let steps = [{steps}];\n    neap_trial::proof::stands(&workload({:?}), &steps, plan)\n}}\n",
        name(&plan.name),
        workload.name,
    )
}

/// A name that a function can have.
fn name(text: &str) -> String {
    let letters = text.chars().map(|letter| {
        if letter.is_ascii_alphanumeric() {
            letter.to_ascii_lowercase()
        } else {
            '_'
        }
    });
    let name: String = letters.collect();
    let words: Vec<_> = name.split('_').filter(|word| !word.is_empty()).collect();
    format!("stands_{}", words.join("_"))
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Parting { failing, passing }) = &self.request {
            let or_none = |line: &Option<String>| match line {
                Some(line) => line.trim_start().to_owned(),
                None => "nothing more is asked".to_owned(),
            };
            writeln!(f, "it parts from a run without faults where")?;
            writeln!(f, "  {}", or_none(failing))?;
            writeln!(f, "  instead of")?;
            writeln!(f, "  {}", or_none(passing))?;
        }
        for line in &self.state {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "a test that shows it:\n")?;
        write!(f, "{}", self.test)
    }
}
