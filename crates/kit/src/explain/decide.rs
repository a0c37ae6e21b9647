//! From what is known to what can be said.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Event;
use serde_json::Value;

use super::{
    Explanation, Facts, Verdict,
    kinds::{Judgement, judge},
    said::{Said, Weight},
    words,
};
use crate::{
    operation::{Operation, Phase},
    why,
};

/// Words that are as long as this and are said twice mean the same.
const TELLING: usize = 20;
/// So many Events are told.
const EVENTS: usize = 3;

/// Why the object is as it is.
pub fn explain(facts: &Facts) -> Explanation {
    let operations = concerning(facts);
    let warnings = warnings(&facts.events);
    let judgement = facts.object.as_ref().and_then(|object| {
        let known = facts.known.clone();
        known.or_else(|| judge(facts, object))
    });
    let covers = judgement.as_ref().map_or(&[] as &[_], |known| known.covers);
    let mut conditions = facts.object.as_ref().map(Said::of).unwrap_or_default();
    conditions.retain(|said| !covers.contains(&&*said.kind));
    let verdict = verdict(facts, judgement.as_ref(), &conditions, &operations);
    let why = why(facts, judgement.as_ref(), &conditions, &operations);
    let told = warnings.iter().filter(|event| !is_said(event, &why));
    let told = told.take(EVENTS);
    let hidden = missed(facts);
    Explanation {
        verdict,
        headline: words::headline(facts, verdict, &hidden),
        seen: told.map(|event| words::event(event, facts.now)).collect(),
        why,
        advice: advice(facts, judgement, &operations, &warnings, verdict),
        hidden,
    }
}

fn verdict(
    facts: &Facts,
    judgement: Option<&Judgement>,
    conditions: &[Said],
    operations: &[&Operation],
) -> Verdict {
    let Some(object) = &facts.object else {
        return Verdict::Missing;
    };
    let under_way = |one: &&Operation| !is_over(phase(one));
    let weightiest = conditions.first().map_or(Weight::Fine, Said::weight);
    let moving = conditions
        .iter()
        .any(|said| said.weight() == Weight::Moving);
    let known = judgement.map_or(Verdict::Well, |known| known.verdict);
    if is_leaving(object) {
        Verdict::Leaving
    } else if weightiest == Weight::Stuck || known == Verdict::Troubled {
        Verdict::Troubled
    } else if unseen(object).is_some() || operations.iter().any(under_way) || moving {
        Verdict::OnItsWay
    } else if weightiest == Weight::Trouble {
        Verdict::Troubled
    } else {
        known
    }
}

fn why(
    facts: &Facts,
    judgement: Option<&Judgement>,
    conditions: &[Said],
    operations: &[&Operation],
) -> Vec<String> {
    let Some(object) = &facts.object else {
        return Vec::new();
    };
    let mut why = Vec::new();
    if is_leaving(object) {
        why.push(words::leaving(object, facts.now));
    }
    if let Some((wanted, seen)) = unseen(object) {
        why.push(words::unseen(wanted, seen));
    }
    why.extend(judgement.into_iter().flat_map(|known| known.why.clone()));
    let telling = conditions
        .iter()
        .filter(|said| said.weight() != Weight::Fine);
    why.extend(telling.map(|said| words::condition(said, facts.now)));
    let telling = operations
        .iter()
        .filter(|one| phase(one) != Phase::Succeeded);
    why.extend(telling.map(|one| words::operation(one, facts.now)));
    why
}

/// Operations on the object, the newest first; of those that are over only the very newest.
fn concerning(facts: &Facts) -> Vec<&Operation> {
    let on_it = |one: &&Operation| {
        let target = &one.spec.target;
        target.kind.eq_ignore_ascii_case(&facts.kind)
            && target.name == facts.key.name()
            && target.namespace == facts.key.namespace()
    };
    let mut all: Vec<_> = facts.operations.iter().filter(on_it).collect();
    let age = |one: &Operation| one.metadata.creation_timestamp.as_ref().map(|time| time.0);
    all.sort_by_key(|one| std::cmp::Reverse(age(one)));
    let mut place = 0;
    all.retain(|one| {
        place += 1;
        place == 1 || !is_over(phase(one))
    });
    all
}

fn phase(operation: &Operation) -> Phase {
    let status = operation.status.as_ref();
    status.map(|status| status.phase).unwrap_or_default()
}

fn is_over(phase: Phase) -> bool {
    matches!(phase, Phase::Succeeded | Phase::Failed | Phase::Cancelled)
}

fn warnings(events: &[Event]) -> Vec<&Event> {
    let is_warning = |event: &&Event| event.type_.as_deref() == Some("Warning");
    let mut warnings: Vec<_> = events.iter().filter(is_warning).collect();
    warnings.sort_by_key(|event| std::cmp::Reverse(words::last_seen(event)));
    warnings
}

/// The kinds that would have said more. Storage is looked at only where something waits for it, and
/// then its absence is said.
fn missed(facts: &Facts) -> Vec<String> {
    let beside = ["PersistentVolumeClaim", "StorageClass"];
    let about_storage = beside.contains(&&*facts.kind);
    let missed = facts
        .hidden
        .iter()
        .filter(|kind| about_storage || !beside.contains(&kind.as_str()));
    missed.cloned().collect()
}

/// Whether the reasons have the words of the event, or the event has theirs.
fn is_said(event: &Event, why: &[String]) -> bool {
    let message = event.message.as_deref().unwrap_or_default().trim();
    let said = |why: &String| {
        let last = why.rsplit_once(": ").map_or("", |(_, last)| last);
        why.contains(message) || (last.len() >= TELLING && message.ends_with(last))
    };
    !message.is_empty() && why.iter().any(said)
}

fn is_leaving(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The generation that is wanted and the one that was looked at, if that is another.
fn unseen(object: &Value) -> Option<(i64, i64)> {
    let wanted = object["metadata"]["generation"].as_i64()?;
    let seen = object["status"]["observedGeneration"].as_i64()?;
    (seen < wanted).then_some((wanted, seen))
}

/// What the kind advises, and the remedies of all codes that are mentioned.
fn advice(
    facts: &Facts,
    judgement: Option<Judgement>,
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
    let remedies = codes.into_iter().filter_map(why::find);
    let mut advice = judgement.map_or_else(Vec::new, |known| known.advice);
    advice.extend(remedies.map(|entry| format!("{} ({})", entry.remedy, entry.code)));
    if verdict == Verdict::Missing && advice.is_empty() {
        advice
            .push("See whether name, namespace and kind are spelled as they should be.".to_owned());
    }
    advice
}

/// The codes in a text, such as `NT-KIT-003`.
fn codes(text: &str) -> impl Iterator<Item = &str> {
    let belongs = |one: char| one.is_ascii_uppercase() || one.is_ascii_digit() || one == '-';
    let words = text.split(move |one: char| !belongs(one));
    words.filter(|word| word.starts_with("NT-"))
}
