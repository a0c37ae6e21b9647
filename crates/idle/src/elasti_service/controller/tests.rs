//! The controller against an API server in the test's own process. The tests themselves write what other
//! controllers of a cluster would write.

mod cluster;
mod failing;
mod metrics;
mod namespaces;
mod other_scalers;
mod repair;

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod, Service},
    discovery::v1::EndpointSlice,
};
use serde_json::json;

use self::cluster::{PRIVATE_NAME, SLICE, TestCluster};
use crate::api::{
    ElastiService, Mode,
    annotations::{OBSERVE_ONLY, OFF, WAKE},
};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test(start_paused = true)]
async fn a_service_sleeps_wakes_and_leaves_nothing_behind() {
    let cluster = TestCluster::open().await;
    cluster.declare().await;
    cluster.pass(SECOND).await;
    let web = cluster.status().await;
    assert_eq!(web.mode, Some(Mode::Serve));
    assert_eq!(web.ports[0].resolver_port, 20_000);
    let private: Service = cluster.get(PRIVATE_NAME).await.unwrap();
    assert_eq!(private.metadata.owner_references.unwrap()[0].name, "web");
    assert_eq!(cluster.replicas().await, 3);

    cluster.verdicts.idle();
    cluster.pass(MINUTE * 9).await;
    assert_eq!(cluster.replicas().await, 3, "the cooldown is not over");
    cluster.pass(MINUTE * 2).await;
    assert_eq!(cluster.replicas().await, 0);
    let web = cluster.status().await;
    assert_eq!(
        (web.mode, web.replicas_before),
        (Some(Mode::Proxy), Some(3))
    );
    let slice: EndpointSlice = cluster.get(SLICE).await.unwrap();
    assert_eq!(slice.endpoints.unwrap()[0].addresses, ["10.9.0.1"]);

    cluster.pods_are_ready(false).await;
    cluster.verdicts.busy();
    cluster.pass(SECOND).await;
    assert_eq!(cluster.replicas().await, 1);
    assert!(
        cluster.get::<EndpointSlice>(SLICE).await.is_some(),
        "no pod is ready"
    );
    cluster.pods_are_ready(true).await;
    cluster.pass(SECOND * 5).await;
    assert!(cluster.get::<EndpointSlice>(SLICE).await.is_none());
    let web = cluster.status().await;
    assert_eq!((web.mode, web.hand_off), (Some(Mode::Serve), None));
    assert_eq!(web.last_wake.unwrap().cause, "Busy");

    cluster.delete::<ElastiService>("web").await;
    cluster.pass(SECOND * 5).await;
    assert!(cluster.get::<ElastiService>("web").await.is_none());
    assert!(cluster.get::<Service>(PRIVATE_NAME).await.is_none());
    let freed: ConfigMap = cluster.get("neaptide-idle-freed-ports").await.unwrap();
    assert!(freed.data.unwrap().contains_key("20000"));
    // A freed port is not allotted again for a while.
    cluster.declare().await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(cluster.status().await.ports[0].resolver_port, 20_001);
    assert!(
        cluster.get::<Service>("web").await.is_some(),
        "never touched"
    );
}

