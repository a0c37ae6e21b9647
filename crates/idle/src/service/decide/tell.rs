//! How a decision is told.

use neap_kit::{
    event::Note,
    status::{Standing, Statement, Truth, conditions},
};

use super::{Wish, draft::Draft};
use crate::{
    api::WouldSleep,
    service::{objects, verdict::Verdict},
    trigger::Window,
};

/// Puts what was decided into the conditions, and what is new into words.
pub(super) fn tell(draft: &mut Draft<'_>) {
    let Some(standing) = draft.standing.take() else {
        return;
    };
    let mut statements = standing.statements().to_vec();
    statements.extend(extra(draft));
    let facts = draft.facts;
    let generation = facts.service.metadata.generation;
    if let Standing::Stalled(reason, message) = &standing
        && !was(draft, "Stalled", reason)
    {
        draft.notes.push(Note::warning(reason, message.clone()));
    }
    if let Some((reason, message)) = problem(&facts.verdict)
        && !was(draft, UNDECIDED, reason)
    {
        draft.notes.push(Note::warning(reason, message));
    }
    if let Some(scale) = draft.scale {
        let target = &facts.service.spec.scale_target_ref.name;
        let message = format!("{target} is scaled to {}", scale.replicas);
        draft.notes.push(Note::normal("SuccessToScale", message));
    }
    let old = std::mem::take(&mut draft.status.conditions);
    draft.status.conditions = conditions(&old, &statements, generation, facts.now);
    draft.status.observed_generation = generation;
}

/// Conditions that not everybody has: said where they are so, and taken back where they were.
fn extra(draft: &Draft<'_>) -> Vec<Statement> {
    // A headless Service is told of as such, and never waits for a proof to sleep.
    let blind = draft.facts.blind().filter(|_| !draft.facts.headless());
    let unprovable = blind.map(|why| {
        let message = format!(
            "{why}: whom the data plane reaches cannot be proved, so a longer wait stands in for it"
        );
        ("NoProof", message)
    });
    let would_sleep = draft.would_sleep.clone().map(|message| ("Idle", message));
    let mut all = Vec::new();
    all.extend(say(
        draft,
        "WouldSleep",
        would_sleep,
        [
            "NotIdle",
            "somebody asks for it, or it is more than observed",
        ],
    ));
    all.extend(undecided(draft));
    all.extend(matched(draft));
    all.extend(conflict(draft));
    all.extend(say(
        draft,
        "Unprovable",
        unprovable,
        ["Proof", "the data plane can be asked"],
    ));
    all
}

