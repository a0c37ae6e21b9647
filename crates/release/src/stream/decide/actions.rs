//! Which releases are in which phase, which are removed, and whether a new one is due.

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};

use super::conflict::conflict;
use crate::{
    api::annotations,
    config::ReleaseConfig,
    names::input_hash,
    payload::Phase,
    stream::{
        StreamState,
        facts::{Facts, Release, annotation},
    },
    version,
};

/// How many releases of each final phase stay, whatever their age.
const KEPT: usize = 5;

/// The releases of a stream by what to do with them. All newest first.
#[derive(Debug)]
pub struct Actions<'a> {
    /// The namespace of the stream, for commands that are advised.
    pub namespace: &'a str,
    /// Tags of a Stable stream that the controller has not adopted.
    pub adopt: Vec<Release<'a>>,
    /// Releases whose image is being created.
    pub pending: Vec<Release<'a>>,
    /// Releases that are being verified.
    pub ready: Vec<Release<'a>>,
    /// Accepted releases.
    pub accepted: Vec<Release<'a>>,
    /// Rejected releases.
    pub rejected: Vec<Release<'a>>,
    /// Releases without an image.
    pub failed: Vec<Release<'a>>,
    /// Releases to remove, and why.
    pub removals: Vec<(Release<'a>, String)>,
    /// The hash of the inputs, if a release of them is due.
    pub due: Result<String, WhyNot>,
    /// The newest release.
    pub newest: Option<&'a str>,
}

/// Why no release is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyNot {
    /// Users create the releases of a Stable stream.
    ByUsers,
    /// A release of the same images exists.
    SameInputs {
        /// The release.
        tag: String,
        /// What became of it.
        phase: Option<Phase>,
    },
    /// Another release is being created.
    Creating(String),
    /// Too many releases have no verdict.
    TooManyUnready {
        /// How many.
        count: usize,
        /// The limit.
        limit: i64,
    },
    /// The newest release is too young.
    TooEarly(Timestamp),
    /// The newest release is of the future.
    ClockBehind {
        /// The release.
        tag: String,
        /// When the next one may be cut.
        due: Timestamp,
    },
    /// A user paused the stream.
    Paused(String),
    /// The source has no images.
    NoImages,
    /// The images of the source cannot be pinned yet.
    NotImported(String),
    /// A release was cut just now.
    CutNow(String),
}

impl<'a> Actions<'a> {
    /// Looks at every tag of the target.
    pub fn calculate(facts: &'a Facts, config: &'a ReleaseConfig) -> Self {
        let mut actions = Self {
            namespace: facts.namespace(),
            adopt: Vec::new(),
            pending: Vec::new(),
            ready: Vec::new(),
            accepted: Vec::new(),
            rejected: Vec::new(),
            failed: Vec::new(),
            removals: Vec::new(),
            due: Err(WhyNot::ByUsers),
            newest: None,
        };
        let hash = source_hash(facts);
        let source = facts.source_name();
        let mut newest: Option<Release<'a>> = None;
        let mut kept_same_inputs = None;
        for release in newest_first(facts, config) {
            let is_ours = release.annotation(annotations::NAME) == Some(&config.name)
                && (config.is_stable() || release.annotation(annotations::SOURCE) == Some(&source));
            if config.is_stable() && is_new_to_stable(&release) {
                actions.adopt.push(release);
                continue;
            }
            if !is_ours {
                continue;
            }
            let is_first = newest.is_none();
            if release.annotation(annotations::KEEP).is_some() {
                // A pinned release of the same images is still a release of them.
                if is_first && release.annotation(annotations::HASH) == hash.as_deref() {
                    kept_same_inputs = Some(release.clone());
                }
                continue;
            }
            if is_first {
                newest = Some(release.clone());
            }
            actions.sort_in(release);
        }
        actions.newest = newest.as_ref().map(Release::name);
        if !config.is_stable() {
            actions.removals = actions.expired(facts, config);
            let last = kept_same_inputs.or(newest);
            actions.due = actions.next(facts, config, hash, last.as_ref());
        }
        actions
    }

