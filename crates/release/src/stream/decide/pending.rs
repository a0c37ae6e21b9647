//! Releases whose image is being created: mirror, payload and Job, and the end of it.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::{
    Actions, Draft, StreamChange,
    actions::source_hash,
    conflict,
    jobs::{creation_job, stable_job},
    mirror::{MirrorProblem, mirror},
    payload::release_payload,
};
use crate::{
    api::{ReleasePayload, annotations},
    image_stream::api::NamedTagEventList,
    payload::Phase,
    stream::{
        facts::{Facts, Release, annotation},
        release_reader::READ_RETRY,
    },
};

pub(super) fn decide(draft: &mut Draft<'_>, actions: &Actions<'_>) {
    let imports = imports(draft.facts);
    for (at, release) in actions.pending.iter().enumerate() {
        if draft.changes.len() >= draft.facts.options.max_launches {
            // Thousands of tags become releases in several steps.
            let soon = SignedDuration::from_secs(1);
            let soon = draft.facts.now.checked_add(soon);
            draft.look_again_at(soon.unwrap_or(draft.facts.now));
            break;
        }
        if let Some(conflict) = &release.conflict {
            draft.problem(conflict::REASON, conflict.clone());
            if !draft.config.is_stable() {
                // The next images become another release, under a name that nobody has taken.
                fail(draft, release, conflict::REASON, conflict);
            }
        } else if draft.config.is_stable() {
            stable(draft, release, imports.get(release.name()).copied());
        } else if at == 0 {
            integration(draft, release);
        } else {
            let message = "Multiple releases were found simultaneously running.";
            fail(draft, release, "Aborted", message);
        }
    }
    for release in actions.failed.iter().chain(&actions.ready) {
        advance(draft, release);
    }
}

/// What was imported for each tag of the source.
fn imports(facts: &Facts) -> BTreeMap<&str, &NamedTagEventList> {
    let status = facts.source.status.iter();
    let tags = status.flat_map(|status| &status.tags);
    tags.map(|tag| (tag.tag.as_str(), tag)).collect()
}

/// The annotations of a tag follow the phase of its payload.
fn advance(draft: &mut Draft<'_>, release: &Release<'_>) {
    let Some(payload) = release.payload else {
        return;
    };
    let is_in_conflict = release.conflict.is_some()
        || release.annotation(annotations::REASON) == Some(conflict::REASON);
    if is_in_conflict {
        return;
    }
    match release.phase {
        Some(Phase::Ready) => mark(draft, release, Phase::Ready),
        Some(Phase::Failed) => {
            let said = creation_message(payload);
            let message = if said.is_empty() {
                "Could not create the release image"
            } else {
                &said
            };
            fail(draft, release, "CreateReleaseFailed", message);
        }
        _ => {}
    }
}

fn creation_message(payload: &ReleasePayload) -> String {
    let status = payload.status.as_ref();
    status
        .map(|status| status.release_creation_job_result.message.clone())
        .unwrap_or_default()
}

/// Sets the phase of a tag forward.
pub(super) fn mark(draft: &mut Draft<'_>, release: &Release<'_>, phase: Phase) {
    let changes = [
        (annotations::PHASE, Some(phase.as_str())),
        (annotations::REASON, None),
        (annotations::MESSAGE, None),
    ];
    draft.annotate(release.name(), &changes, phase.as_str());
}

fn fail(draft: &mut Draft<'_>, release: &Release<'_>, reason: &str, message: &str) {
    let changes = [
        (annotations::PHASE, Some(Phase::Failed.as_str())),
        (annotations::REASON, Some(reason)),
        (annotations::MESSAGE, Some(message)),
    ];
    draft.annotate(release.name(), &changes, message);
}

fn integration(draft: &mut Draft<'_>, release: &Release<'_>) {
    let facts = draft.facts;
    let config = draft.config;
    let tag = release.name();
    let name = facts.mirror_name(config, tag);
    let Some(mirrored) = facts.mirrors.get(&name) else {
        return remake_mirror(draft, release);
    };
    let mirror_hash = annotation(mirrored, annotations::HASH).unwrap_or_default();
    match release.annotation(annotations::HASH) {
        None => {
            let changes = [(annotations::HASH, Some(mirror_hash))];
            return draft.annotate(tag, &changes, "the hash of its images");
        }
        Some(hash) if hash != mirror_hash => {
            let message =
                format!("the mirror {name} has other images than the release {tag} was cut from");
            return fail(draft, release, "InputsChanged", &message);
        }
        Some(_) => {}
    }
    if !ensure_payload(draft, release) {
        return;
    }
    if !facts.has_job(tag) && release.payload.is_some() {
        match creation_job(facts, config, release, mirrored) {
            Ok(job) => draft.changes.push(StreamChange::CreateJob(Box::new(job))),
            Err(problem) => draft.problem("UnableToProcessRelease", format!("{tag}: {problem}")),
        }
    }
}

