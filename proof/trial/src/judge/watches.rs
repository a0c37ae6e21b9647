//! O9: every watch delivers every event, in order and once.

use std::sync::Arc;

use neap_pocket::store::Event;

use super::{Oracle, Violation};
use crate::fault_injector::WatchRecord;

/// Violations of the watches. A watch that is open at the end must have delivered everything up to
/// `until`.
pub(crate) fn judge_watches(
    watches: &[WatchRecord],
    history: &[Arc<Event>],
    until: u64,
) -> Vec<Violation> {
    watches
        .iter()
        .filter_map(|watch| {
            let problem = problem(watch, history, until)?;
            let text = format!("a watch of {}: {problem}", watch.resource);
            Some(Violation::new(Oracle::Watch, &watch.resource, text))
        })
        .collect()
}

fn problem(watch: &WatchRecord, history: &[Arc<Event>], until: u64) -> Option<String> {
    let mut pairs = watch.delivered.iter().zip(watch.delivered.iter().skip(1));
    if let Some((first, second)) = pairs.find(|(first, second)| first >= second) {
        return Some(format!("delivered {second} after {first}"));
    }
    // With a selector, the expected events are unknown here.
    let after = watch.after?;
    let last = watch.delivered.last().copied().unwrap_or_default();
    // A watch that has ended may have ended before it could deliver the rest.
    let last = if watch.open { last.max(until) } else { last };
    let happened = history.iter().filter(|event| {
        *event.resource == *watch.resource
            && (after + 1..=last).contains(&event.revision())
            && is_within(&event.path, &watch.namespace)
    });
    let happened: Vec<u64> = happened.map(|event| event.revision()).collect();
    (happened != watch.delivered)
        .then(|| format!("delivered {:?} instead of {happened:?}", watch.delivered))
}

fn is_within(path: &str, namespace: &str) -> bool {
    namespace.is_empty() || path.split('/').next() == Some(namespace)
}

#[cfg(test)]
mod tests {
    use kube::Client;
    use serde_json::json;

    use super::*;
    use crate::{ClusterTemplate, run::send};

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_goes_on_has_told_everything() {
        let template = ClusterTemplate::prepare().await.expect("a server");
        let pocket = template.copy(1).await.expect("a copy");
        let user = Client::new(pocket.service(), "default");
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let maps = "/api/v1/namespaces/default/configmaps";
        send(&user, "POST", maps, &map).await.expect("a map");
        let mut history = pocket.store().export_history();
        history.retain(|event| event.revision() > template.revision());
        let last = history.last().map_or(0, |event| event.revision());
        let found = |delivered: &[u64], open: bool| {
            let watch = WatchRecord {
                resource: "/configmaps".to_owned(),
                namespace: String::new(),
                after: Some(template.revision()),
                delivered: delivered.to_vec(),
                open,
            };
            judge_watches(&[watch], &history, last).len()
        };
        assert_eq!(found(&[last], true), 0);
        assert_eq!(found(&[], true), 1, "an event is missing");
        assert_eq!(found(&[], false), 0, "it had ended");
        assert_eq!(found(&[last, last], true), 1, "an event came twice");
    }
}
