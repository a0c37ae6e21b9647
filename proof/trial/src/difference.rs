//! Explains a failing run: where it diverges from a run without faults, and a test that reproduces
//! it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    ClusterTemplate, EntryKind, TraceEntry,
    child_process::{in_child_process, play_without_faults},
    judge::{Reference, Violation},
    run::{RunRecord, run},
    shrink::Case,
};

/// Lines about the state that are shown; more would repeat them.
const MAX_STATE_LINES: usize = 20;

/// The difference between a failing run and a passing one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The first request that only one of the runs sends; none if both send the same.
    pub request: Option<Divergence>,
    /// Differences between the states at the end of a step.
    pub state: Vec<String>,
    /// A test for the crate of the controller. It calls a function `workload(name)`.
    pub test: String,
}

/// The requests at which two runs diverge; none for a run that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Divergence {
    pub failing: Option<String>,
    pub passing: Option<String>,
}

/// Plays the case with its faults and without, each in a child process.
pub fn difference(
    case: &Case,
    found: &Violation,
    template: &ClusterTemplate,
) -> Result<Difference, String> {
    let Case { workload, plan } = case;
    let (reference, entries, _) = play_without_faults(workload, plan.seed, template)?;
    in_child_process(plan.seed, || {
        let failing = run(workload, plan, template)?;
        let passing = (&reference, &entries[..]);
        Ok(Difference::of(case, found, passing, &failing))
    })
}

impl Difference {
    /// Compares two runs of the case. `reference` and `passing` come from the run without faults.
    pub fn of(
        case: &Case,
        found: &Violation,
        (reference, passing): (&Reference, &[TraceEntry]),
        failing: &RunRecord,
    ) -> Self {
        let mut state = reference.differs(failing);
        state.truncate(MAX_STATE_LINES);
        Self {
            request: divergence(passing, &failing.entries),
            state,
            test: test(case, found),
        }
    }
}

/// Where the writes diverge, or any requests if the writes are the same. Reads diverge as soon as a
/// controller retries, which says little.
fn divergence(passing: &[TraceEntry], failing: &[TraceEntry]) -> Option<Divergence> {
    let writes = |entry: &&TraceEntry| entry.call.verb.writes();
    let of = |passing: Vec<&TraceEntry>, failing: Vec<&TraceEntry>| {
        let count = passing.len().max(failing.len());
        let part = (0..count).find(|&at| {
            let (one, other) = (passing.get(at), failing.get(at));
            one.map(|entry| request_identity(entry)) != other.map(|entry| request_identity(entry))
        })?;
        let line = |entries: &[&TraceEntry]| entries.get(part).map(ToString::to_string);
        Some(Divergence {
            failing: line(&failing),
            passing: line(&passing),
        })
    };
    let requests = |entries| requests(entries).collect::<Vec<_>>();
    let written = |entries| requests(entries).into_iter().filter(writes).collect();
    of(written(passing), written(failing)).or_else(|| of(requests(passing), requests(failing)))
}

fn requests(entries: &[TraceEntry]) -> impl Iterator<Item = &TraceEntry> {
    entries
        .iter()
        .filter(|entry| entry.kind == EntryKind::Request)
}

/// The parts of a request that two runs compare; its time is not one of them.
fn request_identity(entry: &TraceEntry) -> (&str, &str, &str, &str, &str) {
    let call = &entry.call;
    let verb = call.verb.word();
    (&entry.actor, verb, &call.kind, &call.namespace, &call.name)
}

/// The source of a test that fails as long as the violation occurs.
pub fn test(case: &Case, found: &Violation) -> String {
    let Case { workload, plan } = case;
    let steps = workload.steps.iter().map(|step| format!("{:?}", step.name));
    let steps = steps.collect::<Vec<_>>().join(", ");
    let found: String = found.to_string().chars().take(200).collect();
    let found = found.replace(['\n', '\r'], " ");
    format!(
        "/// {found}\n#[test]\nfn {}() -> Result<(), neap_trial::proof::Failure> {{\n    let plan = \"\\\n{plan}\";\n    let steps = [{steps}];\n    neap_trial::proof::survives(&workload({:?}), &steps, plan)\n}}\n",
        name(&plan.name),
        workload.name,
    )
}

/// The plan's name as a function name.
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
    format!("survives_{}", words.join("_"))
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Divergence { failing, passing }) = &self.request {
            let or_none = |line: &Option<String>| match line {
                Some(line) => line.trim_start().to_owned(),
                None => "no more requests".to_owned(),
            };
            writeln!(f, "it diverges from a run without faults at")?;
            writeln!(f, "  {}", or_none(failing))?;
            writeln!(f, "  instead of")?;
            writeln!(f, "  {}", or_none(passing))?;
        }
        for line in &self.state {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "a test that reproduces it:\n")?;
        write!(f, "{}", self.test)
    }
}