    fn sort_in(&mut self, release: Release<'a>) {
        let list = match release.phase {
            None | Some(Phase::Pending) => &mut self.pending,
            Some(Phase::Ready) => &mut self.ready,
            Some(Phase::Accepted) => &mut self.accepted,
            Some(Phase::Rejected) => &mut self.rejected,
            Some(Phase::Failed) => &mut self.failed,
        };
        list.push(release);
    }

    /// Failed and rejected releases that are older than the oldest accepted one or beyond the newest five,
    /// and accepted ones beyond the newest five that have expired.
    fn expired(&self, facts: &Facts, config: &ReleaseConfig) -> Vec<(Release<'a>, String)> {
        let mut removals = Vec::new();
        let oldest_accepted = self.accepted.last().and_then(|release| release.created);
        for (list, phase) in [
            (&self.failed, Phase::Failed),
            (&self.rejected, Phase::Rejected),
        ] {
            for (at, release) in list.iter().enumerate() {
                let is_older = oldest_accepted
                    .zip(release.created)
                    .is_some_and(|(accepted, created)| created < accepted);
                let reason = if is_older {
                    format!("it is {phase} and older than every accepted release")
                } else if at >= KEPT {
                    format!("it is {phase}, and there are {KEPT} newer ones")
                } else {
                    continue;
                };
                removals.push((release.clone(), reason));
            }
        }
        let Some(expires) = config.expires.filter(|expires| !expires.0.is_zero()) else {
            return removals;
        };
        for release in self.accepted.iter().skip(KEPT) {
            let expiry = release
                .created
                .and_then(|created| created.checked_add(expires.0).ok());
            if expiry.is_some_and(|expiry| expiry < facts.now) {
                let reason =
                    format!("it was accepted, has expired, and there are {KEPT} newer ones");
                removals.push((release.clone(), reason));
            }
        }
        removals
    }

    /// The hash of the inputs if a new release is due.
    fn next(
        &self,
        facts: &Facts,
        config: &ReleaseConfig,
        hash: Option<String>,
        newest: Option<&Release<'a>>,
    ) -> Result<String, WhyNot> {
        // First of all: whatever else keeps a release from being cut, users see that the stream is paused.
        if let Some(reason) = annotation(&facts.source, annotations::PAUSED) {
            return Err(WhyNot::Paused(reason.to_owned()));
        }
        if annotation(&facts.source, annotations::MODE) == Some("locked") {
            return Err(WhyNot::Paused(
                "the producer of the images has locked the stream".to_owned(),
            ));
        }
        let hash = hash.ok_or(WhyNot::NoImages)?;
        if let Some(release) = newest {
            let is_same = release.annotation(annotations::HASH) == Some(&hash);
            let retries = annotation(&facts.source, annotations::RETRY) == Some(release.name());
            if is_same && !retries {
                let tag = release.name().to_owned();
                let phase = release.phase;
                return Err(WhyNot::SameInputs { tag, phase });
            }
        }
        if let Some(pending) = self.pending.first() {
            return Err(WhyNot::Creating(pending.name().to_owned()));
        }
        let unready = self.pending.len() + self.ready.len();
        let limit = config.max_unready_releases;
        if limit > 0 && i64::try_from(unready).unwrap_or(i64::MAX) >= limit {
            return Err(WhyNot::TooManyUnready {
                count: unready,
                limit,
            });
        }
        let interval = SignedDuration::from_secs(config.min_creation_interval_seconds.max(0));
        let created = newest.and_then(|release| release.created);
        if let Some(created) = created {
            let due = created.checked_add(interval).unwrap_or(facts.now);
            if due > facts.now {
                return Err(match newest.filter(|_| created > facts.now) {
                    Some(release) => WhyNot::ClockBehind {
                        tag: release.name().to_owned(),
                        due,
                    },
                    None => WhyNot::TooEarly(due),
                });
            }
        }
        Ok(hash)
    }

    /// The state of the stream.
    pub(super) fn state(&self, why_not: Option<WhyNot>) -> StreamState {
        let state = match why_not.or_else(|| self.due.clone().err()) {
            None => StreamState::new("Releasing", "a release of new images is being cut"),
            Some(why_not) => why_not.state(self.namespace),
        };
        StreamState {
            newest: self.newest.map(str::to_owned),
            newest_accepted: self.accepted.first().map(|it| it.name().to_owned()),
            newest_accepted_at: self.accepted.first().and_then(|it| it.created),
            ..state
        }
    }

