use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube::{Api, api::PostParams};
use serde_json::json;

use super::*;
use crate::{lease::Leadership, server::Server};

#[tokio::test(start_paused = true)]
async fn a_repeated_event_is_counted() {
    let server = Server::open().await;
    let client = server.client.clone();
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let writer = Writer::new(
        client.clone(),
        "test",
        Leadership::without_election(clock),
        clock,
    );
    let recorder = EventRecorder::new(writer, "tester", clock);
    // The longest possible name.
    let map = json!({"metadata": {"name": format!("m{}.m", "-m".repeat(125))}});
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map = maps
        .create(
            &PostParams::default(),
            &serde_json::from_value(map).unwrap(),
        )
        .await
        .unwrap();
    for (reason, times) in [("Stuck", 3), ("Other", 1)] {
        for _ in 0..times {
            let draft = EventDraft::warning(reason, "it does not move");
            recorder.record(&map, &draft).await;
        }
    }
    let events: Api<Event> = Api::default_namespaced(client);
    let found = events
        .list(&kube::api::ListParams::default())
        .await
        .unwrap()
        .items;
    let mut counts: Vec<_> = found
        .iter()
        .map(|event| (event.reason.as_deref().unwrap(), event.count.unwrap()))
        .collect();
    counts.sort_unstable();
    assert_eq!(counts, [("Other", 1), ("Stuck", 3)]);
    assert_eq!(found[0].involved_object.uid, map.metadata.uid);
}
