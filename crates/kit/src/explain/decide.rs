//! From facts to an explanation.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::{
    Explanation, Facts, Verdict,
    conditions::{ConditionSummary, Severity},
    kinds::{Assessment, assess},
    text,
};
use crate::operation::{Operation, Phase};

/// The length from which equal texts are taken for the same statement.
const MIN_REPEATED_LENGTH: usize = 20;
/// The maximum number of Events in an explanation.
const MAX_EVENTS: usize = 3;

/// Explains the state of the object.
pub fn explain(facts: &Facts) -> Explanation {
    let operations = operations_on(facts);
    let warnings = warnings(&facts.events);
    let assessment = facts.object.as_ref().and_then(|object| {
        let given = facts.assessment.clone();
        given.or_else(|| assess(facts, object))
    });
    let covers = assessment
        .as_ref()
        .map_or(&[] as &[_], |assessment| assessment.covers);
    let mut conditions = facts
        .object
        .as_ref()
        .map(ConditionSummary::of)
        .unwrap_or_default();
    conditions.retain(|condition| !covers.contains(&&*condition.type_));
    let verdict = verdict(facts, assessment.as_ref(), &conditions, &operations);
    let why = why(facts, assessment.as_ref(), &conditions, &operations);
    let shown = warnings.iter().filter(|event| !is_repeated(event, &why));
    let shown = shown.take(MAX_EVENTS);
    let unreadable = relevant_unreadable(facts);
    Explanation {
        verdict,
        headline: text::headline(facts, verdict, &unreadable),
        seen: shown.map(|event| text::event(event, facts.now)).collect(),
        why,
        advice: advice(facts, assessment, &operations, &warnings, verdict),
        unreadable,
    }
}

fn verdict(
    facts: &Facts,
    assessment: Option<&Assessment>,
    conditions: &[ConditionSummary],
    operations: &[&Operation],
) -> Verdict {
    let Some(object) = &facts.object else {
        return Verdict::NotFound;
    };
    let is_running = |one: &&Operation| !is_finished(phase(one));
    let most_severe = conditions
        .first()
        .map_or(Severity::Healthy, ConditionSummary::severity);
    let progressing = conditions
        .iter()
        .any(|condition| condition.severity() == Severity::Progressing);
    let assessed = assessment.map_or(Verdict::Healthy, |assessment| assessment.verdict);
    if is_terminating(object) {
        Verdict::Terminating
    } else if most_severe == Severity::Stalled || assessed == Verdict::Degraded {
        Verdict::Degraded
    } else if unobserved_generation(object).is_some()
        || operations.iter().any(is_running)
        || progressing
    {
        Verdict::Progressing
    } else if most_severe == Severity::Unhealthy {
        Verdict::Degraded
    } else {
        assessed
    }
}

fn why(
    facts: &Facts,
    assessment: Option<&Assessment>,
    conditions: &[ConditionSummary],
    operations: &[&Operation],
) -> Vec<String> {
    let Some(object) = &facts.object else {
        return Vec::new();
    };
    let mut why = Vec::new();
    if is_terminating(object) {
        why.push(text::terminating(object, facts.now));
    }
    if let Some((current, observed)) = unobserved_generation(object) {
        why.push(text::unobserved_generation(current, observed));
    }
    why.extend(assessment.into_iter().flat_map(|one| one.why.clone()));
    let unhealthy = conditions
        .iter()
        .filter(|condition| condition.severity() != Severity::Healthy);
    why.extend(unhealthy.map(|condition| text::condition(condition, facts.now)));
    let unsuccessful = operations
        .iter()
        .filter(|one| phase(one) != Phase::Succeeded);
    why.extend(unsuccessful.map(|one| text::operation(one, facts.now)));
    why
}

