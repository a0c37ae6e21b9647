//! Tells people what happens to an object, where `kubectl describe` and `kubectl events` look.
//!
//! One Event for what is said of an object, counted up when it is said again: its name is made of
//! the object and the words, so a controller that starts anew goes on counting. Events are news,
//! not state: one that cannot be written is logged and forgotten.

#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash, Hasher};

use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{Api, Resource};

use crate::{
    apply::{Error, Hand},
    clock::Clock,
};

/// Whether it is to worry anybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Weight {
    /// As things go.
    Normal,
    /// Somebody may have to do something.
    Warning,
}

impl Weight {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Note {
    /// Whether it is to worry anybody.
    pub weight: Weight,
    /// In one word that is part of the API.
    pub reason: &'static str,
    /// In a sentence.
    pub message: String,
}

impl Note {
    /// As things go.
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            weight: Weight::Normal,
            reason,
            message,
        }
    }

    /// Somebody may have to do something.
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        let weight = Weight::Warning;
        Self {
            weight,
            ..Self::normal(reason, message)
        }
    }
}

/// Writes Events in the name of one component.
#[derive(Debug, Clone)]
pub struct Recorder {
    hand: Hand,
    component: &'static str,
    clock: Clock,
}

impl Recorder {
    /// Events that `hand` writes for `component`.
    pub fn new(hand: Hand, component: &'static str, clock: Clock) -> Self {
        Self {
            hand,
            component,
            clock,
        }
    }

    /// Says `note` of `object`.
    pub async fn tell<K: Resource<DynamicType = ()>>(&self, object: &K, note: &Note) {
        self.tell_of(object.object_ref(&()), note).await;
    }

    /// Says `note` of what `about` names.
    pub async fn tell_of(&self, about: ObjectReference, note: &Note) {
        if let Err(error) = self.write(self.event(about, note)).await {
            let reason = note.reason;
            tracing::warn!(component = self.component, reason, %error, "an Event could not be written");
        }
    }

    async fn write(&self, event: Event) -> Result<(), Error> {
        if self.hand.create(&event).await?.is_some() {
            return Ok(());
        }
        let Some(former) = self.former(&event).await else {
            return Ok(());
        };
        let again = Event {
            count: Some(former.count.unwrap_or(1).saturating_add(1)),
            last_timestamp: event.last_timestamp,
            ..former
        };
        self.hand.replace(&again).await.map(drop)
    }

    async fn former(&self, event: &Event) -> Option<Event> {
        let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
        let api: Api<Event> = Api::namespaced(self.hand.client().clone(), namespace);
        let name = event.metadata.name.as_deref().unwrap_or_default();
        api.get_opt(name).await.ok().flatten()
    }

    fn event(&self, about: ObjectReference, note: &Note) -> Event {
        let mut hasher = DefaultHasher::new();
        (&about.uid, self.component, note).hash(&mut hasher);
        let name = short(about.name.as_deref().unwrap_or_default());
        // Objects that are in no namespace are spoken of in the default one.
        let namespace = about.namespace.as_deref().unwrap_or("default");
        let now = Some(Time(self.clock.now()));
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:016x}", hasher.finish())),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            type_: Some(note.weight.as_str().to_owned()),
            reason: Some(note.reason.to_owned()),
            message: Some(note.message.clone()),
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

/// As much of a name as leaves room for what is put behind it: a name has 253 characters at most.
fn short(name: &str) -> &str {
    const MOST: usize = 253 - 17;
    let Some(start) = name.get(..MOST) else {
        return name;
    };
    // No part of a name ends so.
    start.trim_end_matches(['.', '-'])
}
