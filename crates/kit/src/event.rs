//! Kubernetes Events, as shown by `kubectl describe` and `kubectl events`.
//!
//! Repeated Events about an object are one object with a count. Its name is derived from the object
//! and the content of the Event, so a restarted controller continues the count. Events are not
//! state: one that cannot be written is logged and dropped.

#[cfg(test)]
mod tests;

use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{Api, Resource};

use crate::{
    apply::{Error, Writer},
    clock::Clock,
    hash::stable_hash,
};

/// The type of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Information.
    Normal,
    /// A user may have to act.
    Warning,
}

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The content of an Event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventDraft {
    /// Normal or Warning.
    pub type_: EventType,
    /// The reason: one CamelCase word, part of the API.
    pub reason: &'static str,
    /// The message: a sentence for people.
    pub message: String,
}

impl EventDraft {
    /// A Normal Event.
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            type_: EventType::Normal,
            reason,
            message,
        }
    }

    /// A Warning Event.
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        let type_ = EventType::Warning;
        Self {
            type_,
            ..Self::normal(reason, message)
        }
    }
}

/// Writes the Events of one component.
#[derive(Debug, Clone)]
pub struct EventRecorder {
    writer: Writer,
    component: &'static str,
    clock: Clock,
}

impl EventRecorder {
    /// A recorder that writes with `writer` and has `component` as the source of its Events.
    pub fn new(writer: Writer, component: &'static str, clock: Clock) -> Self {
        Self {
            writer,
            component,
            clock,
        }
    }

    /// Records an Event about `object`.
    pub async fn record<K: Resource<DynamicType = ()>>(&self, object: &K, draft: &EventDraft) {
        self.record_for(object.object_ref(&()), draft).await;
    }

    /// Records an Event about the object that `about` refers to.
    pub async fn record_for(&self, about: ObjectReference, draft: &EventDraft) {
        if let Err(error) = self.write(self.event(about, draft)).await {
            let reason = draft.reason;
            tracing::warn!(component = self.component, reason, %error, "an Event could not be written");
        }
    }

    async fn write(&self, event: Event) -> Result<(), Error> {
        if self.writer.create(&event).await?.is_some() {
            return Ok(());
        }
        let Some(existing) = self.existing(&event).await else {
            return Ok(());
        };
        let repeated = Event {
            count: Some(existing.count.unwrap_or(1).saturating_add(1)),
            last_timestamp: event.last_timestamp,
            ..existing
        };
        self.writer.replace(&repeated).await.map(drop)
    }

    async fn existing(&self, event: &Event) -> Option<Event> {
        let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<Event> = Api::namespaced(self.writer.client().clone(), namespace);
        let name = event.metadata.name.as_deref().unwrap_or_default();
        api.get_opt(name).await.ok().flatten()
    }

    fn event(&self, about: ObjectReference, draft: &EventDraft) -> Event {
        let parts = [
            about.uid.as_deref().unwrap_or_default(),
            self.component,
            draft.type_.as_str(),
            draft.reason,
            &draft.message,
        ];
        let hash = stable_hash(parts.map(str::as_bytes));
        let name = truncated(about.name.as_deref().unwrap_or_default());
        // Events about cluster-scoped objects are in the namespace `default`.
        let namespace = about.namespace.as_deref().unwrap_or("default");
        let now = Some(Time(self.clock.now()));
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{hash:016x}")),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            type_: Some(draft.type_.as_str().to_owned()),
            reason: Some(draft.reason.to_owned()),
            message: Some(draft.message.clone()),
            source: Some(EventSource {
                component: Some(self.component.to_owned()),
                host: None,
            }),
            reporting_component: Some(self.component.to_owned()),
            first_timestamp: now.clone(),
            last_timestamp: now,
            count: Some(1),
            involved_object: about,
            ..Event::default()
        }
    }
}

/// The name, cut off so that the suffix of 17 characters fits: names have at most 253 characters.
fn truncated(name: &str) -> &str {
    const MAX_LENGTH: usize = 253 - 17;
    let Some(start) = name.get(..MAX_LENGTH) else {
        return name;
    };
    // These characters are not allowed before the dot of the suffix.
    start.trim_end_matches(['.', '-'])
}
