//! Writes results of imports into a status: pure.

#[cfg(test)]
mod tests;

use std::{cmp::Reverse, collections::BinaryHeap, time::Duration};

use jiff::Timestamp;

use super::{
    api::{
        IMPORT_SUCCESS, ImageStreamSpec, ImageStreamStatus, ImportRecord, NamedTagEventList,
        StreamSummary, TagEvent, TagEventCondition,
    },
    decide::TagImport,
    facts::{Facts, Settings},
};
use crate::oci::{digest::Digest, reference::ImageRef};

/// The first and the longest delay before a failed import is repeated: where the registry failed.
const TRANSIENT: (Duration, Duration) = (Duration::from_mins(1), Duration::from_hours(1));
/// The same where it answered that there is no such image, or that it may not be read.
const PERMANENT: (Duration, Duration) = (Duration::from_mins(10), Duration::from_hours(6));
/// The longest message.
const MAX_MESSAGE: usize = 1024;
/// The images of all tags of a stream, in JSON. An API server stores at most 1.5 MiB of an object, and the spec and
/// the conditions of the tags are in it, too.
const MAX_HISTORY_BYTES: usize = 1 << 20;
/// The JSON of an image without the text in it.
const ITEM_BYTES: usize = 100;

/// Why a tag was not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportFailure {
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The time for which the registry wants to be left alone.
    pub retry_after: Option<Duration>,
    /// Whether the same import may succeed later although nothing was corrected.
    pub transient: bool,
}

/// Records the result of an import.
pub fn record(
    status: &mut ImageStreamStatus,
    import: &TagImport,
    result: Result<&Digest, &ImportFailure>,
    settings: &Settings,
    now: Timestamp,
) {
    let now = seconds(now);
    let generation = import.generation;
    condition(status, &import.tag, result.map(drop), generation, now);
    let tag = entry(status, &import.tag);
    let failures = match result {
        Ok(_) => 0,
        Err(_) => tag
            .import
            .as_ref()
            .map_or(0, |it| it.failures)
            .saturating_add(1),
    };
    let next_attempt = result.err().map(|failure| {
        let delay = delay(failure, failures);
        now.checked_add(delay).unwrap_or(Timestamp::MAX)
    });
    tag.import = Some(ImportRecord {
        source: import.source(),
        attempted_at: now,
        failures,
        next_attempt,
    });
    if let Ok(digest) = result {
        let event = TagEvent {
            created: now,
            docker_image_reference: import.image.at_digest(digest).to_string(),
            image: digest.to_string(),
            generation,
        };
        push(tag, event, settings.history);
    }
}

/// Records the image of another stream.
pub(super) fn follow(
    status: &mut ImageStreamStatus,
    tag: &str,
    found: &TagEvent,
    generation: i64,
    facts: &Facts,
) {
    let now = seconds(facts.now);
    condition(status, tag, Ok(()), generation, now);
    let event = TagEvent {
        created: now,
        generation,
        ..found.clone()
    };
    push(entry(status, tag), event, facts.settings.history);
}

/// The image that a tag stands for now. The same image is not recorded twice in a row.
fn push(tag: &mut NamedTagEventList, event: TagEvent, history: usize) {
    match tag.items.first_mut() {
        Some(newest)
            if newest.image == event.image
                && newest.docker_image_reference == event.docker_image_reference =>
        {
            newest.generation = event.generation;
        }
        _ => tag.items.insert(0, event),
    }
    tag.items.truncate(history.max(1));
}

/// Sets the condition of a tag. Its time changes only with its status.
pub(super) fn condition(
    status: &mut ImageStreamStatus,
    tag: &str,
    result: Result<(), &ImportFailure>,
    generation: i64,
    now: Timestamp,
) {
    let (text, reason, message) = match result {
        Ok(()) => ("True", "Imported", String::new()),
        Err(failure) => ("False", failure.reason, shortened(&failure.message)),
    };
    let tag = entry(status, tag);
    let old = tag
        .conditions
        .iter()
        .position(|it| it.kind == IMPORT_SUCCESS);
    let since = old
        .map(|at| &tag.conditions[at])
        .filter(|old| old.status == text);
    let since = since
        .and_then(|old| old.last_transition_time)
        .unwrap_or_else(|| seconds(now));
    let condition = TagEventCondition {
        kind: IMPORT_SUCCESS.to_owned(),
        status: text.to_owned(),
        last_transition_time: Some(since),
        reason: reason.to_owned(),
        message,
        generation,
    };
    match old {
        Some(at) => tag.conditions[at] = condition,
        None => tag.conditions.push(condition),
    }
}

