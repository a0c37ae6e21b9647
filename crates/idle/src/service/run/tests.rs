//! The operator on a server in the test's own process. The cluster's other controllers are played by
//! hand: what they would write is written where a test says so.

mod numbers;
mod others;
mod repair;
mod scope;
mod stage;

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod, Service},
    discovery::v1::EndpointSlice,
};
use serde_json::json;

use self::stage::{PRIVATE_NAME, SLICE, Stage};
use crate::{
    api::{ElastiService, Mode},
    service::facts::{OBSERVE_ONLY, OFF, WAKE},
};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn a_service_sleeps_wakes_and_leaves_nothing_behind() {
    let stage = Stage::open().await;
    stage.declare().await;
    stage.pass(SECOND).await;
    let web = stage.status().await;
    assert_eq!(web.mode, Some(Mode::Serve));
    assert_eq!(web.ports[0].resolver_port, 20_000);
    let private: Service = stage.get(PRIVATE_NAME).await.unwrap();
    assert_eq!(private.metadata.owner_references.unwrap()[0].name, "web");
    assert_eq!(stage.replicas().await, 3);

    stage.verdicts.idle();
    stage.pass(MINUTE * 9).await;
    assert_eq!(stage.replicas().await, 3, "the cooldown is not over");
    stage.pass(MINUTE * 2).await;
    assert_eq!(stage.replicas().await, 0);
    let web = stage.status().await;
    assert_eq!(
        (web.mode, web.replicas_before),
        (Some(Mode::Proxy), Some(3))
    );
    let slice: EndpointSlice = stage.get(SLICE).await.unwrap();
    assert_eq!(slice.endpoints.unwrap()[0].addresses, ["10.9.0.1"]);

    stage.pods_are_ready(false).await;
    stage.verdicts.busy();
    stage.pass(SECOND).await;
    assert_eq!(stage.replicas().await, 1);
    assert!(
        stage.get::<EndpointSlice>(SLICE).await.is_some(),
        "no pod is ready"
    );
    stage.pods_are_ready(true).await;
    stage.pass(SECOND * 5).await;
    assert!(stage.get::<EndpointSlice>(SLICE).await.is_none());
    let web = stage.status().await;
    assert_eq!((web.mode, web.hand_off), (Some(Mode::Serve), None));
    assert_eq!(web.last_wake.unwrap().cause, "Busy");

    stage.delete::<ElastiService>("web").await;
    stage.pass(SECOND * 5).await;
    assert!(stage.get::<ElastiService>("web").await.is_none());
    assert!(stage.get::<Service>(PRIVATE_NAME).await.is_none());
    let freed: ConfigMap = stage.get("neaptide-idle-freed-ports").await.unwrap();
    assert!(freed.data.unwrap().contains_key("20000"));
    // A port that was freed is not given again for a while.
    stage.declare().await;
    stage.pass(SECOND * 5).await;
    assert_eq!(stage.status().await.ports[0].resolver_port, 20_001);
    assert!(stage.get::<Service>("web").await.is_some(), "never touched");
}

