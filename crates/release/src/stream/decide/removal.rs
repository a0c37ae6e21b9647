//! Removes releases that are not needed any more.

use std::collections::BTreeSet;

use super::{Actions, Draft, StreamChange, jobs::removal_job};
use crate::{api::annotations, names, stream::facts::Release};

pub(super) fn decide(draft: &mut Draft<'_>, actions: &Actions<'_>) {
    let published = published(draft);
    let mut removed = BTreeSet::new();
    for (release, reason) in &actions.removals {
        if published.contains(release.name()) {
            continue;
        }
        if release.tag.reference && !removes_reference(draft, release) {
            continue;
        }
        if draft.facts.options.soft_delete {
            let now = draft.facts.now;
            let now = jiff::Timestamp::from_second(now.as_second())
                .unwrap_or(now)
                .to_string();
            if release.annotation(annotations::SOFT_DELETE).is_none() {
                let changes = [(annotations::SOFT_DELETE, Some(now.as_str()))];
                draft.annotate(release.name(), &changes, reason);
            }
        } else {
            removed.insert(release.name().to_owned());
            draft
                .reasons
                .push(format!("{} is removed: {reason}", release.name()));
        }
    }
    draft.remove_tags(&removed);
}

/// The releases that other tags of the target stand for.
fn published(draft: &Draft<'_>) -> BTreeSet<String> {
    let from = draft.tags.iter().filter_map(|tag| tag.from.as_ref());
    from.filter(|from| from.kind == "ImageStreamTag")
        .map(|from| from.name.clone())
        .collect()
}

/// Asks the registry for the removal of a release whose images are only referred to. Whether it has ended.
fn removes_reference(draft: &mut Draft<'_>, release: &Release<'_>) -> bool {
    let facts = draft.facts;
    let tag = release.name();
    let name = names::removal_job(tag);
    if facts.taken.contains_key(&name) {
        return false;
    }
    if let Some(job) = facts.jobs.get(&name) {
        let status = job.status.as_ref();
        let is_done = status.is_some_and(|status| status.completion_time.is_some());
        let conditions = status.and_then(|status| status.conditions.as_ref());
        let mut conditions = conditions.into_iter().flatten();
        let has_failed = conditions.any(|it| it.type_ == "Failed" && it.status == "True");
        if has_failed {
            draft.problems.push(format!(
                "{tag} was not removed from its registry; its tag is removed"
            ));
        }
        return is_done || has_failed;
    }
    let mirror = facts.mirrors.get(&facts.mirror_name(draft.config, tag));
    match removal_job(facts, draft.config, tag, mirror.map(|it| &**it)) {
        Ok(job) => draft.changes.push(StreamChange::CreateJob(Box::new(job))),
        Err(problem) => draft
            .problems
            .push(format!("{tag} cannot be removed: {problem}")),
    }
    false
}
