//! The writer, event recorder and clock of a controller.

use kube::{Resource, ResourceExt};

use crate::{
    apply::{Error, Object, Writer},
    clock::Clock,
    context::Context,
    event::{EventDraft, EventRecorder},
    key::Key,
    planted,
};

/// The writer, event recorder and clock of one controller.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Writes objects.
    pub writer: Writer,
    /// Records Events.
    pub recorder: EventRecorder,
    /// The clock of the process.
    pub clock: Clock,
}

impl Tools {
    /// The tools of the controller `name`.
    pub fn new(context: &Context, name: &'static str) -> Self {
        Self {
            writer: context.writer(name),
            recorder: context.event_recorder(name),
            clock: context.clock,
        }
    }

    /// The same tools, whose Events have `component` as their source.
    pub fn with_event_source(mut self, context: &Context, component: &'static str) -> Self {
        self.recorder = context.event_recorder(component);
        self
    }

    /// The same tools, whose writes have this reason in the audit.
    pub fn with_reason(&self, reason: &str) -> Self {
        Self {
            writer: self.writer.clone().with_reason(reason),
            ..self.clone()
        }
    }

    /// Records an Event about an object.
    pub async fn record<K: Resource<DynamicType = ()>>(&self, about: &K, draft: &EventDraft) {
        self.recorder.record(about, draft).await;
    }

    /// Confirms with the server that `owner` exists and is not being deleted, if objects are about to
    /// be created or adopted for it (`makes`). A stale cache shows owners that are gone; objects
    /// created for those would be garbage collected and created again without end.
    pub async fn confirm<K: Object>(&self, owner: &K, makes: bool) -> Result<(), Error> {
        if makes {
            self.writer.confirm(owner).await?;
        }
        Ok(())
    }

    /// The same for an owner whose status determines what is created: [`Error::Conflict`] if it has
    /// changed since it was read, even by our own write that the watch has not shown yet.
    pub async fn confirm_unchanged<K>(&self, owner: &K, makes: bool) -> Result<(), Error>
    where
        K: Object,
    {
        if makes && self.writer.confirm(owner).await?.resource_version != owner.resource_version() {
            return Err(Error::Conflict(Key::of(owner)));
        }
        Ok(())
    }

    /// Writes the status of `after` if it differs from `before`.
    pub async fn update_status<K: Object + PartialEq>(
        &self,
        before: &K,
        after: &K,
    ) -> Result<(), Error> {
        if before == after {
            return Ok(());
        }
        let written = self.writer.replace_status(after).await.map(drop);
        planted!(SaidOrNot => return Ok(()));
        written
    }
}