/// The mirror of a release that was cut by another controller, whose mirror was not written, or was deleted. It
/// has the images of then: if the source has others now, it is not known which ones they were.
fn remake_mirror(draft: &mut Draft<'_>, release: &Release<'_>) {
    let facts = draft.facts;
    let tag = release.name();
    let Some(hash) = source_hash(facts) else {
        return draft.problems.push(format!(
            "{tag} has no mirror, and the source has no images to make one of"
        ));
    };
    if let Some(cut_from) = release.annotation(annotations::HASH)
        && cut_from != hash
    {
        let message =
            format!("{tag} has no mirror, and the source has other images than those of then");
        return fail(draft, release, "InputsChanged", &message);
    }
    match mirror(facts, draft.config, tag, &hash) {
        Ok(mirror) => draft
            .changes
            .push(StreamChange::CreateMirror(Box::new(mirror))),
        Err(MirrorProblem::NotImported(message)) => draft.problems.push(message),
        Err(problem) => draft.problem("UnableToProcessRelease", format!("{tag}: {problem}")),
    }
}

/// Creates the payload of a release if it has none. Whether it has one, or could get one.
pub(super) fn ensure_payload(draft: &mut Draft<'_>, release: &Release<'_>) -> bool {
    if release.payload.is_some() {
        return true;
    }
    match release_payload(draft.facts, draft.config, release.tag) {
        Ok(payload) => {
            draft
                .changes
                .push(StreamChange::CreatePayload(Box::new(payload)));
            true
        }
        Err(problem) => {
            draft.problem(
                "UnableToProcessRelease",
                format!("{}: {problem}", release.name()),
            );
            false
        }
    }
}

fn stable(draft: &mut Draft<'_>, release: &Release<'_>, imported: Option<&NamedTagEventList>) {
    let facts = draft.facts;
    let tag = release.name();
    let item = imported.and_then(|imported| imported.items.first());
    let wanted = release.tag.generation.unwrap_or(0);
    let is_imported = item.is_some_and(|item| item.generation >= wanted && !item.image.is_empty());
    if let Some(imported) = imported.filter(|imported| !is_imported && imported.import_failed()) {
        let said = imported
            .import_condition()
            .map(|it| it.message.as_str())
            .unwrap_or_default();
        return draft.problem(
            "UnableToProcessRelease",
            format!("{tag} could not be imported: {said}"),
        );
    }
    if !is_imported && !release.tag.reference {
        let message = format!("{tag} has not been imported yet");
        return draft.problems.push(message);
    }
    let Some(rewrite) = rewrites(draft, release) else {
        return;
    };
    let hash = format!("{tag}-{wanted}");
    let name = facts.mirror_name(draft.config, tag);
    let Some(mirrored) = facts.mirrors.get(&name) else {
        match mirror(facts, draft.config, tag, &hash) {
            Ok(mirror) => draft
                .changes
                .push(StreamChange::CreateMirror(Box::new(mirror))),
            Err(problem) => draft.problem("UnableToProcessRelease", format!("{tag}: {problem}")),
        }
        return;
    };
    let mirror_hash = annotation(mirrored, annotations::HASH).unwrap_or_default();
    if mirror_hash != hash {
        let message = format!(
            "{tag} was changed after its images were mirrored; delete the tag and make it again"
        );
        return draft.problem("UnableToProcessRelease", message);
    }
    if release.annotation(annotations::HASH) != Some(&hash) {
        // A write that is lost is repeated only while the release is pending, so the release waits for it.
        let changes = [(annotations::HASH, Some(hash.as_str()))];
        return draft.annotate(tag, &changes, "the hash of its image");
    }
    if !ensure_payload(draft, release) {
        return;
    }
    // The image of its Job may be named by its own image, which is being read.
    let waits = facts.has_job(tag) || facts.reading.contains(tag);
    if !waits && release.payload.is_some() {
        let image = item.map(|item| item.docker_image_reference.as_str());
        match stable_job(facts, draft.config, release, mirrored, image, rewrite) {
            Ok(job) => draft.changes.push(StreamChange::CreateJob(Box::new(job))),
            Err(problem) => draft.problem("UnableToProcessRelease", format!("{tag}: {problem}")),
        }
    }
}

/// Notes why something that the image of a Stable release says is not known. It is read again later. While it is
/// read for the first time there is nothing to say.
pub(super) fn unread(draft: &mut Draft<'_>, tag: &str, what: &str) {
    let now = draft.facts.now;
    let again = SignedDuration::try_from(READ_RETRY).unwrap_or(SignedDuration::ZERO);
    draft.look_again_at(now.checked_add(again).unwrap_or(now));
    let problem = match draft.facts.unread.get(tag) {
        None if draft.facts.reading.contains(tag) => return,
        None => format!("{tag}: {what} have not been read yet"),
        Some(why) => format!("{tag}: {what} cannot be read: {why}"),
    };
    draft.problems.push(problem);
}

/// Whether the image of a Stable release is assembled again under the name of its tag. Decided once: it is
/// not if the image has that name. None while the name is not known.
fn rewrites(draft: &mut Draft<'_>, release: &Release<'_>) -> Option<bool> {
    let tag = release.name();
    if let Some(decided) = release.annotation(annotations::REWRITE) {
        return Some(decided == "true");
    }
    let Some(name) = draft.facts.release_names.get(tag) else {
        unread(draft, tag, "the labels of its image");
        return None;
    };
    let rewrite = name != tag;
    let value = if rewrite { "true" } else { "false" };
    draft.annotate(
        tag,
        &[(annotations::REWRITE, Some(value))],
        "what its image is called",
    );
    Some(rewrite)
}
