//! What an operation should have come to.

use serde_json::Value;

use crate::{
    Entry, What,
    outside::{Reply, Row},
    plan::{Action, Plan, Point, Rule, Verb},
    run::Record,
};

/// How an operation goes when nothing goes wrong.
#[derive(Debug)]
pub(super) struct Course {
    /// The steps, and how often each was tried: a condition is asked more than once.
    steps: Vec<(String, usize)>,
    /// What was asked of systems outside, attempt by attempt.
    pub(super) asked: Vec<Vec<(String, String)>>,
    /// How often the operation was written.
    pub(super) writes: u32,
}

impl Course {
    pub(super) fn of(calm: &Record) -> Result<Self, String> {
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
            asked: Vec::new(),
            writes: 0,
        };
        for entry in &calm.entries {
            course.note(entry);
        }
        Ok(course)
    }

    /// An attempt is written down before it is made, and after.
    fn note(&mut self, entry: &Entry) {
        if entry.what != What::Asked {
            return;
        }
        let call = &entry.call;
        if call.verb == Verb::Call
            && let Some(asked) = self.asked.last_mut()
        {
            asked.push((call.kind.clone(), call.name.clone()));
        }
        if call.kind == "operations/status" {
            self.writes += 1;
            if self.writes % 2 == 1 {
                self.asked.push(Vec::new());
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

    /// The operation ends where what it asks is refused, and nothing after that is done.
    pub(super) fn after_failure(&self, plan: &Plan, record: &Record) -> Vec<String> {
        let filter = plan.rules.first().map(|rule| rule.filter.clone());
        let filter = filter.unwrap_or_default();
        let refused = |(call, thing): &(String, String)| {
            filter.call.as_ref() == Some(call) && filter.name.as_ref() == Some(thing)
        };
        let attempts = self.asked.iter().enumerate();
        let mut before: Vec<(String, String)> = Vec::new();
        let mut step = "";
        for (number, asked) in attempts {
            let until = asked.iter().position(refused);
            before.extend_from_slice(&asked[..until.unwrap_or(asked.len())]);
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

    /// Another must have gone on, and whoever comes back must not be heard.
    pub(super) fn after_takeover(plan: &Plan, record: &Record) -> Vec<String> {
        let work = |entry: &&Entry| {
            let kind = &entry.call.kind;
            entry.what == What::Asked && (kind == "operations/status" || is_call(entry))
        };
        let mut who: Vec<_> = record.entries.iter().filter(work).collect();
        who.dedup_by_key(|entry| entry.actor.clone());
        let mut problems = Vec::new();
        if who.len() < 2 {
            problems.push("nobody else went on with it".to_owned());
        }
        let mut highest = 0;
        let mut late = 0;
        for row in &record.ledger {
            if row.errand.fence < highest {
                late += 1;
                if row.reply != Reply::TooLate {
                    let key = &row.errand.key;
                    problems.push(format!("{key} was asked too late, and not refused"));
                }
            }
            highest = highest.max(row.errand.fence);
        }
        // Whether anybody would be refused is only seen if somebody comes late.
        if plan.rules.iter().any(is_late) && late == 0 {
            problems.push("nothing arrived too late, so nothing could be refused".to_owned());
        }
        // A write that is held up is given up with the lead; if it comes all the same, it is refused.
        if written_late(record).is_some_and(|code| code < 400) {
            problems.push("what was held up was written late, and taken".to_owned());
        }
        problems
    }
}

/// A request that is on its way while another goes on.
fn is_late(rule: &Rule) -> bool {
    rule.point == Point::ExtBefore && matches!(rule.action, Action::Delay(_))
}

/// How a write of the operation was answered that came after another had asked for something.
fn written_late(record: &Record) -> Option<u16> {
    let mut waiting: Vec<(&str, bool)> = Vec::new();
    for entry in &record.entries {
        let writes = entry.call.kind == "operations/status";
        let actor = entry.actor.as_str();
        match entry.what {
            What::Asked if writes || is_call(entry) => {
                for (other, late) in &mut waiting {
                    *late |= *other != actor;
                }
                if writes {
                    waiting.push((actor, false));
                }
            }
            What::Answered(code) if writes => {
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

fn is_call(entry: &Entry) -> bool {
    entry.call.verb == Verb::Call
}

fn effects(ledger: &[Row]) -> impl Iterator<Item = (String, String)> {
    let done = ledger.iter().filter(|row| row.reply == Reply::Done);
    done.map(|row| (row.errand.call.to_owned(), row.errand.thing.clone()))
}

/// The status of the operation when all has come to rest.
fn status(record: &Record) -> Value {
    let end = record.states.last().into_iter().flatten();
    let mut operations = end.filter(|(kind, ..)| &**kind == "neaptide.dev/operations");
    let operation = operations.next().map(|(_, _, object)| object.value());
    operation.unwrap_or_default()["status"].clone()
}
