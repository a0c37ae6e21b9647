//! New tags of a Stable stream: what users tag becomes a release.

use super::{Actions, Draft};
use crate::{api::annotations, payload::Phase, version};

/// The name of a tag that becomes the next version.
const NEXT: &str = "next";

pub(super) fn decide(draft: &mut Draft<'_>, actions: &Actions<'_>) {
    let now = draft.facts.now;
    let now = jiff::Timestamp::from_second(now.as_second())
        .unwrap_or(now)
        .to_string();
    let source = draft.facts.source_name();
    let name = draft.config.name.clone();
    for release in &actions.adopt {
        let tag = release.name();
        if tag == NEXT {
            adopt_next(draft, &now, &source, &name);
        } else if version::is_strict(tag) {
            let pending = Phase::Pending.as_str();
            let mut changes = vec![
                (annotations::NAME, Some(name.as_str())),
                (annotations::SOURCE, Some(source.as_str())),
                (annotations::PHASE, Some(pending)),
                (annotations::RUN_KEY, Some(draft.facts.run_key.id())),
            ];
            if release
                .annotation(annotations::CREATION_TIMESTAMP)
                .is_none()
            {
                changes.push((annotations::CREATION_TIMESTAMP, Some(now.as_str())));
            }
            draft.annotate(tag, &changes, "a new release of the stream");
        }
    }
}

/// The tag `next` gets the version after the newest one.
fn adopt_next(draft: &mut Draft<'_>, now: &str, source: &str, stream: &str) {
    let mut versions: Vec<_> = draft
        .tags
        .iter()
        .map(|tag| tag.name.clone())
        .filter(|tag| version::is_strict(tag))
        .collect();
    versions.sort_by(|a, b| version::newest_first(a, b));
    let newest = versions.first().and_then(|newest| version::parse(newest));
    let next = newest.and_then(|newest| version::increment(&newest));
    let Some(next) = next.map(|next| next.to_string()) else {
        let failed = Phase::Failed.as_str();
        let message = "the stream has no version that could be incremented";
        let changes = [
            (annotations::PHASE, Some(failed)),
            (annotations::REASON, Some("NoExistingTags")),
            (annotations::MESSAGE, Some(message)),
            (annotations::NAME, Some(stream)),
            (annotations::SOURCE, Some(source)),
        ];
        return draft.annotate(NEXT, &changes, message);
    };
    if draft.tag(&next).is_some() {
        return;
    }
    let facts = draft.facts;
    let Some(tag) = draft.tag_mut(NEXT) else {
        return;
    };
    let mirror_images = tag.annotations.remove(annotations::MIRROR_IMAGES);
    tag.name.clone_from(&next);
    let annotations = [
        (annotations::NAME, stream),
        (annotations::SOURCE, source),
        (annotations::CREATION_TIMESTAMP, now),
        (annotations::PHASE, Phase::Pending.as_str()),
        (annotations::REWRITE, "true"),
        (annotations::RUN_KEY, facts.run_key.id()),
    ];
    tag.annotations = annotations
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    if let Some(value) = mirror_images {
        tag.annotations
            .insert(annotations::MIRROR_IMAGES.to_owned(), value);
    }
    draft.index_tags();
    draft
        .reasons
        .push(format!("{next}: the tag next becomes a release"));
}
