//! Which repositories are cleaned up, which tags are kept there, and which are looked at in a pass: pure.

use std::{collections::BTreeSet, time::Duration};

use jiff::{SignedDuration, Timestamp};
use neap_kit::why;

use crate::{api::annotations::CONFIG, config, image_stream::api::ImageStream};

/// The longest configuration of a stream.
const MAX_CONFIG: usize = 1 << 20;

/// The repositories to clean up, and the tags that are kept there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Tags of Stable streams.
    pub valid: BTreeSet<String>,
    /// Repositories.
    pub repositories: BTreeSet<String>,
    /// Streams whose configuration cannot be read. While there are some, nothing is deleted: their tags are
    /// not known.
    pub unreadable: Vec<String>,
}

/// What is cleaned up for these streams.
pub fn scope(streams: &[ImageStream]) -> Scope {
    let mut scope = Scope::default();
    for stream in streams {
        let annotations = stream.metadata.annotations.as_ref();
        let Some(text) = annotations.and_then(|it| it.get(CONFIG)) else {
            continue;
        };
        let parsed = match config::parse(text, MAX_CONFIG) {
            Ok(parsed) => parsed,
            Err(error) => {
                let name = stream.metadata.name.clone().unwrap_or_default();
                scope
                    .unreadable
                    .push(format!("{name}: {}", why::chain(&error)));
                continue;
            }
        };
        if !parsed.alternate_image_repository.is_empty() {
            scope
                .repositories
                .insert(parsed.alternate_image_repository.clone());
        }
        if parsed.is_stable() {
            let tags = stream.status.iter().flat_map(|status| &status.tags);
            scope.valid.extend(tags.map(|tag| tag.tag.clone()));
            // A tag that was just added has no status yet.
            scope
                .valid
                .extend(stream.spec.tags.iter().map(|tag| tag.name.clone()));
        }
    }
    scope
}

/// Whether a tag is deleted, whose image was created at `created`.
pub fn is_expired(
    tag: &str,
    created: Option<Timestamp>,
    valid: &BTreeSet<String>,
    minimum_age: Duration,
    now: Timestamp,
) -> bool {
    let age = created.map(|created| now.duration_since(created));
    let minimum = SignedDuration::try_from(minimum_age).unwrap_or(SignedDuration::MAX);
    // An image that does not say when it was created is kept: it may be new.
    !valid.contains(tag) && age.is_some_and(|age| age > minimum)
}

/// The items of a pass, in the order in which it takes them. Each pass begins `at_once` items after the one before it,
/// and one item later after every round: what stays, or ends a pass, does not keep passes from what comes after it.
pub(super) fn rotated<T>(mut items: Vec<T>, pass: u64, at_once: usize) -> Vec<T> {
    let step = at_once.max(1) as u64;
    let passes_of_a_round = (items.len() as u64).div_ceil(step).max(1);
    let first = (pass % passes_of_a_round) * step + pass / passes_of_a_round;
    if let Some(first) = first.checked_rem(items.len() as u64) {
        items.rotate_left(first as usize);
    }
    items
}

/// The number of the pass at this time: passes of different processes count on.
pub(super) fn pass_at(now: Timestamp, interval: Duration) -> u64 {
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    seconds / interval.as_secs().max(1)
}
