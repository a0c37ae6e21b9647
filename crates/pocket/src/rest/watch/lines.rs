//! The lines of a watch: one JSON document each, ending in a newline.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use serde_json::{Value, json};

use super::definition::WatchedDefinition;
use crate::{
    environment::Clock,
    rest::selection::Selection,
    rest::{Machine, ObjectForm, Request, Served, bulk::Bulk, reply::partial},
    status::ApiError,
    store::{Change, Error, Event, Hooks, Object},
    table::Include,
};

/// Renders events in the requested form.
pub(in crate::rest) struct Lines {
    machine: Machine,
    served: Arc<Served>,
    shown: ObjectForm,
    include: Include,
    /// Only the first table of a stream has column definitions.
    columns_sent: bool,
}

impl Lines {
    pub(super) fn new(
        machine: Machine,
        served: Arc<Served>,
        request: &Request,
        include: Include,
    ) -> Self {
        Self {
            machine,
            served,
            shown: request.presentation.shown,
            include,
            columns_sent: false,
        }
    }

    /// Notifies when the watched resource is no longer served as it was.
    pub(super) fn definition(&self) -> WatchedDefinition {
        WatchedDefinition::new(self.machine.registry.clone(), self.served.clone())
    }

    pub(super) fn bulk(&self) -> Bulk {
        self.machine.bulk.clone()
    }

    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        self.machine.environment.clock.clone()
    }

    pub(super) fn hooks(&self) -> Option<Arc<dyn Hooks>> {
        self.machine.view.hooks().cloned()
    }

    /// An object of the initial state.
    pub(super) fn added(&mut self, object: &Object, out: &mut BytesMut) {
        self.line("ADDED", object, None, out);
    }

    /// A change as the selection sees it: an object that starts to match is added, one that stops
    /// matching is deleted.
    pub(super) fn event(&mut self, event: &Event, selection: &Selection, out: &mut BytesMut) {
        let matches = |object: &Object| selection.matches(&self.served, object);
        let is = event.present().is_some_and(|object| matches(object));
        let was = event
            .previous
            .as_ref()
            .is_some_and(|object| matches(object));
        match (was, is, event.change) {
            (false, false, _) => {}
            (false, true, _) => self.line("ADDED", &event.object, None, out),
            (true, true, _) => self.line("MODIFIED", &event.object, None, out),
            (true, false, Change::Deleted) => self.line("DELETED", &event.object, None, out),
            (true, false, _) => {
                if let Some(previous) = &event.previous {
                    self.line("DELETED", previous, Some(event.revision()), out);
                }
            }
        }
    }

    /// A bookmark; `initial` marks the end of the initial state.
    pub(super) fn bookmark(&mut self, revision: u64, initial: bool, out: &mut BytesMut) {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.shown {
            ObjectForm::Whole => {
                let resource = &self.served.resource;
                let blank = super::blank::fields(&resource.group, &resource.kind);
                let mut object = blank.unwrap_or_else(|| json!({}));
                object["kind"] = json!(resource.kind);
                object["apiVersion"] = json!(self.served.api_version);
                object["metadata"] = metadata;
                object
            }
            ObjectForm::Metadata => {
                partial(&json!({"metadata": metadata}), "PartialObjectMetadata")
            }
            ObjectForm::Table => {
                let rows = [
                    json!({"cells": [], "object": partial(&json!({"metadata": metadata}), "PartialObjectMetadata")}),
                ];
                json!({
                    "kind": "Table",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": {"resourceVersion": revision.to_string()},
                    "columnDefinitions": null,
                    "rows": if initial { &rows[..] } else { &[] },
                })
            }
        };
        write("BOOKMARK", object.to_string().as_bytes(), out);
    }

    /// The error that ends a watch whose position was compacted.
    pub(super) fn expired(error: &Error, out: &mut BytesMut) {
        let error = match error {
            Error::Compacted { asked, oldest } => {
                ApiError::expired(format!("too old resource version: {asked} ({oldest})"))
            }
            other => ApiError::internal(other.to_string()),
        };
        write("ERROR", error.to_value().to_string().as_bytes(), out);
    }

    fn line(&mut self, kind: &str, object: &Object, revision: Option<u64>, out: &mut BytesMut) {
        if self.shown == ObjectForm::Whole && revision.is_none() {
            write(kind, &self.served.shown_whole(object), out);
            return;
        }
        let mut value = self.served.value(object);
        if let Some(revision) = revision {
            value["metadata"]["resourceVersion"] = json!(revision.to_string());
        }
        let value = match self.shown {
            ObjectForm::Whole => value,
            ObjectForm::Metadata => partial(&value, "PartialObjectMetadata"),
            ObjectForm::Table => self.table(value),
        };
        write(kind, value.to_string().as_bytes(), out);
    }

    fn table(&mut self, object: Value) -> Value {
        let revision = object["metadata"]["resourceVersion"].clone();
        let metadata = json!({"resourceVersion": revision});
        let with_columns = !std::mem::replace(&mut self.columns_sent, true);
        let objects = [object];
        self.machine
            .table(&self.served, &objects, self.include, metadata, with_columns)
    }
}

fn write(kind: &str, object: &[u8], out: &mut BytesMut) {
    out.reserve(object.len() + kind.len() + 24);
    out.put_slice(b"{\"type\":\"");
    out.put_slice(kind.as_bytes());
    out.put_slice(b"\",\"object\":");
    out.put_slice(object);
    out.put_slice(b"}\n");
}
