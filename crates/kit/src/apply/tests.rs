mod object;

use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, ListParams},
};
use serde_json::{Value, json};

use super::*;
use crate::{clock::Clock, key::Key, lease::Leadership, server::Server, telemetry::Telemetry};

fn maps() -> Kind {
    Kind {
        resource: ApiResource::erase::<ConfigMap>(&()),
        namespaced: true,
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
    server: Server,
    api: Api<DynamicObject>,
    hand: Hand,
}

impl Bench {
    async fn new() -> Self {
        let server = Server::open().await;
        let client = server.client.clone();
        let clock = Clock::system();
        let hand = Hand::new(client.clone(), "test", Leadership::alone(clock), clock);
        let api = Api::default_namespaced_with(client, &maps().resource);
        Self { server, api, hand }
    }

    fn map(&self, name: &str, data: &Value) -> Value {
        let namespace = self.server.namespace();
        let metadata = json!({"namespace": namespace, "name": name, "labels": {"of": "test"}});
        json!({"metadata": metadata, "data": data})
    }

    fn goal(&self, name: &str, data: &Value) -> Goal {
        Goal {
            kind: maps(),
            object: self.map(name, data),
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
    let first = [
        bench.goal("a", &json!({"x": "1"})),
        bench.goal("b", &json!({"x": "1"})),
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
    bench.reach(&first).await;
    assert_eq!(bench.plan(&first).await.to_string(), "nothing to do");
    let second = [
        bench.goal("a", &json!({"x": "2"})),
        bench.goal("c", &json!({})),
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
    bench.reach(&second).await;
    assert_eq!(bench.plan(&second).await, Plan::default());
}

#[tokio::test(start_paused = true)]
async fn a_field_that_is_no_longer_wanted_goes() {
    let bench = Bench::new().await;
    bench
        .reach(&[bench.goal("a", &json!({"x": "1", "y": "1"}))])
        .await;
    let less = [bench.goal("a", &json!({"x": "1"}))];
    assert_eq!(bench.plan(&less).await.changes.len(), 1);
    bench.reach(&less).await;
    let object = bench.api.get("a").await.unwrap();
    assert_eq!(object.data["data"], json!({"x": "1"}));
}

#[tokio::test(start_paused = true)]
async fn drift_is_put_right_and_fields_of_others_stay() {
    let bench = Bench::new().await;
    let goals = [bench.goal("a", &json!({"x": "1"}))];
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
    bench.reach(&[bench.goal("a", &json!({"x": "1"}))]).await;
    let stale = bench.live().await;
    bench
        .api
        .delete("a", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    bench.reach(&[bench.goal("a", &json!({"x": "new"}))]).await;
    let update = plan(&[bench.goal("a", &json!({"x": "2"}))], &stale);
    let refused = bench.hand.carry_out(update).await.unwrap_err();
    assert!(
        matches!(&refused, Error::Replaced(key) if *key == Key::new(bench.server.namespace(), "a")),
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
    bench.reach(&[bench.goal("a", &json!({}))]).await;
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
async fn a_status_that_differs_is_written_to_its_own_place() {
    let bench = Bench::new().await;
    let name = bench.server.unshared("n");
    let nodes = Kind {
        resource: ApiResource::erase::<Node>(&()),
        namespaced: false,
    };
    let object = json!({"metadata": {"name": name}, "spec": {"podCIDR": "10.0.0.0/24"}});
    let goal = Goal {
        kind: nodes.clone(),
        object,
    };
    let plan = plan(&[goal], &[]);
    let made = bench.hand.carry_out(plan).await.unwrap().remove(0);
    let status = json!({"capacity": {"pods": "7"}});
    let written = bench.hand.status(&nodes, &made, &status).await.unwrap();
    let written = written.unwrap();
    assert_eq!(written.data["status"]["capacity"], status["capacity"]);
    assert_eq!(written.data["spec"], made.data["spec"]);
    let same = written.data["status"].clone();
    let again = bench.hand.status(&nodes, &written, &same).await.unwrap();
    assert!(again.is_none(), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn nobody_writes_who_does_not_lead() {
    let bench = Bench::new().await;
    let options = crate::lease::Options {
        namespace: bench.server.namespace().into(),
        name: "neap".into(),
        identity: "me".into(),
        timings: crate::lease::Timings::default(),
    };
    let client = bench.api.clone().into_client();
    let clock = Clock::system();
    let (_elector, leadership) =
        crate::lease::Elector::new(client.clone(), options, clock).unwrap();
    let hand = Hand::new(client, "test", leadership, clock);
    let plan = plan(&[bench.goal("a", &json!({}))], &[]);
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
    hand.carry_out(plan(&[bench.goal("a", &json!({}))], &[]))
        .await
        .unwrap();
    let map: ConfigMap = serde_json::from_value(bench.map("b", &json!({}))).unwrap();
    let made = hand.create(&map).await.unwrap().unwrap();
    hand.remove(&made, None).await.unwrap();
    hand.replace(&made).await.unwrap_err();
    let namespace = bench.server.namespace();
    assert_eq!(
        *notes.0.lock(),
        [
            format!("apply v1 ConfigMap {namespace}/a"),
            format!("create v1 ConfigMap {namespace}/b"),
            format!("delete v1 ConfigMap {namespace}/b"),
            format!(
                "replace v1 ConfigMap {namespace}/b: \
                 {namespace}/b is no longer the object that was looked at"
            ),
        ]
    );
    let text = telemetry.text();
    let replaced = r#"neaptide_writes_total{manager="test",verb="replace",result="replaced"} 1"#;
    assert!(text.contains(replaced), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_write_is_given_up_before_another_may_lead() {
    let second = std::time::Duration::from_secs(1);
    let clock = Clock::system();
    let (post, leadership) = Leadership::new(clock);
    post.lead(crate::lease::Term(1), 10 * second, 15 * second);
    let hand = Hand::new(crate::server::nobody(), "test", leadership, clock);
    let map = ConfigMap::default();
    let waited = async || match hand.create(&map).await {
        Err(Error::Late { waited, .. }) => waited,
        other => panic!("{other:?}"),
    };
    assert_eq!(waited().await, 10 * second, "the limit of every write");
    post.lead(crate::lease::Term(1), 20 * second, 25 * second);
    clock.sleep(9 * second).await;
    assert_eq!(waited().await, 6 * second, "19 s after the beginning");
}

#[tokio::test(start_paused = true)]
async fn what_another_has_made_is_not_taken_over_unseen() {
    let bench = Bench::new().await;
    let theirs = bench.map("a", &json!({"color": "theirs"}));
    let theirs: ConfigMap = serde_json::from_value(theirs).unwrap();
    let maps: Api<ConfigMap> = Api::default_namespaced(bench.server.client.clone());
    let parameters = kube::api::PostParams::default();
    maps.create(&parameters, &theirs).await.unwrap();
    let ours = bench.goal("a", &json!({"color": "ours"}));
    let refused = bench.hand.carry_out(plan(&[ours], &[])).await.unwrap_err();
    assert!(matches!(refused, Error::Replaced(_)), "{refused:?}");
    let live = bench.api.get("a").await.unwrap();
    assert_eq!(live.data["data"]["color"], "theirs");
}
