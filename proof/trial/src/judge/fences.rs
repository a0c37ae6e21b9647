//! O6: no leader writes after its successor.

use std::sync::Arc;

use neap_pocket::store::{Change, Event};
use serde::Deserialize;

use super::{Oracle, Violation, read};

/// Annotation with the leader's term, on objects that only leaders write.
pub const FENCE: &str = "trial.neaptide.dev/fence";

#[derive(Deserialize, Default)]
#[serde(default)]
struct FencedObject {
    metadata: FenceMetadata,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FenceMetadata {
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
    // A deleted object has the term of its last writer, not of the process that deleted it.
    let written = history
        .iter()
        .filter(|event| event.change != Change::Deleted);
    for event in written {
        let marked: FencedObject = match read(event, Oracle::Backwards) {
            Ok(marked) => marked,
            Err(unreadable) => {
                violations.push(unreadable);
                continue;
            }
        };
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::history::tests::{event, object};
    use super::*;

    fn written(terms: &[&str]) -> Vec<Arc<Event>> {
        let marked = |term: &&str| json!({"annotations": {FENCE: term}});
        let objects = terms.iter().map(|term| object(marked(term), &json!({})));
        objects.map(|object| event("/configmaps", object)).collect()
    }

    #[test]
    fn a_write_of_an_earlier_term_after_one_of_a_later_is_told() {
        assert!(backwards(&written(&["0", "1", "1", "2"])).is_empty());
        let told = backwards(&written(&["1", "0"]));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].text.contains("in term 0 after one in term 1"));
    }
}
