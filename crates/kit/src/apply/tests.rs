mod changes;
mod object;

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams},
};
use serde_json::{Value, json};

use super::*;
use crate::{clock::Clock, key::Key, lease::Leadership, server::Server, telemetry::Telemetry};

fn maps() -> ResourceKind {
    ResourceKind {
        resource: ApiResource::erase::<ConfigMap>(&()),
        namespaced: true,
    }
}

#[test]
fn only_desired_fields_are_compared() {
    let live = json!({
        "spec": {"replicas": 1, "paused": false, "ports": [{"name": "a", "port": 1, "protocol": "TCP"}, {"name": "b", "port": 2}]},
        "status": {"ready": 1},
    });
    for (wanted, expected) in [
        (json!({"spec": {"replicas": 1}}), vec![]),
        (json!({"spec": {"replicas": 2}}), vec!["spec.replicas"]),
        (json!({"spec": {"more": 1}}), vec!["spec.more"]),
        (json!({"spec": {"empty": {}, "none": []}}), vec![]),
        (
            json!({"spec": {"ports": [{"name": "b", "port": 2}, {"name": "a", "port": 1}]}}),
            vec![],
        ),
        (
            json!({"spec": {"ports": [{"name": "a", "port": 1}]}}),
            vec!["spec.ports"],
        ),
        (
            json!({"spec": {"ports": [{"name": "a", "port": 9}, {"name": "b", "port": 2}]}}),
            vec!["spec.ports.0.port"],
        ),
        (json!({"spec": {"ports": "none"}}), vec!["spec.ports"]),
    ] {
        assert_eq!(differences(&wanted, &live), expected, "{wanted}");
    }
}

#[test]
fn ports_of_one_number_are_told_apart_by_their_protocol() {
    let live = json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]);
    for (wanted, expected) in [
        (live.clone(), vec![]),
        (
            json!([{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]),
            vec![],
        ),
        // The server's default.
        (
            json!([{"port": 53}, {"port": 53, "protocol": "UDP"}]),
            vec![],
        ),
        (
            json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "SCTP"}]),
            vec!["1"],
        ),
    ] {
        assert_eq!(differences(&wanted, &live), expected, "{wanted}");
    }
}

/// A server, a writer that leads, and a client to read what was written.
struct WriterBench {
    server: Server,
    api: Api<DynamicObject>,
    writer: Writer,
}

impl WriterBench {
    async fn new() -> Self {
        let server = Server::open().await;
        let client = server.client.clone();
        let clock = Clock::system();
        let writer = Writer::new(
            client.clone(),
            "test",
            Leadership::without_election(clock),
            clock,
        );
        let api = Api::default_namespaced_with(client, &maps().resource);
        Self {
            server,
            api,
            writer,
        }
    }

    fn map(&self, name: &str, data: &Value) -> Value {
        let namespace = self.server.namespace();
        let metadata = json!({"namespace": namespace, "name": name, "labels": {"of": "test"}});
        json!({"metadata": metadata, "data": data})
    }

    fn desired(&self, name: &str, data: &Value) -> DesiredObject {
        DesiredObject {
            kind: maps(),
            object: self.map(name, data),
        }
    }

    async fn live(&self) -> Vec<(ResourceKind, DynamicObject)> {
        let found = self
            .api
            .list(&ListParams::default().labels("of=test"))
            .await
            .unwrap();
        found
            .items
            .into_iter()
            .map(|object| (maps(), object))
            .collect()
    }

    async fn plan(&self, desired: &[DesiredObject]) -> Plan {
        plan(desired, &self.live().await)
    }