    /// The accepted releases, the highest version first.
    pub(super) fn accepted_by_version(&self) -> Vec<&Release<'a>> {
        let mut accepted: Vec<_> = self.accepted.iter().collect();
        accepted.sort_by(|a, b| version::newest_first(a.name(), b.name()));
        accepted
    }
}

impl WhyNot {
    fn state(self, namespace: &str) -> StreamState {
        match self {
            Self::ByUsers => StreamState::new("Stable", "users tag the releases of this stream"),
            Self::SameInputs { tag, phase } => {
                let phase = phase.map_or("Pending", Phase::as_str);
                let way_out = match phase {
                    "Failed" | "Rejected" => {
                        format!(
                            "; neap release retry {tag} -n {namespace} tries the same images again"
                        )
                    }
                    _ => String::new(),
                };
                let message = format!("{tag} has the same images and is {phase}{way_out}");
                StreamState::new("UpToDate", message)
            }
            Self::Creating(tag) | Self::CutNow(tag) => {
                StreamState::new("CreatingRelease", format!("{tag} is being created"))
            }
            Self::TooManyUnready { count, limit } => {
                let message =
                    format!("{count} releases have no verdict, and maxUnreadyReleases is {limit}");
                StreamState::new("TooManyUnreadyReleases", message)
            }
            Self::ClockBehind { tag, due } => {
                let message = format!(
                    "{tag} was cut by a clock that was ahead of this one; the next release may be cut at {due}, or \
                     once the tag is deleted"
                );
                StreamState::new("ClockBehind", message)
            }
            Self::TooEarly(due) => {
                let message = format!("the next release may be cut at {due}");
                StreamState::new("WaitingForInterval", message)
            }
            Self::Paused(reason) => StreamState::new("Paused", reason),
            Self::NoImages => StreamState::new("NoImages", "the source has no imported images"),
            Self::NotImported(message) => StreamState::new("ImagesNotImported", message),
        }
    }
}

/// The tags of the target, newest first.
fn newest_first<'a>(facts: &'a Facts, config: &ReleaseConfig) -> Vec<Release<'a>> {
    let target = facts.target.as_ref();
    let tags = target
        .map(|target| target.spec.tags.as_slice())
        .unwrap_or_default();
    let mut releases: Vec<_> = tags
        .iter()
        .map(|tag| {
            let release = Release::of(tag, &facts.payloads);
            let found = release
                .payload
                .and_then(|payload| conflict(facts, config, tag, payload));
            match found {
                Some(conflict) => release.in_conflict(conflict),
                None => release,
            }
        })
        .collect();
    // Times are compared as such: the zone in which they are written does not matter.
    releases.sort_by_key(|release| (Reverse(release.created), Reverse(release.name().to_owned())));
    releases
}

/// A tag of a Stable stream that users have made and no controller has looked at.
fn is_new_to_stable(release: &Release<'_>) -> bool {
    release.annotation(annotations::SOURCE).is_none()
        && release.annotation(annotations::PHASE).is_none()
}

/// The hash of the images of the source; none if it has none.
pub(super) fn source_hash(facts: &Facts) -> Option<String> {
    let source = &facts.source;
    let refers = source.spec.tags.iter().any(|tag| tag.reference);
    if refers {
        let mut tags: Vec<_> = source.spec.tags.iter().collect();
        tags.sort_by(|a, b| a.name.cmp(&b.name));
        let from = tags.into_iter().filter_map(|tag| tag.from.as_ref());
        return Some(input_hash(from.map(|from| from.name.as_str())));
    }
    let mut tags: Vec<_> = source
        .status
        .iter()
        .flat_map(|status| &status.tags)
        .collect();
    tags.sort_by(|a, b| a.tag.cmp(&b.tag));
    let images: Vec<_> = tags
        .into_iter()
        .filter_map(|tag| tag.items.first())
        .map(|item| {
            if item.image.is_empty() {
                &item.docker_image_reference
            } else {
                &item.image
            }
        })
        .filter(|image| !image.is_empty())
        .map(String::as_str)
        .collect();
    (!images.is_empty()).then(|| input_hash(images))
}
