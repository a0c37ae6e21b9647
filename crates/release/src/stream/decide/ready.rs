//! Releases whose image exists: the copy in the alternate repository, and their verification.

use super::{
    Actions, Draft, StreamChange, conflict,
    jobs::alternate_mirror_job,
    pending::{ensure_payload, mark},
    sampling, verification,
};
use crate::{
    api::{annotations, conditions},
    names,
    payload::Phase,
    stream::facts::Release,
};

pub(super) fn decide(draft: &mut Draft<'_>, actions: &Actions<'_>) {
    let decided = actions.accepted.iter().chain(&actions.rejected);
    for release in actions.ready.iter().chain(decided) {
        if let Some(conflict) = &release.conflict {
            draft.problem(conflict::REASON, conflict.clone());
        }
    }
    let is_good = |release: &&Release<'_>| release.conflict.is_none();
    for release in actions.ready.iter().filter(is_good) {
        if release.payload.is_none() {
            // Its phase is only in an annotation: nothing can be verified without a payload.
            ensure_payload(draft, release);
            continue;
        }
        alternate_mirror(draft, release);
        sampling::decide(draft, release);
        verification::decide(draft, release);
    }
    // A verdict does not end what it did not wait for: optional jobs still get their retries.
    for release in actions
        .accepted
        .iter()
        .chain(&actions.rejected)
        .filter(is_good)
    {
        if release.payload.is_some() && draft.facts.runs.contains_key(release.name()) {
            verification::decide(draft, release);
        }
    }
    for release in actions.accepted.iter().filter(is_good) {
        alternate_mirror(draft, release);
        mark(draft, release, Phase::Accepted);
    }
    for release in actions.rejected.iter().filter(is_good) {
        reject(draft, release);
    }
}

fn reject(draft: &mut Draft<'_>, release: &Release<'_>) {
    let status = release.payload.and_then(|payload| payload.status.as_ref());
    let conditions = status.iter().flat_map(|status| &status.conditions);
    let condition = conditions
        .into_iter()
        .find(|it| it.type_ == conditions::REJECTED);
    let (reason, message) = condition.map_or(("", ""), |it| (&it.reason, &it.message));
    let or = |text: &str, default: &str| if text.is_empty() { default } else { text }.to_owned();
    let reason = or(reason, "VerificationFailed");
    let message = or(message, "release verification failed");
    let changes = [
        (annotations::PHASE, Some(Phase::Rejected.as_str())),
        (annotations::REASON, Some(reason.as_str())),
        (annotations::MESSAGE, Some(message.as_str())),
    ];
    draft.annotate(release.name(), &changes, &message);
}

/// Copies a release to the alternate repository, also one that was accepted without verification.
fn alternate_mirror(draft: &mut Draft<'_>, release: &Release<'_>) {
    let facts = draft.facts;
    let tag = release.name();
    let has_mirror = release.payload.is_some_and(|payload| {
        let config = &payload.spec.payload_creation_config;
        !config
            .release_mirror_coordinates
            .release_mirror_job_name
            .is_empty()
    });
    let is_over = release
        .payload
        .and_then(|payload| payload.status.as_ref())
        .is_some_and(|status| status.release_mirror_job_result.status.has_ended());
    let job = names::alternate_mirror_job(tag);
    if !has_mirror || is_over || facts.has_job(&job) {
        return;
    }
    let Some(mirror) = facts.mirrors.get(&facts.mirror_name(draft.config, tag)) else {
        return;
    };
    let Some(pull_spec) = facts.pull_spec(draft.config, release.tag) else {
        return draft.problem(
            "UnableToVerifyRelease",
            format!("{tag}: it has no public repository"),
        );
    };
    match alternate_mirror_job(facts, draft.config, tag, &pull_spec, mirror) {
        Ok(job) => draft.changes.push(StreamChange::CreateJob(Box::new(job))),
        Err(problem) => draft.problem("UnableToVerifyRelease", format!("{tag}: {problem}")),
    }
}
