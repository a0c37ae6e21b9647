//! Tags whose last import failed, as the status of their stream says it: pure.

use std::collections::BTreeMap;

use jiff::Timestamp;
use neap_kit::key::Key;

use crate::{
    api::annotations::{CONFIG, CONFIG_REF},
    image_stream::api::{DOCKER_IMAGE, IMPORT_REQUESTED, ImageStream},
    oci::reference::ImageRef,
};

/// Reasons of conditions that say that a registry failed, ours and those of OpenShift. All others are about one image.
const REGISTRY_REASONS: [&str; 9] = [
    "InternalError",
    "RegistryError",
    "RegistryNotTrusted",
    "RegistryUnreachable",
    "ServerTimeout",
    "ServiceUnavailable",
    "Timeout",
    "TooManyRequests",
    "UnexpectedServerResponse",
];

/// A tag whose last import failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedTag {
    /// The stream.
    pub stream: Key,
    /// The tag.
    pub tag: String,
    /// The image.
    pub image: String,
    /// Its registry.
    pub registry: String,
    /// Whether the registry failed, and not only this image.
    pub registry_failed: bool,
    /// The failures since the last success, and the last attempt or the last request for one, if our controller
    /// imports.
    pub attempts: Option<(u32, Timestamp)>,
    /// Since when it fails.
    pub since: Option<Timestamp>,
}

/// Whether releases are made from a stream: its release configuration is in an annotation, or in a ConfigMap that
/// one names.
fn is_source(stream: &ImageStream) -> bool {
    let annotations = stream.metadata.annotations.as_ref();
    annotations.is_some_and(|it| it.contains_key(CONFIG) || it.contains_key(CONFIG_REF))
}

/// The number of tags whose last import failed, of streams that no releases are made from.
pub(super) fn left_out(stream: &ImageStream) -> usize {
    if is_source(stream) {
        return 0;
    }
    let status = stream.status.iter().flat_map(|status| &status.tags);
    status.filter(|tag| tag.import_failed()).count()
}

/// The tags of a stream whose last import failed. Streams without a release configuration are not ours.
pub fn failed_tags(stream: &ImageStream) -> Vec<FailedTag> {
    if !is_source(stream) {
        return Vec::new();
    }
    let requests = requests(stream);
    let status = stream.status.iter().flat_map(|status| &status.tags);
    let failed = status.filter(|tag| tag.import_failed());
    let known = failed.filter_map(|tag| {
        let from = stream.spec.tag(&tag.tag)?.from.as_ref()?;
        let image: ImageRef = from
            .name
            .parse()
            .ok()
            .filter(|_| from.kind == DOCKER_IMAGE)?;
        let condition = tag.import_condition();
        let reason = condition.map_or("", |it| it.reason.as_str());
        let asked_at = requests.get(&tag.tag).copied();
        let attempts = tag.import.as_ref().map(|import| {
            let last = asked_at.map_or(import.attempted_at, |at| at.max(import.attempted_at));
            (import.failures, last)
        });
        Some(FailedTag {
            stream: Key::of(stream),
            tag: tag.tag.clone(),
            registry: image.endpoint().host,
            image: from.name.clone(),
            registry_failed: REGISTRY_REASONS.contains(&reason),
            attempts,
            since: condition.and_then(|it| it.last_transition_time),
        })
    });
    known.collect()
}

/// The imports that were asked for, by tag.
pub(super) fn requests(stream: &ImageStream) -> BTreeMap<String, Timestamp> {
    let annotations = stream.metadata.annotations.as_ref();
    let text = annotations.and_then(|it| it.get(IMPORT_REQUESTED));
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// A line of a report.
impl std::fmt::Display for FailedTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{} from {}", self.stream, self.tag, self.image)
    }
}