/// That `kind` is so and why, or that it no longer is.
fn say(
    draft: &Draft<'_>,
    kind: &'static str,
    so: Option<(&'static str, String)>,
    [reason, message]: [&'static str; 2],
) -> Option<Statement> {
    let mut conditions = draft.status.conditions.iter();
    match so {
        Some((reason, message)) => Some(Statement::new(kind, Truth::True, reason, message)),
        None => conditions
            .any(|condition| condition.type_ == kind)
            .then(|| Statement::new(kind, Truth::False, reason, message)),
    }
}

/// Nobody can say whether anybody asks for it, or it is not the time to sleep whoever asks.
const UNDECIDED: &str = "Undecided";
const OUTSIDE: &str = "OutsidePeriod";
/// Part of its spec is about something that is not there.
const UNMATCHED: &str = "Unmatched";

/// Which parts of the spec are about something that is not there, and so do nothing. It may come yet,
/// as whoever applies several at once knows: so no Event tells of it.
fn matched(draft: &Draft<'_>) -> Option<Statement> {
    let facts = draft.facts;
    let spec = &facts.service.spec;
    if facts.public.is_none() && !spec.ports.is_empty() {
        // Nobody knows which ports it will have.
        return None;
    }
    let absent = facts.absent.iter();
    let mut all: Vec<_> = absent
        .map(|name| format!("spec.dependencies: there is no ElastiService {name} in its namespace"))
        .collect();
    let ports = facts.public.map(objects::ports).unwrap_or_default();
    let named = spec.ports.iter().enumerate();
    let strange = named.filter(|(_, one)| ports.iter().all(|(_, port)| *port != one.port));
    all.extend(strange.map(|(at, one)| {
        let (port, service) = (one.port, &spec.service);
        format!("spec.ports[{at}].port: the Service {service} has no TCP port {port}")
    }));
    let unread: Vec<_> = facts.unread().collect();
    let reason = match (&facts.absent[..], &unread[..]) {
        ([], []) => "NoSuchPort",
        ([], _) => "NoSuchMoment",
        _ => "NoSuchDependency",
    };
    all.extend(unread.into_iter().map(|(name, text)| {
        format!("annotation {name}: {text:?} is no moment such as 2026-12-24T18:00:00Z")
    }));
    let so = (!all.is_empty()).then(|| (reason, all.join("; ")));
    let matched = ["Matched", "all that it names is there"];
    say(draft, UNMATCHED, so, matched)
}

/// Why its triggers or its period say nothing, if something is wrong with them.
fn problem(verdict: &Verdict) -> Option<(&'static str, String)> {
    let because = verdict.because();
    let wrong = match verdict {
        // What follows from the object alone is plain to see there.
        Verdict::Unknown(because) => !["NotAsked", "NoTriggers"].contains(&because.reason),
        Verdict::Busy(because) => because.reason == Window::INVALID,
        Verdict::Idle(_) => false,
    };
    wrong.then(|| (because.reason, because.sentence.clone()))
}

fn undecided(draft: &Draft<'_>) -> Vec<Statement> {
    let verdict = &draft.facts.verdict;
    let because = verdict.because();
    // Whoever has not been asked yet may say the same again.
    if because.reason == "NotAsked" {
        return Vec::new();
    }
    let outside = matches!(verdict, Verdict::Busy(_)) && because.reason == Window::CLOSED;
    let outside = outside.then(|| (because.reason, because.sentence.clone()));
    let decided = ["Decided", "its triggers say whether anybody asks for it"];
    let within = ["Within", "it may sleep at this time"];
    let both = [
        say(draft, UNDECIDED, problem(verdict), decided),
        say(draft, OUTSIDE, outside, within),
    ];
    both.into_iter().flatten().collect()
}

/// Who works against us: somebody who can be named, or whoever scaled it back.
fn conflict(draft: &Draft<'_>) -> Option<Statement> {
    let gone = ["None", "nobody else scales it unasked"];
    if let Some(because) = &draft.facts.conflict {
        let so = (because.reason, because.sentence.clone());
        return say(draft, "Conflict", Some(so), gone);
    }
    let back = "somebody scaled it up right after it fell asleep; leave spec.replicas to us, or name the autoscaler";
    let so = || ("ScaledBack", back.to_owned());
    match draft.conflict {
        Some(scaled_back) => say(draft, "Conflict", scaled_back.then(so), gone),
        // Who scaled it back once is not known to have stopped before it slept undisturbed.
        None if was(draft, "Conflict", "ScaledBack") => None,
        None => say(draft, "Conflict", None, gone),
    }
}

fn was(draft: &Draft<'_>, kind: &str, reason: &str) -> bool {
    let mut conditions = draft.status.conditions.iter();
    conditions.any(|it| it.type_ == kind && it.status == "True" && it.reason == reason)
}

/// What would become of it if it were more than observed, and what that would save.
pub(super) fn observed(draft: &mut Draft<'_>, wish: &Wish) {
    let facts = draft.facts;
    let replicas = facts.target.replicas().unwrap_or(0);
    let now = facts.now;
    let sleeps = facts.observed() && matches!(wish, Wish::Sleep(_)) && replicas > 0;
    let since = draft.status.would_sleep.clone();
    if let Some(over) = since
        .as_ref()
        .filter(|it| !sleeps || it.replicas != replicas)
    {
        let seconds = i64::try_from(facts.since(over.since).as_secs()).unwrap_or(i64::MAX);
        let saved = seconds.saturating_mul(over.replicas.into());
        let sum = draft.status.would_save_replica_seconds.unwrap_or(0);
        draft.status.would_save_replica_seconds = Some(sum.saturating_add(saved));
        draft.status.would_sleep = None;
    }
    if !sleeps {
        return;
    }
    if since.is_none() {
        let message = format!("it would sleep now, and {} would not run", some(replicas));
        draft.notes.push(Note::normal("WouldSleep", message));
    }
    draft.status.would_sleep.get_or_insert(WouldSleep {
        since: now,
        replicas,
    });
    draft.would_sleep = Some(format!(
        "{}; asleep it would save {}",
        wish.because(),
        some(replicas)
    ));
}

fn some(replicas: i32) -> String {
    let s = if replicas == 1 { "" } else { "s" };
    format!("{replicas} replica{s}")
}
