//! O6: of those who lead one after another, nobody writes after the next.

use std::sync::Arc;

use neap_pocket::store::{Change, Event};
use serde::Deserialize;

use super::{Oracle, Violation};

/// Objects that only leaders write say here in which term they were written.
pub const FENCE: &str = "trial.neaptide.dev/fence";

#[derive(Deserialize, Default)]
#[serde(default)]
struct Marked {
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata {
    annotations: Annotations,
}

#[derive(Deserialize, Default)]
struct Annotations {
    #[serde(rename = "trial.neaptide.dev/fence")]
    fence: Option<String>,
}

pub(super) fn backwards(history: &[Arc<Event>]) -> Vec<Violation> {
    let mut highest = 0;
    let mut violations = Vec::new();
    // What is deleted tells of who wrote it last, not of who deleted it.
    let written = history
        .iter()
        .filter(|event| event.change != Change::Deleted);
    for event in written {
        let marked: Marked = serde_json::from_slice(event.object.body()).unwrap_or_default();
        let fence = marked.metadata.annotations.fence;
        let Some(fence) = fence.and_then(|fence| fence.parse::<i64>().ok()) else {
            continue;
        };
        if fence < highest {
            let place = format!("{}/{}", event.resource, event.path);
            let text = format!("{place} was written in term {fence} after one in term {highest}");
            violations.push(Violation::new(Oracle::Backwards, &event.resource, text));
        }
        highest = highest.max(fence);
    }
    violations
}
