//! What to do about a stream: a pure function of [`Facts`].
//!
//! The steps do not wait for each other: a release that cannot go on is a problem in the state of the
//! stream, and all others go on.

mod actions;
mod adoption;
pub(super) mod conflict;
mod cut;
mod environment;
mod jobs;
mod mirror;
mod payload;
mod pending;
mod periodic;
mod publish;
mod ready;
mod removal;
mod run;
mod sampling;
#[cfg(test)]
mod tests;
mod upgrade_source;
mod verification;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;
use neap_kit::{event::EventDraft, key::Key};

pub use self::{
    actions::{Actions, WhyNot},
    verification::backoff,
};
use super::{
    ControllerSettings, StreamState,
    facts::{Facts, NameHolder, annotation},
};
use crate::{
    api::{ProwJob, ReleasePayload, annotations},
    config::ReleaseConfig,
    image_stream::api::{ImageStream, TagReference},
    payload::{
        run_keys::{REREAD, SECRET},
        run_token::MIN_KEY_BYTES,
    },
};

/// What to write for a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The writes. Each is tried, whatever becomes of the others.
    pub changes: Vec<StreamChange>,
    /// What happened.
    pub events: Vec<EventDraft>,
    /// What the stream does or waits for.
    pub state: StreamState,
    /// When time alone may change the decision.
    pub requeue_after: Option<Duration>,
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamChange {
    /// Writes the tags of an ImageStream and annotations of it, in the state that was read.
    UpdateStream {
        /// The ImageStream as it was read.
        stream: Arc<ImageStream>,
        /// All its tags, if they change.
        tags: Option<Vec<TagReference>>,
        /// Annotations to set, or to remove.
        annotations: BTreeMap<String, Option<String>>,
        /// Why.
        reason: String,
    },
    /// Creates the mirror of a release.
    CreateMirror(Box<ImageStream>),
    /// Creates the payload of a release.
    CreatePayload(Box<ReleasePayload>),
    /// Creates a Job.
    CreateJob(Box<Job>),
    /// Launches a ProwJob.
    CreateRun(Box<ProwJob>),
}

impl StreamChange {
    /// What is done to the object.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::UpdateStream { .. } => "update",
            _ => "create",
        }
    }

    /// The kind of the object.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::UpdateStream { .. } | Self::CreateMirror(_) => "ImageStream",
            Self::CreatePayload(_) => "ReleasePayload",
            Self::CreateJob(_) => "Job",
            Self::CreateRun(_) => "ProwJob",
        }
    }

    /// The object.
    pub fn key(&self) -> Key {
        match self {
            Self::UpdateStream { stream, .. } => Key::of(&**stream),
            Self::CreateMirror(mirror) => Key::of(&**mirror),
            Self::CreatePayload(payload) => Key::of(&**payload),
            Self::CreateJob(job) => Key::of(&**job),
            Self::CreateRun(run) => Key::of(&**run),
        }
    }

    /// Why, for changes of what exists.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::UpdateStream { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

impl fmt::Display for StreamChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.verb(), self.kind(), self.key())?;
        match self.reason() {
            Some(reason) => write!(f, ": {reason}"),
            None => Ok(()),
        }
    }
}

/// A decision in the making.
struct Draft<'a> {
    facts: &'a Facts,
    config: &'a ReleaseConfig,
    changes: Vec<StreamChange>,
    events: Vec<EventDraft>,
    problems: Vec<String>,
    requeue_at: Option<Timestamp>,
    /// The tags of the target as they should be.
    tags: Vec<TagReference>,
    /// Where each tag is: a target may have thousands.
    positions: HashMap<String, usize>,
    /// Why the tags change.
    reasons: Vec<String>,
    /// ProwJobs that were decided on so far.
    launches: usize,
}

impl<'a> Draft<'a> {
    fn new(facts: &'a Facts, config: &'a ReleaseConfig) -> Self {
        let target = facts.target.as_ref();
        let mut draft = Self {
            facts,
            config,
            changes: Vec::new(),
            events: Vec::new(),
            problems: Vec::new(),
            requeue_at: None,
            tags: target
                .map(|target| target.spec.tags.clone())
                .unwrap_or_default(),
            positions: HashMap::new(),
            reasons: Vec::new(),
            launches: 0,
        };
        draft.index_tags();
        draft
    }

    /// Notes where each tag is, after tags were removed or renamed.
    fn index_tags(&mut self) {
        let names = self.tags.iter().enumerate();
        self.positions = names.map(|(at, tag)| (tag.name.clone(), at)).collect();
    }

    fn tag(&self, name: &str) -> Option<&TagReference> {
        self.tags.get(*self.positions.get(name)?)
    }

    fn tag_mut(&mut self, name: &str) -> Option<&mut TagReference> {
        self.tags.get_mut(*self.positions.get(name)?)
    }