#[tokio::test(start_paused = true)]
async fn nothing_ends_without_a_proof_and_nothing_is_written_when_nothing_happens() {
    let stage = Stage::open().await;
    stage.declare().await;
    stage.prover.set(false);
    stage.verdicts.idle();
    stage.pass(MINUTE * 11).await;
    assert!(stage.get::<EndpointSlice>(SLICE).await.is_some());
    assert_eq!(stage.replicas().await, 3);
    let before = stage.writes();
    stage.pass(MINUTE * 30).await;
    assert_eq!(
        stage.writes(),
        before,
        "what cannot be proved is not written"
    );
    assert_eq!(stage.replicas().await, 3);
    stage.prover.set(true);
    stage.pass(SECOND * 10).await;
    assert_eq!(stage.replicas().await, 0);
    let before = stage.writes();
    stage.pass(MINUTE * 90).await;
    assert_eq!(stage.writes(), before, "asleep, nothing happens");
    // Three replicas do not run for an hour and a half, and it shows.
    let shown = stage.metrics();
    assert!(
        shown.contains(r#"neaptide_idle_services{state="asleep"} 1"#),
        "{shown}"
    );
    let saved = shown
        .lines()
        .find_map(|it| it.strip_prefix("neaptide_idle_saved_replica_seconds "));
    let saved: i64 = saved.unwrap().parse().unwrap();
    assert!((16_200..16_300).contains(&saved), "{saved}");
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_at_the_last_moment_keeps_the_pods() {
    let stage = Stage::open().await;
    stage.declare().await;
    stage.verdicts.idle();
    // The triggers say so when they are asked once more.
    stage.verdicts.busy_anew();
    stage.pass(MINUTE * 11).await;
    assert_eq!(stage.replicas().await, 3);
    assert_eq!(stage.verdicts.asked_anew(), 1);
}

#[tokio::test(start_paused = true)]
async fn resolvers_that_are_gone_wake_what_sleeps() {
    let stage = Stage::asleep().await;
    stage.resolvers(&[]).await;
    stage.pass(SECOND * 9).await;
    assert_eq!(stage.replicas().await, 0, "it may be only for a moment");
    stage.resolvers(&["10.9.0.2"]).await;
    stage.pass(SECOND * 9).await;
    stage.resolvers(&[]).await;
    stage.pass(SECOND * 9).await;
    assert_eq!(stage.replicas().await, 0, "and another one");
    stage.pass(SECOND * 2).await;
    assert_eq!(stage.replicas().await, 1);
    let web: ElastiService = stage.get("web").await.unwrap();
    let status = web.status.unwrap();
    assert_eq!(status.last_wake.unwrap().cause, "ResolverUnavailable");
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready");
    assert_eq!(ready.unwrap().reason, "ResolverUnavailable");
}

#[tokio::test(start_paused = true)]
async fn a_switch_on_the_namespace_wakes_what_sleeps() {
    let stage = Stage::asleep().await;
    stage.on_namespace(json!({OFF: "true"})).await;
    stage.pass(SECOND * 2).await;
    assert_eq!(stage.replicas().await, 1);
}

#[tokio::test(start_paused = true)]
async fn everything_is_woken_and_observed_by_a_word_on_the_namespace() {
    let stage = Stage::asleep().await;
    let now = stage.now().to_string();
    stage.on_namespace(json!({WAKE: now})).await;
    stage.pass(SECOND * 2).await;
    assert_eq!(stage.replicas().await, 1);
    assert_eq!(stage.status().await.last_wake.unwrap().cause, "Asked");
    stage.pods_are_ready(true).await;
    stage.on_namespace(json!({OBSERVE_ONLY: "true"})).await;
    stage.pass(MINUTE * 30).await;
    assert_eq!(stage.replicas().await, 1);
    let would = stage.status().await.would_sleep.unwrap();
    assert_eq!(would.replicas, 1);
}

#[tokio::test(start_paused = true)]
async fn where_the_time_of_a_wake_went_is_told() {
    let stage = Stage::asleep().await;
    stage.verdicts.busy();
    stage.pass(SECOND).await;
    let woken = stage.status().await.last_wake.unwrap().time;
    let at = |seconds| (woken + jiff::SignedDuration::from_secs(seconds)).to_string();
    let condition = |kind: &str, seconds| json!({"type": kind, "status": "True", "lastTransitionTime": at(seconds)});
    let pod = json!({
        "metadata": {"name": "web-1", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    });
    stage.create::<Pod>(pod).await;
    let conditions = [condition("PodScheduled", 3), condition("Ready", 8)];
    stage
        .patch_status::<Pod>("web-1", json!({"conditions": conditions}))
        .await;
    stage.pods_are_ready(true).await;
    stage.pass(SECOND * 10).await;
    let found = stage.status().await.last_wake.unwrap().breakdown.unwrap();
    assert_eq!((found.schedule, found.ready), (3000, 5000));
    let before = stage.writes();
    stage.pass(MINUTE * 2).await;
    assert_eq!(stage.writes(), before, "it is told once");
}

#[tokio::test(start_paused = true)]
async fn a_target_that_comes_later_is_noticed() {
    let stage = Stage::open().await;
    stage.delete::<Deployment>("web").await;
    stage.declare().await;
    stage.pass(SECOND * 5).await;
    let ready = |status: crate::api::ElastiServiceStatus| {
        let found = status.conditions.into_iter().find(|it| it.type_ == "Ready");
        found.unwrap().reason
    };
    assert_eq!(ready(stage.status().await), "TargetMissing");
    stage.create::<Deployment>(stage::deployment()).await;
    stage.pass(SECOND).await;
    assert_eq!(ready(stage.status().await), "Awake");
    stage.delete::<Service>("web").await;
    stage.pass(SECOND).await;
    assert_eq!(ready(stage.status().await), "ServiceMissing");
    stage.create::<Service>(stage::public()).await;
    stage.pass(SECOND).await;
    assert_eq!(ready(stage.status().await), "Awake");
}

#[tokio::test(start_paused = true)]
async fn everybody_has_ports_of_their_own_until_there_are_none() {
    let stage = Stage::open_with(|settings| settings.range = "20000-20001".parse().unwrap()).await;
    for name in ["web", "api", "more"] {
        let mut service = stage::elasti_service();
        service["metadata"]["name"] = json!(name);
        service["spec"]["service"] = json!(name);
        let mut public = stage::public();
        public["metadata"]["name"] = json!(name);
        if name != "web" {
            stage.create::<Service>(public).await;
        }
        stage.create::<ElastiService>(service).await;
    }
    stage.pass(SECOND * 5).await;
    let mut ports = Vec::new();
    let mut reasons = Vec::new();
    for name in ["web", "api", "more"] {
        let service: ElastiService = stage.get(name).await.unwrap();
        let status = service.status.unwrap();
        ports.extend(status.ports.iter().map(|port| port.resolver_port));
        let stalled = status.conditions.iter().find(|it| it.type_ == "Stalled");
        reasons.extend(
            stalled
                .filter(|it| it.status == "True")
                .map(|it| it.reason.clone()),
        );
    }
    ports.sort_unstable();
    assert_eq!(ports, [20_000, 20_001]);
    assert_eq!(reasons, ["PortsExhausted"]);
}

#[tokio::test(start_paused = true)]
async fn what_sleeps_without_its_service_is_woken_before_it_is_let_go() {
    let stage = Stage::asleep().await;
    stage.delete::<Service>("web").await;
    stage.pass(SECOND).await;
    assert_eq!(stage.replicas().await, 0);
    stage.delete::<ElastiService>("web").await;
    stage.pass(SECOND * 5).await;
    assert!(stage.get::<ElastiService>("web").await.is_none());
    assert_eq!(stage.replicas().await, 3);
}

#[tokio::test(start_paused = true)]
async fn however_one_is_woken_what_it_needs_is_woken_too() {
    let stage = Stage::open().await;
    stage.verdicts.idle();
    // Each needs the next, in a circle.
    for (name, needs) in [("web", "api"), ("api", "store"), ("store", "web")] {
        let mut service = stage::elasti_service();
        service["metadata"]["name"] = json!(name);
        service["spec"]["service"] = json!(name);
        service["spec"]["scaleTargetRef"]["name"] = json!(name);
        service["spec"]["dependencies"] = json!([needs]);
        let (mut public, mut deployment) = (stage::public(), stage::deployment());
        public["metadata"]["name"] = json!(name);
        deployment["metadata"]["name"] = json!(name);
        if name != "web" {
            stage.create::<Service>(public).await;
            stage.create::<Deployment>(deployment).await;
        }
        stage.create::<ElastiService>(service).await;
    }
    stage.pass(MINUTE * 12).await;
    let replicas = async || {
        let mut all = Vec::new();
        for name in ["web", "api", "store"] {
            let deployment: Deployment = stage.get(name).await.unwrap();
            all.push(deployment.spec.unwrap().replicas.unwrap());
        }
        all
    };
    assert_eq!(replicas().await, [0, 0, 0]);
    stage
        .patch::<Deployment>("api", json!({"spec": {"replicas": 2}}))
        .await;
    stage.pass(SECOND * 2).await;
    assert_eq!(replicas().await, [1, 2, 1]);
    let cause = async |name: &str| {
        let service: ElastiService = stage.get(name).await.unwrap();
        service.status.unwrap().last_wake.unwrap().cause
    };
    assert_eq!(cause("api").await, "Scaled");
    assert_eq!(cause("store").await, "Needed");
    assert_eq!(cause("web").await, "Needed");
    // Once, and not for ever: each sleeps again in its time.
    stage.pass(MINUTE * 12).await;
    assert_eq!(replicas().await, [0, 0, 0]);
    let wake = json!({"metadata": {"annotations": {WAKE: stage.now().to_string()}}});
    stage.patch::<ElastiService>("web", wake).await;
    stage.pass(SECOND * 2).await;
    assert_eq!(replicas().await, [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn one_that_needs_nobody_known_says_so_until_that_one_comes() {
    let stage = Stage::open().await;
    let mut web = stage::elasti_service();
    web["spec"]["dependencies"] = json!(["api"]);
    stage.create::<ElastiService>(web).await;
    stage.pass(SECOND * 2).await;
    let unmatched = async || {
        let web: ElastiService = stage.get("web").await.unwrap();
        let conditions = web.status.unwrap().conditions;
        let found = conditions.into_iter().find(|it| it.type_ == "Unmatched");
        found.map(|it| it.status)
    };
    assert_eq!(unmatched().await.as_deref(), Some("True"));
    let mut api = stage::elasti_service();
    api["metadata"]["name"] = json!("api");
    api["spec"]["service"] = json!("api");
    stage.create::<ElastiService>(api).await;
    stage.pass(SECOND * 2).await;
    assert_eq!(unmatched().await.as_deref(), Some("False"));
    stage.delete::<ElastiService>("api").await;
    stage.pass(SECOND * 30).await;
    assert_eq!(unmatched().await.as_deref(), Some("True"));
}

#[tokio::test(start_paused = true)]
async fn of_two_that_name_one_service_the_elder_looks_after_it() {
    let stage = Stage::open().await;
    stage.declare().await;
    stage.pass(SECOND).await;
    let mut other = stage::elasti_service();
    other["metadata"]["name"] = json!("other");
    stage.create::<ElastiService>(other).await;
    stage.pass(SECOND * 5).await;
    let reason = async || {
        let other: ElastiService = stage.get("other").await.unwrap();
        let conditions = other.status.unwrap().conditions;
        conditions
            .into_iter()
            .find(|it| it.type_ == "Ready")
            .unwrap()
            .reason
    };
    assert_eq!(reason().await, "ServiceTaken");
    stage.delete::<ElastiService>("web").await;
    stage.pass(SECOND * 5).await;
    assert_eq!(reason().await, "Awake");
}
