//! A line of a watch, reduced to what the oracle compares.

use std::fmt;

use serde_json::Value;

use crate::{ObjectState, fingerprint};

/// The type of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the words of the API")]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

/// An event, or a bookmark, which has no change and no path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchEvent {
    pub change: Option<Change>,
    /// `namespace/name`, or `name`.
    pub path: String,
    pub revision: u64,
    /// The version and a hash of the complete object; none if only a part of the object is shown.
    pub content: Option<(String, u64)>,
}

#[derive(Debug, Clone)]
pub enum WatchLine {
    Event(WatchEvent),
    /// The stream has delivered everything up to this revision.
    Bookmark {
        revision: u64,
        /// Whether it ends the initial state.
        initial: bool,
    },
    /// The stream cannot continue, with this HTTP status.
    Error(u64),
    /// A line that no watch may send.
    Garbage(String),
}

impl WatchLine {
    pub(super) fn parse(text: &[u8]) -> Self {
        let garbage = || Self::Garbage(String::from_utf8_lossy(text).into_owned());
        let Ok(mut line) = serde_json::from_slice::<Value>(text) else {
            return garbage();
        };
        let object = line["object"].take();
        let change = match line["type"].as_str() {
            Some("ADDED") => Change::Added,
            Some("MODIFIED") => Change::Modified,
            Some("DELETED") => Change::Deleted,
            Some("BOOKMARK") => return bookmark(&object).unwrap_or_else(garbage),
            Some("ERROR") => return Self::Error(object["code"].as_u64().unwrap_or(0)),
            _ => return garbage(),
        };
        event(change, &object).map_or_else(garbage, Self::Event)
    }

    pub(super) fn resume_revision(&self) -> Option<u64> {
        match self {
            Self::Event(seen) => Some(seen.revision),
            Self::Bookmark { revision, .. } => Some(*revision),
            Self::Error(_) | Self::Garbage(_) => None,
        }
    }
}

fn bookmark(object: &Value) -> Option<WatchLine> {
    let revision = revision(&object["metadata"])?;
    let metadata = metadata(object).unwrap_or(&Value::Null);
    let initial = metadata["annotations"]["k8s.io/initial-events-end"] == "true";
    Some(WatchLine::Bookmark { revision, initial })
}

fn event(change: Change, object: &Value) -> Option<WatchEvent> {
    let metadata = metadata(object)?;
    let part = matches!(
        object["kind"].as_str(),
        Some("Table" | "PartialObjectMetadata")
    );
    let version = object["apiVersion"].as_str().unwrap_or_default();
    Some(WatchEvent {
        change: Some(change),
        path: path(metadata)?,
        revision: revision(metadata)?,
        content: (!part).then(|| (version.into(), fingerprint(object))),
    })
}

/// The metadata of the object, or of the only row of a table.
fn metadata(object: &Value) -> Option<&Value> {
    match object["kind"].as_str() {
        Some("Table") => object.pointer("/rows/0/object/metadata"),
        _ => object.get("metadata"),
    }
}

pub(crate) fn path(metadata: &Value) -> Option<String> {
    let name = metadata["name"].as_str()?;
    Some(match metadata["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.into(),
    })
}

pub(crate) fn revision(metadata: &Value) -> Option<u64> {
    metadata["resourceVersion"].as_str()?.parse().ok()
}

impl WatchEvent {
    pub(super) fn bookmark(revision: u64) -> Self {
        Self {
            change: None,
            path: String::new(),
            revision,
            content: None,
        }
    }

    /// The event that should have been delivered for a state.
    pub(super) fn of(change: Change, path: &str, state: &ObjectState, revision: u64) -> Self {
        Self {
            change: Some(change),
            path: path.into(),
            revision,
            content: Some((state.api_version.clone(), state.fingerprint)),
        }
    }

    /// Whether both have the same content; objects in different versions, or in part, are not
    /// compared.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (Some((version, one)), Some((other_version, other))) => {
                version != other_version || one == other
            }
            _ => true,
        }
    }
}

impl fmt::Display for WatchEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.change {
            Some(change) => {
                let change = format!("{change:?}").to_uppercase();
                write!(f, "{change} {} at {}", self.path, self.revision)
            }
            None => write!(f, "BOOKMARK at {}", self.revision),
        }
    }
}
