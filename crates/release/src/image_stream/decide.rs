//! Which tags of a stream are due: a pure function of the facts.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::{
    api::{
        DOCKER_IMAGE, IMPORT_REQUESTED, ImageStream, ImageStreamStatus, ImportMode,
        NamedTagEventList, REFERENCED_BY, TagReference,
    },
    facts::{Facts, Settings},
    record::{self, ImportFailure},
};
use crate::oci::reference::{ImageRef, is_tag};

/// The delay before a stream that follows another is looked at again.
const FOLLOW_INTERVAL: Duration = Duration::from_mins(1);

/// The reason of a tag whose source cannot be used.
const INVALID_SOURCE: &str = "InvalidSource";

/// A tag to be imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagImport {
    /// The tag.
    pub tag: String,
    /// The image.
    pub image: ImageRef,
    /// What is recorded of a list.
    pub mode: ImportMode,
    /// Whether plain HTTP and any certificate are accepted.
    pub insecure: bool,
    /// The generation that the result is for.
    pub generation: i64,
    /// The digest that the tag stands for so far.
    pub known: Option<String>,
    /// Whether it is imported again from time to time.
    pub scheduled: bool,
}

impl TagImport {
    /// What is imported, as it is recorded.
    pub fn source(&self) -> String {
        source(&self.image.to_string(), self.mode, self.insecure)
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Tags to be imported now.
    pub imports: Vec<TagImport>,
    /// The status without regard to these imports.
    pub status: ImageStreamStatus,
    /// When there has to be another decision, if no change causes one before.
    pub requeue_after: Option<Duration>,
}

/// Decides which tags are imported now.
pub fn decide(facts: &Facts) -> Decision {
    let mut decision = Decision {
        imports: Vec::new(),
        status: facts.stream.status.clone().unwrap_or_default(),
        requeue_after: None,
    };
    if facts.stream.metadata.deletion_timestamp.is_some() {
        return decision;
    }
    record::forget_deleted(&mut decision.status, &facts.stream.spec);
    let requests = requests(&facts.stream);
    let mut wanted = Vec::new();
    for tag in facts.stream.spec.tags.iter().filter(|tag| !tag.reference) {
        let Some(from) = &tag.from else {
            continue;
        };
        if !is_tag(&tag.name) {
            let message = format!(
                "{:?} is no name of a tag: it may have up to 128 letters, digits, _, . and -",
                tag.name
            );
            refuse(facts, tag, "InvalidTagName", &message, &mut decision.status);
            continue;
        }
        if from.kind != DOCKER_IMAGE {
            follow(facts, tag, &mut decision);
            continue;
        }
        let image: ImageRef = match from.name.parse() {
            Ok(image) => image,
            Err(error) => {
                let message = error.to_string();
                refuse(facts, tag, INVALID_SOURCE, &message, &mut decision.status);
                continue;
            }
        };
        let requested = requests.get(tag.name.as_str()).or(requests.get("*"));
        let wait = due(facts, tag, requested.copied(), &decision.status);
        if !wait.is_zero() {
            let wait = Some(wait).filter(|wait| *wait < Duration::MAX);
            soonest(&mut decision.requeue_after, wait);
            continue;
        }
        let history = decision.status.tag(&tag.name);
        let attempted_at = history.and_then(|it| Some(it.import.as_ref()?.attempted_at));
        wanted.push((attempted_at, tag, image));
    }
    begin(facts, wanted, &mut decision);
    record::complete(&mut decision.status, &facts.stream.spec);
    decision
}

/// Begins the imports that are due, as far as registries and the limit of the pass allow. Those that were never tried
/// come first, then those that were tried longest ago: each tag has its turn where a registry is asked for less than is
/// due.
fn begin(
    facts: &Facts,
    mut wanted: Vec<(Option<Timestamp>, &TagReference, ImageRef)>,
    decision: &mut Decision,
) {
    let allowances = facts.allowances.iter();
    let mut left: BTreeMap<_, _> = allowances
        .map(|(host, it)| (host.clone(), it.imports))
        .collect();
    wanted.sort_by_key(|(attempted_at, ..)| *attempted_at);
    for (_, tag, image) in wanted {
        match hold(facts, &image, &mut left, decision.imports.len()) {
            Some(wait) => soonest(&mut decision.requeue_after, Some(wait)),
            None => decision.imports.push(import(facts, tag, image)),
        }
    }
}

/// The time for which a due import is held back, by its registry or by the limit of the pass. None takes one
/// import of what the registry allows.
fn hold(
    facts: &Facts,
    image: &ImageRef,
    left: &mut BTreeMap<String, u32>,
    begun: usize,
) -> Option<Duration> {
    let host = image.endpoint().host;
    let allowance = facts.allowances.get(&host);
    let allowed = left.entry(host).or_default();
    if *allowed == 0 {
        let wait = allowance.map(|it| it.wait.max(Duration::from_secs(1)));
        return wait.or(Some(FOLLOW_INTERVAL));
    }
    if begun >= facts.settings.per_pass {
        return Some(Duration::ZERO);
    }
    *allowed -= 1;
    None
}

fn import(facts: &Facts, tag: &TagReference, image: ImageRef) -> TagImport {
    let history = facts
        .stream
        .status
        .as_ref()
        .and_then(|status| status.tag(&tag.name));
    let mode = tag.import_policy.import_mode.unwrap_or_default();
    let insecure = tag.import_policy.insecure;
    let same_source = history
        .and_then(|it| it.import.as_ref())
        .is_some_and(|it| it.source == source(&image.to_string(), mode, insecure));
    let known = history
        .and_then(|it| it.items.first())
        .filter(|_| same_source);
    TagImport {
        tag: tag.name.clone(),
        mode,
        insecure,
        generation: generation(&facts.stream, tag),
        known: known.map(|item| item.image.clone()),
        scheduled: tag.import_policy.scheduled,
        image,
    }
}

/// The generation of a tag: its own, or that of the stream where users set none.
pub fn generation(stream: &ImageStream, tag: &TagReference) -> i64 {
    tag.generation
        .or(stream.metadata.generation)
        .unwrap_or_default()
}

fn source(image: &str, mode: ImportMode, insecure: bool) -> String {
    let mode = match mode {
        ImportMode::Legacy => "",
        ImportMode::PreserveOriginal => " PreserveOriginal",
    };
    let insecure = if insecure { " insecure" } else { "" };
    format!("{image}{mode}{insecure}")
}

/// The time until a tag is due; zero if it is, and the longest time if it never is.
fn due(
    facts: &Facts,
    tag: &TagReference,
    requested: Option<Timestamp>,
    status: &ImageStreamStatus,
) -> Duration {
    let Some(history) = status.tag(&tag.name) else {
        return Duration::ZERO;
    };
    let Some(import) = &history.import else {
        // Recorded by another program, or pushed.
        let newest = history.items.first().map(|item| item.generation);
        let current =
            newest.is_some_and(|newest| tag.generation.is_none_or(|wanted| wanted <= newest));
        return if current && !tag.import_policy.scheduled {
            Duration::MAX
        } else {
            Duration::ZERO
        };
    };
    let from = tag
        .from
        .as_ref()
        .map(|from| from.name.as_str())
        .unwrap_or_default();
    let mode = tag.import_policy.import_mode.unwrap_or_default();
    let printed = from.parse::<ImageRef>().map(|image| image.to_string());
    let wanted = source(
        printed.as_deref().unwrap_or(from),
        mode,
        tag.import_policy.insecure,
    );
    let changed = import.source != wanted;
    let asked = requested.is_some_and(|at| at > import.attempted_at);
    let newer = is_newer(tag, history);
    if changed || asked || (newer && import.failures == 0) {
        return Duration::ZERO;
    }
    let next = match import.next_attempt {
        Some(next) => next,
        None if tag.import_policy.scheduled => later(import.attempted_at, spread(facts, &tag.name)),
        None => return Duration::MAX,
    };
    let wait = next.duration_since(facts.now);
    Duration::try_from(wait.max(SignedDuration::ZERO)).unwrap_or_default()
}

/// Whether the tag was set after its newest image was imported.
fn is_newer(tag: &TagReference, history: &NamedTagEventList) -> bool {
    let newest = history.items.first().map_or(0, |item| item.generation);
    tag.generation.is_some_and(|wanted| wanted > newest)
}

/// The interval of a tag: not the same for all, so that they do not come due together.
fn spread(facts: &Facts, tag: &str) -> Duration {
    let Settings { interval, .. } = facts.settings;
    let name = facts.stream.metadata.name.as_deref().unwrap_or_default();
    let digest = crate::oci::digest::sha256(format!("{name}:{tag}").as_bytes());
    let start = u32::from_str_radix(&digest.digest()[..4], 16).unwrap_or(0);
    // Up to a tenth earlier.
    interval.saturating_sub(interval.mul_f64(f64::from(start) / 655_360.0))
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}

/// The imports that were asked for, by tag; `*` stands for all.
fn requests(stream: &ImageStream) -> BTreeMap<String, Timestamp> {
    let annotations = stream.metadata.annotations.as_ref();
    let text = annotations.and_then(|it| it.get(IMPORT_REQUESTED));
    // A value that is not understood asks for nothing: the user who set it can repair it.
    text.and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

fn follow(facts: &Facts, tag: &TagReference, decision: &mut Decision) {
    soonest(&mut decision.requeue_after, Some(FOLLOW_INTERVAL));
    let generation = generation(&facts.stream, tag);
    if let Some(closed) = facts.closed.get(&tag.name) {
        let message = format!(
            "{closed} does not allow ImageStreams of this namespace to follow it; its annotation {REFERENCED_BY} \
             names the namespaces that may"
        );
        return refuse(
            facts,
            tag,
            "ReferenceNotAllowed",
            &message,
            &mut decision.status,
        );
    }
    if let Some(found) = facts.followed.get(&tag.name).and_then(Option::as_ref) {
        record::follow(&mut decision.status, &tag.name, found, generation, facts);
    } else if !follows_a_name(facts, tag) {
        let from = tag
            .from
            .as_ref()
            .map(|from| format!("{} {}", from.kind, from.name))
            .unwrap_or_default();
        refuse(
            facts,
            tag,
            INVALID_SOURCE,
            &format!("{from} has no image"),
            &mut decision.status,
        );
    }
}

/// Whether the tag follows a tag of the same stream that is a name only, as the tags of releases are: there is
/// no image to import, and that is no failure.
fn follows_a_name(facts: &Facts, tag: &TagReference) -> bool {
    let Some(from) = &tag.from else { return false };
    let own = &facts.stream.metadata;
    let is_here = from.namespace.is_none() || from.namespace == own.namespace;
    let named = match from.name.split_once(':') {
        Some((stream, name)) if Some(stream) == own.name.as_deref() => Some(name),
        Some(_) => None,
        None => Some(from.name.as_str()),
    };
    let followed = named.and_then(|name| facts.stream.spec.tag(name));
    is_here && followed.is_some_and(|it| it.reference || it.from.is_none())
}

fn refuse(
    facts: &Facts,
    tag: &TagReference,
    reason: &'static str,
    message: &str,
    status: &mut ImageStreamStatus,
) {
    let failure = ImportFailure {
        reason,
        message: message.to_owned(),
        retry_after: None,
        transient: false,
    };
    let generation = generation(&facts.stream, tag);
    record::condition(status, &tag.name, Err(&failure), generation, facts.now);
}

fn soonest(time: &mut Option<Duration>, other: Option<Duration>) {
    *time = match (*time, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    };
}