    async fn execute(&self, desired: &[DesiredObject]) {
        self.writer.execute(self.plan(desired).await).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_names_each_write_with_its_reason_and_is_empty_after_its_execution() {
    let bench = WriterBench::new().await;
    let first = [
        bench.desired("a", &json!({"x": "1"})),
        bench.desired("b", &json!({"x": "1"})),
    ];
    let plan = bench.plan(&first).await;
    let namespace = bench.server.namespace();
    assert_eq!(
        plan.to_string(),
        format!(
            "create ConfigMap {namespace}/a: it is missing\n\
             create ConfigMap {namespace}/b: it is missing"
        )
    );
    bench.execute(&first).await;
    assert_eq!(bench.plan(&first).await.to_string(), "nothing to do");
    let second = [
        bench.desired("a", &json!({"x": "2"})),
        bench.desired("c", &json!({})),
    ];
    let plan = bench.plan(&second).await.to_string();
    let lines: Vec<_> = plan.lines().collect();
    assert_eq!(lines.len(), 3, "{plan}");
    assert!(
        lines[0].starts_with(&format!("update ConfigMap {namespace}/a: "))
            && lines[0].contains("data.x"),
        "{plan}"
    );
    let created = format!("create ConfigMap {namespace}/c: it is missing");
    let deleted = format!("delete ConfigMap {namespace}/b: it is no longer wanted");
    assert_eq!(lines[1..], [created, deleted]);
    bench.execute(&second).await;
    assert_eq!(bench.plan(&second).await, Plan::default());
}

#[tokio::test(start_paused = true)]
async fn a_field_that_is_no_longer_desired_is_removed() {
    let bench = WriterBench::new().await;
    bench
        .execute(&[bench.desired("a", &json!({"x": "1", "y": "1"}))])
        .await;
    let less = [bench.desired("a", &json!({"x": "1"}))];
    assert_eq!(bench.plan(&less).await.changes.len(), 1);
    bench.execute(&less).await;
    let object = bench.api.get("a").await.unwrap();
    assert_eq!(object.data["data"], json!({"x": "1"}));
}

#[tokio::test(start_paused = true)]
async fn drift_is_corrected_and_fields_of_other_managers_stay() {
    let bench = WriterBench::new().await;
    let desired = [bench.desired("a", &json!({"x": "1"}))];
    bench.execute(&desired).await;
    let drift = json!({"data": {"x": "9", "theirs": "1"}});
    let patch = kube::api::Patch::Merge(&drift);
    bench
        .api
        .patch("a", &kube::api::PatchParams::default(), &patch)
        .await
        .unwrap();
    bench.execute(&desired).await;
    let object = bench.api.get("a").await.unwrap();
    assert_eq!(object.data["data"], json!({"x": "1", "theirs": "1"}));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_replaced_is_not_written() {
    let bench = WriterBench::new().await;
    bench
        .execute(&[bench.desired("a", &json!({"x": "1"}))])
        .await;
    let stale = bench.live().await;
    bench
        .api
        .delete("a", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    bench
        .execute(&[bench.desired("a", &json!({"x": "new"}))])
        .await;
    let update = plan(&[bench.desired("a", &json!({"x": "2"}))], &stale);
    let refused = bench.writer.execute(update).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Conflict(key) if *key == Key::new(bench.server.namespace(), "a")),
        "{refused:?}"
    );
    let removal = bench.writer.execute(plan(&[], &stale)).await;
    assert!(matches!(removal, Err(Error::Conflict(_))), "{removal:?}");
    let object = bench.api.get("a").await.unwrap();
    assert_eq!(object.data["data"], json!({"x": "new"}));
}

#[tokio::test(start_paused = true)]
async fn a_status_that_did_not_change_is_not_written() {
    let bench = WriterBench::new().await;
    bench.execute(&[bench.desired("a", &json!({}))]).await;
    let mut object = bench.api.get("a").await.unwrap();
    object.data["status"] = json!({"ready": true});
    let same = bench
        .writer
        .status(&maps(), &object, &json!({"ready": true}))
        .await
        .unwrap();
    assert!(same.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_status_that_changed_is_written_to_the_status_subresource() {
    let bench = WriterBench::new().await;
    let name = bench.server.unique_name("n");
    let nodes = ResourceKind {
        resource: ApiResource::erase::<Node>(&()),
        namespaced: false,
    };
    let object = json!({"metadata": {"name": name}, "spec": {"podCIDR": "10.0.0.0/24"}});
    let desired = DesiredObject {
        kind: nodes.clone(),
        object,
    };
    let plan = plan(&[desired], &[]);
    let made = bench.writer.execute(plan).await.unwrap().remove(0);
    let status = json!({"capacity": {"pods": "7"}});
    let written = bench.writer.status(&nodes, &made, &status).await.unwrap();
    let written = written.unwrap();
    assert_eq!(written.data["status"]["capacity"], status["capacity"]);
    assert_eq!(written.data["spec"], made.data["spec"]);
    let same = written.data["status"].clone();
    let again = bench.writer.status(&nodes, &written, &same).await.unwrap();
    assert!(again.is_none(), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_does_not_lead_does_not_write() {
    let bench = WriterBench::new().await;
    let options = crate::lease::ElectionOptions {
        namespace: bench.server.namespace().into(),
        name: "neap".into(),
        identity: "me".into(),
        timings: crate::lease::LeaseTimings::default(),
    };
    let client = bench.api.clone().into_client();
    let clock = Clock::system();
    let (_elector, leadership) =
        crate::lease::Elector::new(client.clone(), options, clock).unwrap();
    let writer = Writer::new(client, "test", leadership, clock);
    let plan = plan(&[bench.desired("a", &json!({}))], &[]);
    let refused = writer.execute(plan).await.unwrap_err();
    assert!(matches!(refused, Error::NotLeading(_)), "{refused:?}");
    assert!(bench.live().await.is_empty());
}

/// Collects the writes that it observes.
#[derive(Debug, Default)]
struct ObservedWrites(parking_lot::Mutex<Vec<String>>);

impl WriteObserver for ObservedWrites {
    fn on_write<'a>(
        &'a self,
        write: &'a Write,
        outcome: Result<(), &'a Error>,
    ) -> futures::future::BoxFuture<'a, ()> {
        let text = match outcome {
            Ok(()) => format!("{write}"),
            Err(error) => format!("{write}: {error}"),
        };
        self.0.lock().push(text);
        Box::pin(async {})
    }
}

#[tokio::test(start_paused = true)]
async fn every_write_is_counted_and_reported_to_the_observer() {
    let bench = WriterBench::new().await;
    let observed = std::sync::Arc::new(ObservedWrites::default());
    let telemetry = Telemetry::default();
    let writer = bench.writer.clone();
    let writer = writer
        .with_write_observer(observed.clone())
        .with_telemetry(telemetry.clone());
    writer
        .execute(plan(&[bench.desired("a", &json!({}))], &[]))
        .await
        .unwrap();
    let map: ConfigMap = serde_json::from_value(bench.map("b", &json!({}))).unwrap();
    let made = writer.create(&map).await.unwrap().unwrap();
    writer.remove(&made, None).await.unwrap();
    writer.replace(&made).await.unwrap_err();
    let namespace = bench.server.namespace();
    assert_eq!(
        *observed.0.lock(),
        [
            format!("apply v1 ConfigMap {namespace}/a"),
            format!("create v1 ConfigMap {namespace}/b"),
            format!("delete v1 ConfigMap {namespace}/b"),
            format!(
                "replace v1 ConfigMap {namespace}/b: \
                 {namespace}/b was changed, replaced or deleted since it was read"
            ),
        ]
    );
    let text = telemetry.text();
    let replaced = r#"neaptide_writes_total{manager="test",verb="replace",result="replaced"} 1"#;
    assert!(text.contains(replaced), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_write_times_out_before_another_process_may_lead() {
    let second = std::time::Duration::from_secs(1);
    let clock = Clock::system();
    let (setter, leadership) = Leadership::new(clock);
    setter.lead(crate::lease::Term(1), 10 * second, 15 * second);
    let writer = Writer::new(
        crate::server::unresponsive_client(),
        "test",
        leadership,
        clock,
    );
    let map = ConfigMap::default();
    let waited = async || match writer.create(&map).await {
        Err(Error::Timeout { waited, .. }) => waited,
        other => panic!("{other:?}"),
    };
    assert_eq!(waited().await, 10 * second, "the limit of every write");
    setter.lead(crate::lease::Term(1), 20 * second, 25 * second);
    clock.sleep(9 * second).await;
    assert_eq!(waited().await, 6 * second, "19 s after the start");
}

#[tokio::test(start_paused = true)]
async fn an_existing_object_of_another_manager_is_not_taken_over() {
    let bench = WriterBench::new().await;
    let theirs = bench.map("a", &json!({"color": "theirs"}));
    let theirs: ConfigMap = serde_json::from_value(theirs).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(bench.server.client.clone());
    let parameters = kube::api::PostParams::default();
    maps.create(&parameters, &theirs).await.unwrap();
    let ours = bench.desired("a", &json!({"color": "ours"}));
    let refused = bench.writer.execute(plan(&[ours], &[])).await.unwrap_err();
    assert!(matches!(refused, Error::Conflict(_)), "{refused:?}");
    let live = bench.api.get("a").await.unwrap();
    assert_eq!(live.data["data"]["color"], "theirs");
}