#[tokio::test(start_paused = true)]
async fn no_pod_ends_without_a_proof_and_nothing_is_written_without_a_change() {
    let cluster = TestCluster::open().await;
    cluster.declare().await;
    cluster.prover.set(false);
    cluster.verdicts.idle();
    cluster.pass(MINUTE * 11).await;
    assert!(cluster.get::<EndpointSlice>(SLICE).await.is_some());
    assert_eq!(cluster.replicas().await, 3);
    let before = cluster.writes();
    cluster.pass(MINUTE * 30).await;
    assert_eq!(
        cluster.writes(),
        before,
        "what cannot be proved is not written"
    );
    assert_eq!(cluster.replicas().await, 3);
    cluster.prover.set(true);
    cluster.pass(SECOND * 10).await;
    assert_eq!(cluster.replicas().await, 0);
    let before = cluster.writes();
    cluster.pass(MINUTE * 90).await;
    assert_eq!(cluster.writes(), before, "asleep, nothing happens");
    // Three replicas did not run for an hour and a half.
    let shown = cluster.metrics();
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
async fn a_request_at_the_last_moment_keeps_the_pods() {
    let cluster = TestCluster::open().await;
    cluster.declare().await;
    cluster.verdicts.idle();
    // The last poll before the pods end reports a request.
    cluster.verdicts.busy_when_polled();
    cluster.pass(MINUTE * 11).await;
    assert_eq!(cluster.replicas().await, 3);
    assert_eq!(cluster.verdicts.polls(), 1);
}

#[tokio::test(start_paused = true)]
async fn services_wake_when_no_resolver_is_ready() {
    let cluster = TestCluster::asleep().await;
    cluster.resolvers(&[]).await;
    cluster.pass(SECOND * 9).await;
    assert_eq!(
        cluster.replicas().await,
        0,
        "resolvers may only be replaced"
    );
    cluster.resolvers(&["10.9.0.2"]).await;
    cluster.pass(SECOND * 9).await;
    cluster.resolvers(&[]).await;
    cluster.pass(SECOND * 9).await;
    assert_eq!(cluster.replicas().await, 0, "a second replacement");
    cluster.pass(SECOND * 2).await;
    assert_eq!(cluster.replicas().await, 1);
    let web: ElastiService = cluster.get("web").await.unwrap();
    let status = web.status.unwrap();
    assert_eq!(status.last_wake.unwrap().cause, "ResolverUnavailable");
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready");
    assert_eq!(ready.unwrap().reason, "ResolverUnavailable");
}

#[tokio::test(start_paused = true)]
async fn a_switch_on_the_namespace_wakes_its_services() {
    let cluster = TestCluster::asleep().await;
    cluster.on_namespace(json!({OFF: "true"})).await;
    cluster.pass(SECOND * 2).await;
    assert_eq!(cluster.replicas().await, 1);
}

#[tokio::test(start_paused = true)]
async fn annotations_of_the_namespace_wake_and_observe_its_services() {
    let cluster = TestCluster::asleep().await;
    let now = cluster.now().to_string();
    cluster.on_namespace(json!({WAKE: now})).await;
    cluster.pass(SECOND * 2).await;
    assert_eq!(cluster.replicas().await, 1);
    assert_eq!(
        cluster.status().await.last_wake.unwrap().cause,
        "WakeRequested"
    );
    cluster.pods_are_ready(true).await;
    cluster.on_namespace(json!({OBSERVE_ONLY: "true"})).await;
    cluster.pass(MINUTE * 30).await;
    assert_eq!(cluster.replicas().await, 1);
    let would = cluster.status().await.would_sleep.unwrap();
    assert_eq!(would.replicas, 1);
}

#[tokio::test(start_paused = true)]
async fn the_parts_of_a_wake_are_recorded() {
    let cluster = TestCluster::asleep().await;
    cluster.verdicts.busy();
    cluster.pass(SECOND).await;
    let woken = cluster.status().await.last_wake.unwrap().time;
    let at = |seconds| (woken + jiff::SignedDuration::from_secs(seconds)).to_string();
    let condition = |kind: &str, seconds| json!({"type": kind, "status": "True", "lastTransitionTime": at(seconds)});
    let pod = json!({
        "metadata": {"name": "web-1", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    });
    cluster.create::<Pod>(pod).await;
    let conditions = [condition("PodScheduled", 3), condition("Ready", 8)];
    cluster
        .patch_status::<Pod>("web-1", json!({"conditions": conditions}))
        .await;
    cluster.pods_are_ready(true).await;
    cluster.pass(SECOND * 10).await;
    let found = cluster.status().await.last_wake.unwrap().breakdown.unwrap();
    assert_eq!((found.schedule, found.ready), (3000, 5000));
    let before = cluster.writes();
    cluster.pass(MINUTE * 2).await;
    assert_eq!(cluster.writes(), before, "it is recorded once");
}

#[tokio::test(start_paused = true)]
async fn a_target_that_is_created_later_is_found() {
    let cluster = TestCluster::open().await;
    cluster.delete::<Deployment>("web").await;
    cluster.declare().await;
    cluster.pass(SECOND * 5).await;
    let ready = |status: crate::api::ElastiServiceStatus| {
        let found = status.conditions.into_iter().find(|it| it.type_ == "Ready");
        found.unwrap().reason
    };
    assert_eq!(ready(cluster.status().await), "TargetMissing");
    cluster.create::<Deployment>(cluster::deployment()).await;
    cluster.pass(SECOND).await;
    assert_eq!(ready(cluster.status().await), "Awake");
    cluster.delete::<Service>("web").await;
    cluster.pass(SECOND).await;
    assert_eq!(ready(cluster.status().await), "ServiceMissing");
    cluster.create::<Service>(cluster::public()).await;
    cluster.pass(SECOND).await;
    assert_eq!(ready(cluster.status().await), "Awake");
}

#[tokio::test(start_paused = true)]
async fn every_service_has_its_own_ports_until_none_is_free() {
    let cluster =
        TestCluster::open_with(|settings| settings.resolver_ports = "20000-20001".parse().unwrap())
            .await;
    for name in ["web", "api", "more"] {
        let mut service = cluster::elasti_service();
        service["metadata"]["name"] = json!(name);
        service["spec"]["service"] = json!(name);
        let mut public = cluster::public();
        public["metadata"]["name"] = json!(name);
        if name != "web" {
            cluster.create::<Service>(public).await;
        }
        cluster.create::<ElastiService>(service).await;
    }
    cluster.pass(SECOND * 5).await;
    let mut ports = Vec::new();
    let mut reasons = Vec::new();
    for name in ["web", "api", "more"] {
        let service: ElastiService = cluster.get(name).await.unwrap();
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
async fn a_target_without_its_service_is_woken_before_deletion() {
    let cluster = TestCluster::asleep().await;
    cluster.delete::<Service>("web").await;
    cluster.pass(SECOND).await;
    assert_eq!(cluster.replicas().await, 0);
    cluster.delete::<ElastiService>("web").await;
    cluster.pass(SECOND * 5).await;
    assert!(cluster.get::<ElastiService>("web").await.is_none());
    assert_eq!(cluster.replicas().await, 3);
}

#[tokio::test(start_paused = true)]
async fn dependencies_wake_however_a_service_is_woken() {
    let cluster = TestCluster::open().await;
    cluster.verdicts.idle();
    // One pod is behind all three.
    let ready = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    cluster.pod(ready).await;
    // Each depends on the next, in a cycle.
    for (name, needs) in [("web", "api"), ("api", "store"), ("store", "web")] {
        let mut service = cluster::elasti_service();
        service["metadata"]["name"] = json!(name);
        service["spec"]["service"] = json!(name);
        service["spec"]["scaleTargetRef"]["name"] = json!(name);
        service["spec"]["dependencies"] = json!([needs]);
        let (mut public, mut deployment) = (cluster::public(), cluster::deployment());
        public["metadata"]["name"] = json!(name);
        deployment["metadata"]["name"] = json!(name);
        if name != "web" {
            cluster.create::<Service>(public).await;
            cluster.create::<Deployment>(deployment).await;
        }
        cluster.create::<ElastiService>(service).await;
    }
    cluster.pass(MINUTE * 12).await;
    let replicas = async || {
        let mut all = Vec::new();
        for name in ["web", "api", "store"] {
            let deployment: Deployment = cluster.get(name).await.unwrap();
            all.push(deployment.spec.unwrap().replicas.unwrap());
        }
        all
    };
    assert_eq!(replicas().await, [0, 0, 0]);
    cluster
        .patch::<Deployment>("api", json!({"spec": {"replicas": 2}}))
        .await;
    cluster.pass(SECOND * 2).await;
    assert_eq!(replicas().await, [1, 2, 1]);
    let cause = async |name: &str| {
        let service: ElastiService = cluster.get(name).await.unwrap();
        service.status.unwrap().last_wake.unwrap().cause
    };
    assert_eq!(cause("api").await, "Scaled");
    assert_eq!(cause("store").await, "needed by api");
    assert_eq!(cause("web").await, "needed by api");
    // Each sleeps again after its cooldown.
    cluster.pass(MINUTE * 12).await;
    assert_eq!(replicas().await, [0, 0, 0]);
    let wake = json!({"metadata": {"annotations": {WAKE: cluster.now().to_string()}}});
    cluster.patch::<ElastiService>("web", wake).await;
    cluster.pass(SECOND * 2).await;
    assert_eq!(replicas().await, [1, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_dependency_is_reported_until_it_exists() {
    let cluster = TestCluster::open().await;
    let mut web = cluster::elasti_service();
    web["spec"]["dependencies"] = json!(["api"]);
    cluster.create::<ElastiService>(web).await;
    cluster.pass(SECOND * 2).await;
    let unresolved = async || {
        let web: ElastiService = cluster.get("web").await.unwrap();
        let conditions = web.status.unwrap().conditions;
        let found = conditions
            .into_iter()
            .find(|it| it.type_ == "UnresolvedReferences");
        found.map(|it| it.status)
    };
    assert_eq!(unresolved().await.as_deref(), Some("True"));
    let mut api = cluster::elasti_service();
    api["metadata"]["name"] = json!("api");
    api["spec"]["service"] = json!("api");
    cluster.create::<ElastiService>(api).await;
    cluster.pass(SECOND * 2).await;
    assert_eq!(unresolved().await.as_deref(), Some("False"));
    cluster.delete::<ElastiService>("api").await;
    cluster.pass(SECOND * 30).await;
    assert_eq!(unresolved().await.as_deref(), Some("True"));
}

#[tokio::test(start_paused = true)]
async fn of_two_for_one_service_the_older_is_responsible() {
    let cluster = TestCluster::open().await;
    cluster.declare().await;
    cluster.pass(SECOND).await;
    let mut other = cluster::elasti_service();
    other["metadata"]["name"] = json!("other");
    cluster.create::<ElastiService>(other).await;
    cluster.pass(SECOND * 5).await;
    let reason = async || {
        let other: ElastiService = cluster.get("other").await.unwrap();
        let conditions = other.status.unwrap().conditions;
        conditions
            .into_iter()
            .find(|it| it.type_ == "Ready")
            .unwrap()
            .reason
    };
    assert_eq!(reason().await, "ServiceTaken");
    cluster.delete::<ElastiService>("web").await;
    cluster.pass(SECOND * 5).await;
    assert_eq!(reason().await, "Awake");
}
