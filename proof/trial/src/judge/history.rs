//! Oracles on the history of a run.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use neap_pocket::store::{Change, Event};
use serde::{Deserialize, Serialize};

use super::{Oracle, Violation, allowances::ENDPOINTS, is_compared, read};
use crate::{EntryKind, TraceEntry, canonical, run::RunRecord};

/// The number of creations and deletions of each object.
pub(super) fn counts(history: &[Arc<Event>]) -> BTreeMap<String, (u32, u32)> {
    let mut counts: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for event in history.iter().filter(|event| is_compared(&event.resource)) {
        let count = || canonical::comparison_key(&event.resource, &event.path, &event.object);
        match event.change {
            Change::Added => counts.entry(count()).or_default().0 += 1,
            Change::Deleted => counts.entry(count()).or_default().1 += 1,
            Change::Modified => {}
        }
    }
    counts
}

/// Whether an object was kept that another run deletes and creates again.
fn is_kept(wanted: (u32, u32), found: (u32, u32)) -> bool {
    found.0 >= 1 && found.0 < wanted.0 && wanted.0 - found.0 == wanted.1.saturating_sub(found.1)
}

pub(super) fn compare_counts(
    wanted: &BTreeMap<String, (u32, u32)>,
    history: &[Arc<Event>],
) -> Vec<Violation> {
    let found = counts(history);
    let mut paths: Vec<_> = wanted.keys().chain(found.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    let of = |counts: &BTreeMap<String, (u32, u32)>, path: &String| {
        counts.get(path).copied().unwrap_or_default()
    };
    let differing = paths.into_iter().filter_map(|path| {
        let (wanted, found) = (of(wanted, path), of(&found, path));
        if path.starts_with(ENDPOINTS) && is_kept(wanted, found) {
            return None;
        }
        let text = format!(
            "{path} was made {} and deleted {} times instead of {} and {}",
            found.0, found.1, wanted.0, wanted.1
        );
        let kind = path.split('/').nth(1).unwrap_or_default();
        (wanted != found).then(|| Violation::new(Oracle::Counts, kind, text))
    });
    differing.collect()
}

/// Objects whose owners do not exist at the end.
pub(super) fn orphans(record: &RunRecord) -> Vec<Violation> {
    let Some(end) = record.states.last() else {
        return Vec::new();
    };
    let alive: HashSet<&str> = end
        .iter()
        .map(|(_, _, object)| &*object.metadata().uid)
        .collect();
    let ever: HashSet<&str> = record
        .history
        .iter()
        .map(|event| &*event.object.metadata().uid)
        .collect();
    let mut violations = Vec::new();
    for (resource, path, object) in end {
        let owners = &object.metadata().owner_references;
        let known = owners.iter().filter(|owner| ever.contains(&*owner.uid));
        let mut known = known.peekable();
        if known.peek().is_some() && known.all(|owner| !alive.contains(&*owner.uid)) {
            let text = format!("{resource}/{path} has lost its owner and is still there");
            violations.push(Violation::new(Oracle::Orphan, resource, text));
        }
    }
    violations
}

/// The fields that must never go back.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ObjectProgress {
    metadata: GenerationMetadata,
    status: ProgressStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct GenerationMetadata {
    generation: i64,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ProgressStatus {
    observed_generation: i64,
    phase: String,
    conditions: Vec<ProgressCondition>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ProgressCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

impl ProgressStatus {
    /// Whether a pod, a Job or an Operation has finished.
    fn is_over(&self) -> bool {
        let ended = |condition: &ProgressCondition| {
            matches!(condition.kind.as_str(), "Complete" | "Failed") && condition.status == "True"
        };
        matches!(self.phase.as_str(), "Succeeded" | "Failed" | "Cancelled")
            || self.conditions.iter().any(ended)
    }
}

/// Generations that decreased, and finished objects that are no longer finished.
pub(super) fn backwards(history: &[Arc<Event>]) -> Vec<Violation> {
    let mut seen: HashMap<&str, (i64, i64, bool)> = HashMap::new();
    let mut violations = Vec::new();
    for event in history.iter().filter(|event| is_compared(&event.resource)) {
        let progress: ObjectProgress = match read(event, Oracle::Backwards) {
            Ok(progress) => progress,
            Err(unreadable) => {
                violations.push(unreadable);
                continue;
            }
        };
        let generation = progress.metadata.generation;
        let observed = progress.status.observed_generation;
        let over = progress.status.is_over();
        let now = (generation, observed, over);
        let before = seen.insert(&event.object.metadata().uid, now);
        let Some((generation_before, observed_before, over_before)) = before else {
            continue;
        };
        let problem = if generation < generation_before {
            "its generation went back"
        } else if observed < observed_before {
            "its observedGeneration went back"
        } else if over_before && !over {
            "it was over and is not any longer"
        } else {
            continue;
        };
        let text = format!("{}/{}: {problem}", event.resource, event.path);
        violations.push(Violation::new(Oracle::Backwards, &event.resource, text));
    }
    violations
}

/// The number of requests by the processes under test; Lease renewals do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Effort {
    pub(super) writes: usize,
    pub(super) requests: usize,
}

impl Effort {
    pub(super) fn of(entries: &[TraceEntry]) -> Self {
        let asked = entries
            .iter()
            .filter(|entry| entry.kind == EntryKind::Request);
        let work = asked.filter(|entry| entry.call.kind != "leases");
        let (mut writes, mut requests) = (0, 0);
        for entry in work {
            requests += 1;
            writes += usize::from(entry.call.verb.writes());
        }
        Self { writes, requests }
    }
}

/// A fault may cost some retries, not many; after a restart or a lost watch also lists and reads.
pub(super) fn storm(usual: Effort, found: Effort) -> Option<Violation> {
    let text = if found.writes > usual.writes * 3 + 20 {
        let (tried, usual) = (found.writes, usual.writes);
        format!("{tried} writes were tried where {usual} do")
    } else if found.requests > usual.requests * 3 + 150 {
        let (asked, usual) = (found.requests, usual.requests);
        format!("{asked} requests were sent where {usual} do")
    } else {
        return None;
    };
    Some(Violation::new(Oracle::Storm, "", text))
}

#[cfg(test)]
pub(super) mod tests {
    use jiff::Timestamp;
    use neap_pocket::store::Object;
    use serde_json::{Value, json};

    use super::*;

    /// An object as the store holds it.
    pub(in crate::judge) fn object(mut metadata: Value, status: &Value) -> Object {
        metadata["name"] = "it".into();
        metadata["uid"] = "1".into();
        let value =
            json!({"apiVersion": "v1", "kind": "Thing", "metadata": metadata, "status": status});
        Object::pretended(&value, 1)
    }

    pub(in crate::judge) fn event(resource: &str, object: Object) -> Arc<Event> {
        Arc::new(Event {
            change: Change::Modified,
            resource: resource.into(),
            path: "default/it".into(),
            object: Arc::new(object),
            previous: None,
            at: Timestamp::UNIX_EPOCH,
        })
    }

    fn said(states: &[(i64, Value)]) -> Vec<String> {
        let objects = states
            .iter()
            .map(|(generation, status)| object(json!({"generation": generation}), status));
        let history: Vec<_> = objects.map(|object| event("/pods", object)).collect();
        let told = backwards(&history).into_iter();
        told.map(|violation| violation.text).collect()
    }

    #[test]
    fn what_goes_back_is_told() {
        let seen = |generation: i64| json!({"observedGeneration": generation});
        let phase = |phase: &str| json!({"phase": phase});
        assert!(said(&[(1, seen(1)), (2, seen(1)), (2, seen(2))]).is_empty());
        assert!(said(&[(1, phase("Running")), (1, phase("Succeeded"))]).is_empty());
        assert_eq!(
            said(&[(2, seen(2)), (1, seen(2))]),
            ["/pods/default/it: its generation went back"]
        );
        assert_eq!(
            said(&[(2, seen(2)), (2, seen(1))]),
            ["/pods/default/it: its observedGeneration went back"]
        );
        assert_eq!(
            said(&[(1, phase("Failed")), (1, phase("Running"))]),
            ["/pods/default/it: it was over and is not any longer"]
        );
    }

    #[test]
    fn some_tries_more_are_no_storm() {
        let usual = Effort {
            writes: 20,
            requests: 100,
        };
        let storm = |writes, requests| storm(usual, Effort { writes, requests }).is_some();
        assert!(!storm(80, 450));
        assert!(storm(81, 181), "writes");
        assert!(storm(20, 451), "requests that write nothing");
    }

    #[test]
    fn only_what_is_made_again_may_be_kept() {
        assert!(is_kept((2, 2), (1, 1)));
        assert!(is_kept((2, 1), (1, 0)));
        assert!(!is_kept((2, 2), (1, 0)), "it is still there");
        assert!(!is_kept((2, 2), (3, 3)), "it was made once more");
        assert!(!is_kept((1, 1), (0, 0)), "it was never made");
    }
}