    fn push_tag(&mut self, tag: TagReference) {
        self.positions.insert(tag.name.clone(), self.tags.len());
        self.tags.push(tag);
    }

    fn remove_tags(&mut self, names: &BTreeSet<String>) {
        if !names.is_empty() {
            self.tags.retain(|tag| !names.contains(&tag.name));
            self.index_tags();
        }
    }

    fn look_again_at(&mut self, moment: Timestamp) {
        self.requeue_at = Some(
            self.requeue_at
                .map_or(moment, |earlier| earlier.min(moment)),
        );
    }

    /// Notes that a release cannot go on; the others do.
    fn problem(&mut self, reason: &'static str, message: String) {
        self.events
            .push(EventDraft::warning(reason, message.clone()));
        self.problems.push(message);
    }

    /// Changes the annotations of a release tag.
    fn annotate(&mut self, tag: &str, changes: &[(&str, Option<&str>)], reason: &str) {
        let Some(tag) = self.tag_mut(tag) else {
            return;
        };
        let before = tag.annotations.clone();
        for (name, value) in changes {
            match value {
                Some(value) => tag
                    .annotations
                    .insert((*name).to_owned(), (*value).to_owned()),
                None => tag.annotations.remove(*name),
            };
        }
        let changed = (tag.annotations != before).then(|| tag.name.clone());
        if let Some(name) = changed {
            self.reasons.push(format!("{name}: {reason}"));
        }
    }
}

/// Decides what to do about a stream.
pub fn decide(facts: &Facts) -> Decision {
    let config = match &facts.config {
        Ok(config) => config.clone(),
        Err(error) => {
            let message = error.to_string();
            let event = EventDraft::warning("InvalidReleaseDefinition", message.clone());
            return idle(
                facts,
                StreamState::new("InvalidReleaseDefinition", message),
                vec![event],
            );
        }
    };
    if config.end_of_life {
        let state = StreamState::new(
            "EndOfLife",
            "the stream is over; nothing is created any more",
        );
        return idle(facts, state, Vec::new());
    }
    let Some(target) = &facts.target else {
        let message = format!(
            "the target ImageStream {}/{} does not exist",
            facts.namespace(),
            config.to
        );
        let event = EventDraft::warning("InvalidReleaseDefinition", message.clone());
        return idle(
            facts,
            StreamState::new("TargetNotFound", message),
            vec![event],
        );
    };
    if facts.run_key.is_missing() {
        return without_run_key(facts);
    }
    let mut draft = Draft::new(facts, &config);
    let actions = Actions::calculate(facts, &config);
    adoption::decide(&mut draft, &actions);
    removal::decide(&mut draft, &actions);
    let why_not = cut::decide(&mut draft, &actions);
    pending::decide(&mut draft, &actions);
    ready::decide(&mut draft, &actions);
    publish::decide(&mut draft, &actions);
    periodic::decide(&mut draft, &actions);
    report_taken_names(&mut draft);
    write_target(&mut draft, target);
    let mut state = identified(facts, actions.state(why_not));
    state.problems = std::mem::take(&mut draft.problems);
    state.problems.sort();
    state.problems.dedup();
    write_state(&mut draft.changes, facts, &state);
    forget_known(&mut draft.events, facts);
    Decision {
        changes: draft.changes,
        events: draft.events,
        state,
        requeue_after: Some(requeue_after(facts, draft.requeue_at)),
    }
}

/// Says which objects of releases cannot be made because others have their names: a release of another namespace,
/// since Jobs and ProwJobs of all release namespaces share one namespace, or a user who may create Jobs there.
fn report_taken_names(draft: &mut Draft<'_>) {
    for (name, holder) in &draft.facts.taken {
        let namespace = draft.facts.namespace();
        let holder = match holder {
            NameHolder::JobOf(target) => format!("a Job of {target}"),
            NameHolder::RunOf(source) => format!("a ProwJob of {source}"),
            NameHolder::NoRelease => "a Job of no release".to_owned(),
            NameHolder::Unproved => "a Job that no release controller created".to_owned(),
        };
        let message = format!(
            "the name {name} is taken by {holder}: the release of that name in {namespace} cannot create its own \
             object; delete it if no release needs it, give the streams of different namespaces different names, or \
             run a controller with Jobs of its own for each namespace"
        );
        draft.problem("NameTaken", message);
    }
    // What has the name may name no stream that its deletion could wake.
    if !draft.facts.taken.is_empty() {
        let moment = draft.facts.now + TAKEN_INTERVAL;
        draft.look_again_at(moment);
    }
}

/// An Event is told once: the state remembers the problem.
fn forget_known(events: &mut Vec<EventDraft>, facts: &Facts) {
    let known = known_state(facts);
    events.retain(|event| !known.problems.contains(&event.message));
}

