//! The expected result of an operation.

use serde_json::Value;

use crate::{
    EntryKind, TraceEntry,
    external::{LedgerRow, Reply},
    plan::{Action, Plan, Point, Rule, Verb},
    run::RunRecord,
};

/// The course of an operation in a run without faults.
#[derive(Debug)]
pub(super) struct ExpectedCourse {
    /// The steps with their number of attempts: a condition is checked more than once.
    steps: Vec<(String, usize)>,
    /// The external calls of each attempt.
    pub(super) calls: Vec<Vec<(String, String)>>,
    /// The number of writes to the Operation.
    pub(super) writes: u32,
}

impl ExpectedCourse {
    pub(super) fn of(calm: &RunRecord) -> Result<Self, String> {
        let status = status(calm);
        if status["phase"] != "Succeeded" {
            return Err(format!("without any fault it comes to {}", status["phase"]));
        }
        let steps = status["steps"].as_array().cloned().unwrap_or_default();
        let steps = steps.iter().map(|step| {
            let name = step["name"].as_str().unwrap_or_default().to_owned();
            let attempts = step["attempts"].as_u64().unwrap_or_default();
            (name, attempts as usize)
        });
        let mut course = Self {
            steps: steps.collect(),
            calls: Vec::new(),
            writes: 0,
        };
        for entry in &calm.entries {
            course.record(entry);
        }
        Ok(course)
    }

    /// Every attempt is recorded before it starts and after it ends.
    fn record(&mut self, entry: &TraceEntry) {
        if entry.kind != EntryKind::Request {
            return;
        }
        let call = &entry.call;
        if call.verb == Verb::Call
            && let Some(calls) = self.calls.last_mut()
        {
            calls.push((call.kind.clone(), call.name.clone()));
        }
        if call.kind == "operations/status" {
            self.writes += 1;
            if self.writes % 2 == 1 {
                self.calls.push(Vec::new());
            }
        }
    }

    /// The step of the attempt with this number.
    fn step(&self, attempt: usize) -> &str {
        let mut left = attempt;
        for (name, attempts) in &self.steps {
            if left < *attempts {
                return name;
            }
            left -= attempts;
        }
        ""
    }

    /// Checks that the operation ends at the refused call, and that nothing is done after it.
    pub(super) fn after_failure(&self, plan: &Plan, record: &RunRecord) -> Vec<String> {
        let filter = plan.rules.first().map(|rule| rule.filter.clone());
        let filter = filter.unwrap_or_default();
        let refused = |(call, target): &(String, String)| {
            filter.call.as_ref() == Some(call) && filter.name.as_ref() == Some(target)
        };
        let attempts = self.calls.iter().enumerate();
        let mut before: Vec<(String, String)> = Vec::new();
        let mut step = "";
        for (number, calls) in attempts {
            let until = calls.iter().position(refused);
            before.extend_from_slice(&calls[..until.unwrap_or(calls.len())]);
            if until.is_some() {
                step = self.step(number);
                break;
            }
        }
        let mut problems = Vec::new();
        let status = status(record);
        if status["phase"] != "Failed" || status["step"] != step {
            problems.push(format!(
                "it is {} at {} where {step} cannot be done",
                status["phase"], status["step"]
            ));
        }
        let mut done: Vec<_> = effects(&record.ledger).collect();
        done.sort();
        before.sort();
        if done != before {
            problems.push(format!("{done:?} was done outside instead of {before:?}"));
        }
        let violations = record.violations.iter();
        problems.extend(violations.map(ToString::to_string));
        problems
    }

    /// Checks that another process took over, and that calls of the first one were refused after
    /// that.
    pub(super) fn after_takeover(plan: &Plan, record: &RunRecord) -> Vec<String> {
        let work = |entry: &&TraceEntry| {
            let kind = &entry.call.kind;
            entry.kind == EntryKind::Request && (kind == "operations/status" || is_call(entry))
        };
        let mut who: Vec<_> = record.entries.iter().filter(work).collect();
        who.dedup_by_key(|entry| entry.actor.clone());
        let mut problems = Vec::new();
        if who.len() < 2 {
            problems.push("no other process took over".to_owned());
        }
        let mut highest = 0;
        let mut late = 0;
        for row in &record.ledger {
            if row.call.fence < highest {
                late += 1;
                if row.reply != Reply::StaleFence {
                    let key = &row.call.key;
                    problems.push(format!("{key} arrived too late, and was not refused"));
                }
            }
            highest = highest.max(row.call.fence);
        }
        // A refusal can only be observed if a call arrives late.
        if plan.rules.iter().any(is_late) && late == 0 {
            problems.push("nothing arrived too late, so nothing could be refused".to_owned());
        }
        // A delayed write is cancelled when the leader loses its Lease; if it arrives all the same,
        // it must be refused.
        if written_late(record).is_some_and(|code| code < 400) {
            problems.push("a delayed write arrived late, and was accepted".to_owned());
        }
        problems
    }
}

/// A call that is in flight while another process takes over.
fn is_late(rule: &Rule) -> bool {
    rule.point == Point::ExtBefore && matches!(rule.action, Action::Delay(_))
}

/// The status code of a write to the Operation that was sent before and answered after a request of
/// another process.
fn written_late(record: &RunRecord) -> Option<u16> {
    let mut waiting: Vec<(&str, bool)> = Vec::new();
    for entry in &record.entries {
        let writes = entry.call.kind == "operations/status";
        let actor = entry.actor.as_str();
        match entry.kind {
            EntryKind::Request if writes || is_call(entry) => {
                for (other, late) in &mut waiting {
                    *late |= *other != actor;
                }
                if writes {
                    waiting.push((actor, false));
                }
            }
            EntryKind::Response(code) if writes => {
                let mine = waiting.iter().position(|(other, _)| *other == actor);
                if mine.is_some_and(|at| waiting.swap_remove(at).1) {
                    return Some(code);
                }
            }
            _ => {}
        }
    }
    None
}

fn is_call(entry: &TraceEntry) -> bool {
    entry.call.verb == Verb::Call
}

fn effects(ledger: &[LedgerRow]) -> impl Iterator<Item = (String, String)> {
    let done = ledger.iter().filter(|row| row.reply == Reply::Done);
    done.map(|row| (row.call.call.to_owned(), row.call.target.clone()))
}

/// The status of the Operation at the end of the run.
fn status(record: &RunRecord) -> Value {
    let end = record.states.last().into_iter().flatten();
    let mut operations = end.filter(|(kind, ..)| &**kind == "neaptide.dev/operations");
    let operation = operations.next().map(|(_, _, object)| object.value());
    operation.unwrap_or_default()["status"].clone()
}