/// Removes the history of tags that users deleted. What was pushed has no source in the spec, and stays: of such
/// a tag nothing says whether an import succeeded.
pub(super) fn forget_deleted(status: &mut ImageStreamStatus, spec: &ImageStreamSpec) {
    status.tags.retain(|tag| {
        let pushed = tag.import.is_none() && tag.import_condition().is_none();
        pushed || spec.tag(&tag.tag).is_some()
    });
}

/// Drops the oldest images of all tags until the history has about [`MAX_HISTORY_BYTES`]. The newest image of each
/// tag stays.
fn bound_history(status: &mut ImageStreamStatus) {
    let items = |tag: &NamedTagEventList| tag.items.iter().map(item_bytes).sum::<usize>();
    let mut bytes: usize = status.tags.iter().map(items).sum();
    if bytes <= MAX_HISTORY_BYTES {
        return;
    }
    let oldest_of = |at: usize, tag: &NamedTagEventList| {
        let oldest = tag.items.last().filter(|_| tag.items.len() > 1);
        oldest.map(|item| Reverse((item.created, at)))
    };
    let tags = status.tags.iter().enumerate();
    let mut oldest: BinaryHeap<_> = tags.filter_map(|(at, tag)| oldest_of(at, tag)).collect();
    while bytes > MAX_HISTORY_BYTES
        && let Some(Reverse((_, at))) = oldest.pop()
    {
        let tag = &mut status.tags[at];
        bytes -= tag.items.pop().as_ref().map_or(0, item_bytes);
        oldest.extend(oldest_of(at, tag));
    }
}

/// About the length of an image in JSON.
fn item_bytes(item: &TagEvent) -> usize {
    ITEM_BYTES + item.docker_image_reference.len() + item.image.len()
}

/// Completes a status in which tags were recorded: bounds its size, and counts the tags.
pub fn complete(status: &mut ImageStreamStatus, spec: &ImageStreamSpec) {
    bound_history(status);
    summarize(status, spec);
}

/// Counts the tags for `kubectl get`.
fn summarize(status: &mut ImageStreamStatus, spec: &ImageStreamSpec) {
    let newest = status
        .tags
        .iter()
        .filter_map(|tag| Some((tag.items.first()?.created, &tag.tag)));
    let newest = newest.max();
    let only_spec = spec
        .tags
        .iter()
        .filter(|tag| status.tag(&tag.name).is_none());
    let failing = status.tags.iter().filter(|tag| tag.import_failed()).count();
    status.summary = Some(StreamSummary {
        repository: repository(status),
        tags: (status.tags.len() + only_spec.count()) as u32,
        newest_tag: newest.map(|(_, tag)| tag.clone()).unwrap_or_default(),
        last_update: newest.map(|(created, _)| created),
        imports_failing: failing as u32,
    });
}

/// The repository of the stream, or the one that all images share.
fn repository(status: &ImageStreamStatus) -> String {
    let own = [
        &status.public_docker_image_repository,
        &status.docker_image_repository,
    ];
    if let Some(own) = own.into_iter().find(|own| !own.is_empty()) {
        return own.clone();
    }
    let items = status.tags.iter().filter_map(|tag| tag.items.first());
    let images = items.filter_map(|item| item.docker_image_reference.parse::<ImageRef>().ok());
    let mut names: Vec<_> = images.map(|image| image.name()).collect();
    names.sort();
    names.dedup();
    match &mut names[..] {
        [only] => std::mem::take(only),
        _ => String::new(),
    }
}

fn entry<'a>(status: &'a mut ImageStreamStatus, tag: &str) -> &'a mut NamedTagEventList {
    let at = status
        .tags
        .iter()
        .position(|it| it.tag == tag)
        .unwrap_or_else(|| {
            status.tags.push(NamedTagEventList {
                tag: tag.to_owned(),
                ..NamedTagEventList::default()
            });
            status.tags.len() - 1
        });
    &mut status.tags[at]
}

fn delay(failure: &ImportFailure, failures: u32) -> Duration {
    let (first, longest) = if failure.transient {
        TRANSIENT
    } else {
        PERMANENT
    };
    let doubled = first.saturating_mul(1 << failures.saturating_sub(1).min(10));
    doubled
        .max(failure.retry_after.unwrap_or_default())
        .min(longest)
}

fn shortened(message: &str) -> String {
    let mut message = message.to_owned();
    if message.len() > MAX_MESSAGE {
        let end = message.floor_char_boundary(MAX_MESSAGE);
        message.truncate(end);
        message.push('…');
    }
    message
}

/// The API stores whole seconds, and what it returns must equal what was written.
fn seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
