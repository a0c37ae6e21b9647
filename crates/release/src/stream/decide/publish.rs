//! Publishes the newest accepted release.
//!
//! A published tag never moves to an older release. If the release that it stands for is rejected later, it
//! stays, and the stream says so: what users have pulled is not taken back silently.

use std::collections::{BTreeMap, BTreeSet};

use neap_kit::key::Key;

use super::{Actions, Draft, StreamChange};
use crate::{
    api::annotations,
    config::PublishStream,
    image_stream::api::{ImageSource, ImageStream, ImportMode, TagReference},
    stream::facts::{Release, annotation, created},
    version,
};

const IMAGE_STREAM_TAG: &str = "ImageStreamTag";

pub(super) fn decide(draft: &mut Draft<'_>, actions: &Actions<'_>) {
    let Some(newest) = actions.accepted.first() else {
        return;
    };
    for (key, publish) in &draft.config.publish {
        if publish.disabled {
            continue;
        }
        if let Some(tag) = &publish.tag_ref {
            publish_tag(draft, newest, &tag.name);
        } else if let Some(stream) = &publish.image_stream_ref {
            publish_stream(draft, newest, key, stream);
        }
    }
}

fn publish_tag(draft: &mut Draft<'_>, newest: &Release<'_>, to: &str) {
    let release = newest.name();
    if to == release || draft.tag(release).is_none() {
        return;
    }
    let from = ImageSource {
        kind: IMAGE_STREAM_TAG.to_owned(),
        name: release.to_owned(),
        namespace: None,
    };
    let current = draft.tag(to);
    let published = current
        .and_then(|tag| tag.from.as_ref())
        .map(|from| from.name.clone());
    if published.as_deref() == Some(release) {
        return;
    }
    if let Some(published) = published
        && is_newer(draft, &published, newest)
    {
        let message = format!(
            "{to} stays at {published}, which is newer than {release}, the newest accepted release"
        );
        return draft.problems.push(message);
    }
    let mut tag = current.cloned().unwrap_or_default();
    to.clone_into(&mut tag.name);
    tag.from = Some(from);
    tag.generation = None;
    tag.import_policy.import_mode = Some(ImportMode::PreserveOriginal);
    match draft.tag_mut(to) {
        Some(known) => *known = tag,
        None => draft.push_tag(tag),
    }
    draft.reasons.push(format!("{to}: {release} is published"));
}

/// Whether a release that is published is newer than another. One that is gone is not.
fn is_newer(draft: &Draft<'_>, published: &str, release: &Release<'_>) -> bool {
    let Some(published) = draft.tag(published) else {
        return false;
    };
    match (created(published), release.created) {
        (Some(published), Some(release)) => published > release,
        _ => version::newest_first(&published.name, release.name()).is_lt(),
    }
}

fn publish_stream(draft: &mut Draft<'_>, newest: &Release<'_>, key: &str, to: &PublishStream) {
    let facts = draft.facts;
    let release = newest.name();
    let namespace = if to.namespace.is_empty() {
        facts.namespace()
    } else {
        &to.namespace
    };
    if !facts.options.publishes_to(namespace) {
        let message = format!(
            "publish.{key}: {namespace} is not a namespace that this controller publishes to"
        );
        return draft.problems.push(message);
    }
    let Some(destination) = facts.destinations.get(&Key::new(namespace, &to.name)) else {
        return draft.problems.push(format!(
            "publish.{key}: there is no ImageStream {namespace}/{}",
            to.name
        ));
    };
    let Some(mirror) = facts.mirrors.get(&facts.mirror_name(draft.config, release)) else {
        return draft
            .problems
            .push(format!("publish.{key}: the mirror of {release} is gone"));
    };
    let marker = format!(
        "{}{}",
        annotations::PUBLISHED_SOURCE_PREFIX,
        draft.config.name
    );
    let published = annotation(destination, &marker);
    if let Some(published) = published.filter(|it| *it != release)
        && is_newer(draft, published, newest)
    {
        let message = format!(
            "{namespace}/{} stays at {published}, which is newer than {release}",
            to.name
        );
        return draft.problems.push(message);
    }
    let whole = to.tags.is_empty();
    if whole && published == Some(release) {
        return;
    }
    let tags = merged(destination, mirror, to);
    let annotations = if whole {
        BTreeMap::from([(marker, Some(release.to_owned()))])
    } else {
        BTreeMap::new()
    };
    let tags = (tags != destination.spec.tags).then_some(tags);
    if tags.is_none() && annotations.is_empty() {
        return;
    }
    draft.changes.push(StreamChange::UpdateStream {
        stream: destination.clone(),
        tags,
        annotations,
        reason: format!("{release} is published"),
    });
}

/// The tags of the destination with those of the mirror.
fn merged(
    destination: &ImageStream,
    mirror: &ImageStream,
    to: &PublishStream,
) -> Vec<TagReference> {
    let mut seen = BTreeSet::new();
    let wanted = mirror.spec.tags.iter().filter(|tag| {
        !to.exclude_tags.contains(&tag.name)
            && (to.tags.is_empty() || to.tags.contains(&tag.name))
            && seen.insert(tag.name.clone())
    });
    let mut tags = destination.spec.tags.clone();
    let positions: BTreeMap<String, usize> = tags
        .iter()
        .enumerate()
        .map(|(at, tag)| (tag.name.clone(), at))
        .collect();
    for tag in wanted {
        let known = positions.get(&tag.name);
        match known.and_then(|at| tags.get_mut(*at)) {
            Some(known) if known.from == tag.from => {}
            Some(known) => {
                *known = TagReference {
                    generation: None,
                    ..tag.clone()
                };
            }
            None => tags.push(TagReference {
                generation: None,
                ..tag.clone()
            }),
        }
    }
    if to.tags.is_empty() {
        tags.sort_by(|a, b| a.name.cmp(&b.name));
    }
    tags
}
