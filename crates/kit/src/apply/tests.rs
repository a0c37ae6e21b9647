mod object;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams},
};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::{Value, json};

use super::*;
use crate::{clock::Clock, key::Key, lease::Leadership, telemetry::Telemetry};

fn maps() -> Kind {
    Kind {
        resource: ApiResource::erase::<ConfigMap>(&()),
        namespaced: true,
    }
}

fn goal(name: &str, data: &Value) -> Goal {
    let metadata = json!({"namespace": "default", "name": name, "labels": {"of": "test"}});
    Goal {
        kind: maps(),
        object: json!({"metadata": metadata, "data": data}),
    }
}

#[test]
fn only_what_is_wanted_counts_as_a_difference() {
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

/// A server, a hand that may write, and a look at what is there.
struct Bench {
    _pocket: Pocket,
    api: Api<DynamicObject>,
    hand: Hand,
}

impl Bench {
    async fn new() -> Self {
        let pocket = Pocket::open(Options::new(Environment::rehearsal(7)))
            .await
            .unwrap();
        let client = Client::new(pocket.service(), "default");
        let clock = Clock::system();
        let hand = Hand::new(client.clone(), "test", Leadership::alone(clock), clock);
        let api = Api::namespaced_with(client, "default", &maps().resource);
        Self {
            _pocket: pocket,
            api,
            hand,
        }
    }

    async fn live(&self) -> Vec<(Kind, DynamicObject)> {
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

    async fn plan(&self, goals: &[Goal]) -> Plan {
        plan(goals, &self.live().await)
    }

    async fn reach(&self, goals: &[Goal]) {
        self.hand.carry_out(self.plan(goals).await).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_plan_says_what_it_does_and_why_and_then_nothing_is_left() {
    let bench = Bench::new().await;
    let first = [goal("a", &json!({"x": "1"})), goal("b", &json!({"x": "1"}))];
    let plan = bench.plan(&first).await;
    assert_eq!(
        plan.to_string(),
        "create ConfigMap default/a: it is missing\ncreate ConfigMap default/b: it is missing"
    );
    bench.reach(&first).await;
    assert_eq!(bench.plan(&first).await.to_string(), "nothing to do");
    let second = [goal("a", &json!({"x": "2"})), goal("c", &json!({}))];
    let plan = bench.plan(&second).await.to_string();
    let lines: Vec<_> = plan.lines().collect();
    assert_eq!(lines.len(), 3, "{plan}");
    assert!(
        lines[0].starts_with("update ConfigMap default/a: ") && lines[0].contains("data.x"),
        "{plan}"
    );
    assert_eq!(lines[1], "create ConfigMap default/c: it is missing");
    assert_eq!(
        lines[2],
        "delete ConfigMap default/b: it is no longer wanted"
    );
    bench.reach(&second).await;
    assert_eq!(bench.plan(&second).await, Plan::default());
}

#[tokio::test(start_paused = true)]
async fn a_field_that_is_no_longer_wanted_goes() {
    let bench = Bench::new().await;
    bench
        .reach(&[goal("a", &json!({"x": "1", "y": "1"}))])
        .await;
    let less = [goal("a", &json!({"x": "1"}))];
    assert_eq!(bench.plan(&less).await.changes.len(), 1);
    bench.reach(&less).await;
    let object = bench.api.get("a").await.unwrap();
    assert_eq!(object.data["data"], json!({"x": "1"}));
}

#[tokio::test(start_paused = true)]
async fn drift_is_put_right_and_fields_of_others_stay() {
    let bench = Bench::new().await;
    let goals = [goal("a", &json!({"x": "1"}))];
    bench.reach(&goals).await;
    let drift = json!({"data": {"x": "9", "theirs": "1"}});
    let patch = kube::api::Patch::Merge(&drift);
    bench
        .api
        .patch("a", &kube::api::PatchParams::default(), &patch)
        .await
        .unwrap();
    bench.reach(&goals).await;
    let object = bench.api.get("a").await.unwrap();
    assert_eq!(object.data["data"], json!({"x": "1", "theirs": "1"}));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_was_replaced_is_not_touched() {
    let bench = Bench::new().await;
    bench.reach(&[goal("a", &json!({"x": "1"}))]).await;
    let stale = bench.live().await;
    bench
        .api
        .delete("a", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    bench.reach(&[goal("a", &json!({"x": "new"}))]).await;
    let update = plan(&[goal("a", &json!({"x": "2"}))], &stale);
    let refused = bench.hand.carry_out(update).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Replaced(key) if *key == Key::new("default", "a")),
        "{refused:?}"
    );
    let removal = bench.hand.carry_out(plan(&[], &stale)).await;
    assert!(matches!(removal, Err(Error::Replaced(_))), "{removal:?}");
    let object = bench.api.get("a").await.unwrap();
    assert_eq!(object.data["data"], json!({"x": "new"}));
}

#[tokio::test(start_paused = true)]
async fn a_status_is_written_once() {
    let bench = Bench::new().await;
    bench.reach(&[goal("a", &json!({}))]).await;
    let mut object = bench.api.get("a").await.unwrap();
    object.data["status"] = json!({"ready": true});
    let same = bench
        .hand
        .status(&maps(), &object, &json!({"ready": true}))
        .await
        .unwrap();
    assert!(same.is_none());
}

#[tokio::test(start_paused = true)]
async fn nobody_writes_who_does_not_lead() {
    let bench = Bench::new().await;
    let options = crate::lease::Options {
        namespace: "default".into(),
        name: "neap".into(),
        identity: "me".into(),
        timings: crate::lease::Timings::default(),
    };
    let client = bench.api.clone().into_client();
    let clock = Clock::system();
    let (_elector, leadership) =
        crate::lease::Elector::new(client.clone(), options, clock).unwrap();
    let hand = Hand::new(client, "test", leadership, clock);
    let plan = plan(&[goal("a", &json!({}))], &[]);
    let refused = hand.carry_out(plan).await.unwrap_err();
    assert!(matches!(refused, Error::NotLeading(_)), "{refused:?}");
    assert!(bench.live().await.is_empty());
}

/// Remembers what it was told.
#[derive(Debug, Default)]
struct Notes(parking_lot::Mutex<Vec<String>>);

impl Witness for Notes {
    fn saw<'a>(
        &'a self,
        write: &'a Write,
        outcome: Result<(), &'a Error>,
    ) -> futures::future::BoxFuture<'a, ()> {
        let words = match outcome {
            Ok(()) => format!("{write}"),
            Err(error) => format!("{write}: {error}"),
        };
        self.0.lock().push(words);
        Box::pin(async {})
    }
}

#[tokio::test(start_paused = true)]
async fn every_write_is_counted_and_told_to_the_witness() {
    let bench = Bench::new().await;
    let (notes, telemetry) = (std::sync::Arc::new(Notes::default()), Telemetry::default());
    let hand = bench.hand.clone();
    let hand = hand
        .witnessed_by(notes.clone())
        .counted_by(telemetry.clone());
    hand.carry_out(plan(&[goal("a", &json!({}))], &[]))
        .await
        .unwrap();
    let map: ConfigMap = serde_json::from_value(goal("b", &json!({})).object).unwrap();
    let made = hand.create(&map).await.unwrap().unwrap();
    hand.remove(&made, None).await.unwrap();
    hand.replace(&made).await.unwrap_err();
    assert_eq!(
        *notes.0.lock(),
        [
            "apply v1 ConfigMap default/a",
            "create v1 ConfigMap default/b",
            "delete v1 ConfigMap default/b",
            "replace v1 ConfigMap default/b: default/b is no longer the object that was looked at",
        ]
    );
    let text = telemetry.text();
    let replaced = r#"neaptide_writes_total{manager="test",verb="replace",result="replaced"} 1"#;
    assert!(text.contains(replaced), "{text}");
}