/// The state that was written last.
pub(super) fn known_state(facts: &Facts) -> StreamState {
    let known = annotation(&facts.source, annotations::STREAM_STATE);
    known
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default()
}

/// The state, with what identifies the stream. The name of a stream whose configuration cannot be read is the
/// last that was known.
fn identified(facts: &Facts, state: StreamState) -> StreamState {
    let (stream, stable) = if let Ok(config) = &facts.config {
        (config.name.clone(), config.is_stable())
    } else {
        let known = known_state(facts);
        (known.stream, known.stable)
    };
    StreamState {
        stream,
        stable,
        controller: Some(ControllerSettings::of(&facts.options)),
        ..state
    }
}

/// The time between two looks at a name that another object has.
const TAKEN_INTERVAL: Duration = Duration::from_secs(15);
/// The time between two reads of a configuration in a ConfigMap, which is not watched.
const CONFIG_INTERVAL: Duration = Duration::from_mins(1);

/// Whether the configuration of the stream is in a ConfigMap.
fn is_config_elsewhere(facts: &Facts) -> bool {
    annotation(&facts.source, annotations::CONFIG).is_none()
        && annotation(&facts.source, annotations::CONFIG_REF).is_some()
}

/// How long until the stream is looked at again.
fn requeue_after(facts: &Facts, requeue_at: Option<Timestamp>) -> Duration {
    let mut look_again = facts.options.look_again;
    if is_config_elsewhere(facts) {
        look_again = look_again.min(CONFIG_INTERVAL);
    }
    requeue_at.map_or(look_again, |moment| {
        let wait = moment
            .duration_since(facts.now)
            .max(SignedDuration::from_secs(1));
        wait.unsigned_abs().min(look_again)
    })
}

/// Nothing to do but to say why. The Event is told once: the state remembers it.
fn idle(facts: &Facts, state: StreamState, events: Vec<EventDraft>) -> Decision {
    let state = identified(facts, state);
    let mut changes = Vec::new();
    write_state(&mut changes, facts, &state);
    Decision {
        events: if changes.is_empty() {
            Vec::new()
        } else {
            events
        },
        changes,
        state,
        requeue_after: is_config_elsewhere(facts).then_some(CONFIG_INTERVAL),
    }
}

/// Without a key no run could be proved, so nothing is started that would be verified.
fn without_run_key(facts: &Facts) -> Decision {
    let first = facts.options.release_namespaces.first();
    let message = format!(
        "the Secret {}/{SECRET} has no key of {MIN_KEY_BYTES} bytes or more, so that no run could be proved; delete \
         it, and the controller makes another, or restore it",
        first.map_or("", String::as_str)
    );
    let event = EventDraft::warning("RunKeyMissing", message.clone());
    let decision = idle(
        facts,
        StreamState::new("RunKeyMissing", message),
        vec![event],
    );
    Decision {
        requeue_after: Some(REREAD),
        ..decision
    }
}

/// Writes the state of the stream into an annotation of its source, together with other writes of it.
fn write_state(changes: &mut Vec<StreamChange>, facts: &Facts, state: &StreamState) {
    let text = serde_json::to_string(state).unwrap_or_default();
    if annotation(&facts.source, annotations::STREAM_STATE) == Some(&text) {
        return;
    }
    let same = changes.iter_mut().find_map(|change| match change {
        StreamChange::UpdateStream {
            stream,
            annotations,
            ..
        } if stream.metadata.uid == facts.source.metadata.uid
            && stream.metadata.name == facts.source.metadata.name =>
        {
            Some(annotations)
        }
        _ => None,
    });
    let name = annotations::STREAM_STATE.to_owned();
    match same {
        Some(annotations) => {
            annotations.insert(name, Some(text));
        }
        None => changes.push(StreamChange::UpdateStream {
            stream: facts.source.clone(),
            tags: None,
            annotations: [(name, Some(text))].into(),
            reason: format!("its state: {}", state.reason),
        }),
    }
}

/// One write of the target for everything that was decided about its tags. It comes first: a payload is
/// created for a tag that is there.
fn write_target(draft: &mut Draft<'_>, target: &Arc<ImageStream>) {
    let mut annotations = BTreeMap::new();
    let is_marked = annotation(target, annotations::HAS_RELEASES) == Some("true");
    if !is_marked {
        annotations.insert(
            annotations::HAS_RELEASES.to_owned(),
            Some("true".to_owned()),
        );
        draft.reasons.push("it has releases".to_owned());
    }
    let tags = (draft.tags != target.spec.tags).then(|| draft.tags.clone());
    if tags.is_none() && annotations.is_empty() {
        return;
    }
    let change = StreamChange::UpdateStream {
        stream: target.clone(),
        tags,
        annotations,
        reason: draft.reasons.join("; "),
    };
    draft.changes.insert(0, change);
}
