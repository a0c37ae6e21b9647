//! One line of a watch, as far as judges look at it.

use std::fmt;

use serde_json::Value;

use crate::{State, fingerprint};

/// What an event says happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the words of the API")]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

/// An event, or a bookmark, which has no change and no path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// What happened.
    pub change: Option<Change>,
    /// `namespace/name`, or `name`.
    pub path: String,
    /// Its revision.
    pub revision: u64,
    /// What the whole object says, with the version it is written in; absent if only a part of
    /// the object is shown.
    pub content: Option<(String, u64)>,
}

/// One line.
#[derive(Debug, Clone)]
pub enum Line {
    /// A change.
    Event(Seen),
    /// How far the stream has come.
    Bookmark {
        /// To here.
        revision: u64,
        /// Whether it ends the initial state.
        initial: bool,
    },
    /// The stream cannot go on, for this HTTP status.
    Error(u64),
    /// Something that no watch may send.
    Garbage(String),
}

impl Line {
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

    pub(super) fn place(&self) -> Option<u64> {
        match self {
            Self::Event(seen) => Some(seen.revision),
            Self::Bookmark { revision, .. } => Some(*revision),
            Self::Error(_) | Self::Garbage(_) => None,
        }
    }
}

fn bookmark(object: &Value) -> Option<Line> {
    let revision = revision(&object["metadata"])?;
    let metadata = metadata(object).unwrap_or(&Value::Null);
    let initial = metadata["annotations"]["k8s.io/initial-events-end"] == "true";
    Some(Line::Bookmark { revision, initial })
}

fn event(change: Change, object: &Value) -> Option<Seen> {
    let metadata = metadata(object)?;
    let part = matches!(
        object["kind"].as_str(),
        Some("Table" | "PartialObjectMetadata")
    );
    let version = object["apiVersion"].as_str().unwrap_or_default();
    Some(Seen {
        change: Some(change),
        path: path(metadata)?,
        revision: revision(metadata)?,
        content: (!part).then(|| (version.into(), fingerprint(object))),
    })
}

/// The metadata of the object, or of the one row of a table.
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

impl Seen {
    pub(super) fn bookmark(revision: u64) -> Self {
        Self {
            change: None,
            path: String::new(),
            revision,
            content: None,
        }
    }

    /// What should have been seen of a state.
    pub(super) fn of(change: Change, path: &str, state: &State, revision: u64) -> Self {
        Self {
            change: Some(change),
            path: path.into(),
            revision,
            content: Some((state.api_version.clone(), state.fingerprint)),
        }
    }

    /// Whether both say the same; an object shown in another version, or in part, may.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (Some((version, one)), Some((other_version, other))) => {
                version != other_version || one == other
            }
            _ => true,
        }
    }
}

impl fmt::Display for Seen {
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