/// The operations on the object, the newest first; of finished ones only if it is the newest of all.
fn operations_on(facts: &Facts) -> Vec<&Operation> {
    let on_it = |one: &&Operation| {
        let target = &one.spec.target;
        target.kind.eq_ignore_ascii_case(&facts.kind)
            && target.name == facts.key.name()
            && target.namespace == facts.key.namespace()
    };
    let mut all: Vec<_> = facts.operations.iter().filter(on_it).collect();
    let age = |one: &Operation| one.metadata.creation_timestamp.as_ref().map(|time| time.0);
    all.sort_by_key(|one| std::cmp::Reverse(age(one)));
    let mut position = 0;
    all.retain(|one| {
        position += 1;
        position == 1 || !is_finished(phase(one))
    });
    all
}

fn phase(operation: &Operation) -> Phase {
    let status = operation.status.as_ref();
    status.map(|status| status.phase).unwrap_or_default()
}

fn is_finished(phase: Phase) -> bool {
    matches!(phase, Phase::Succeeded | Phase::Failed | Phase::Cancelled)
}

fn warnings(events: &[Event]) -> Vec<&Event> {
    let is_warning = |event: &&Event| event.type_.as_deref() == Some("Warning");
    let mut warnings: Vec<_> = events.iter().filter(is_warning).collect();
    warnings.sort_by_key(|event| std::cmp::Reverse(text::last_seen(event)));
    warnings
}

/// The unreadable kinds that matter for the object. Kinds of storage matter only to claims and classes;
/// elsewhere, a reason mentions them if something waits for storage.
fn relevant_unreadable(facts: &Facts) -> Vec<String> {
    let storage = ["PersistentVolumeClaim", "StorageClass"];
    let about_storage = storage.contains(&&*facts.kind);
    let relevant = facts
        .unreadable
        .iter()
        .filter(|kind| about_storage || !storage.contains(&kind.as_str()));
    relevant.cloned().collect()
}

/// Whether a reason contains the message of the event, or the message ends with a reason.
fn is_repeated(event: &Event, why: &[String]) -> bool {
    let message = event.message.as_deref().unwrap_or_default().trim();
    let repeats = |why: &String| {
        let last = why.rsplit_once(": ").map_or("", |(_, last)| last);
        why.contains(message) || (last.len() >= MIN_REPEATED_LENGTH && message.ends_with(last))
    };
    !message.is_empty() && why.iter().any(repeats)
}

fn is_terminating(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The current generation and the observed one, if that is older.
fn unobserved_generation(object: &Value) -> Option<(i64, i64)> {
    let current = object["metadata"]["generation"].as_i64()?;
    let observed = object["status"]["observedGeneration"].as_i64()?;
    (observed < current).then_some((current, observed))
}

/// The advice of the assessment, and the remedies of all codes that occur in status and Events.
fn advice(
    facts: &Facts,
    assessment: Option<Assessment>,
    operations: &[&Operation],
    warnings: &[&Event],
    verdict: Verdict,
) -> Vec<String> {
    let mut texts = Vec::new();
    if let Some(object) = &facts.object {
        texts.push(object["status"].to_string());
    }
    let causes = operations.iter().filter_map(|one| one.status.as_ref());
    texts.extend(causes.map(|status| serde_json::to_string(status).unwrap_or_default()));
    texts.extend(warnings.iter().filter_map(|event| event.message.clone()));
    let codes: BTreeSet<_> = texts.iter().flat_map(|text| codes(text)).collect();
    let remedies = codes
        .into_iter()
        .filter_map(|code| facts.catalogue.find(code));
    let mut advice = assessment.map_or_else(Vec::new, |assessment| assessment.advice);
    advice.extend(remedies.map(|entry| format!("{} ({})", entry.remedy, entry.code)));
    if verdict == Verdict::NotFound && advice.is_empty() {
        advice.push("Check the spelling of name, namespace and kind.".to_owned());
    }
    advice
}

/// The codes in a text, such as `NT-KIT-003`.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    let belongs = |one: char| one.is_ascii_uppercase() || one.is_ascii_digit() || one == '-';
    let words = text.split(move |one: char| !belongs(one));
    words.filter(|word| word.starts_with("NT-"))
}
