//! Services whose pods do not become ready, as a user sees them: in `status`, `explain`, `idle list`, `idle show`
//! and in the answer that a client gets.

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Event, Service},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use neap_idle::api::ElastiService;
use serde_json::{Value, json};

use super::{
    contains,
    idle_server::{IdleServer, POLL_INTERVAL, WAIT_TIMEOUT},
    replicas,
};

/// A cause, the change of the pod template that has it, and what users and clients read.
struct Broken {
    reason: &'static str,
    template: Value,
    for_users: &'static str,
    for_clients: &'static str,
}

fn container(change: &Value) -> Value {
    let mut container = json!({"name": "hello"});
    for (field, value) in change.as_object().unwrap() {
        container[field] = value.clone();
    }
    json!({"containers": [container]})
}

fn broken() -> [Broken; 4] {
    [
        Broken {
            reason: "ImagePullBackOff",
            template: container(&json!({"image": "example.com/none:1"})),
            for_users: "the image example.com/none:1 of the container hello cannot be pulled",
            for_clients: "an image of its pods cannot be pulled",
        },
        Broken {
            reason: "CrashLoopBackOff",
            template: container(&json!({"args": ["sample", "nothing"]})),
            for_users: "the container hello crashes again and again: it exited with code 2",
            for_clients: "a container of its pods crashes again and again",
        },
        Broken {
            reason: "Unschedulable",
            template: json!({"nodeSelector": {"disk": "none"}}),
            for_users: "it cannot be scheduled: 0/1 nodes are available",
            for_clients: "no node takes its pods",
        },
        Broken {
            reason: "ProbeFailing",
            template: container(&json!({
                "readinessProbe": {"httpGet": null, "tcpSocket": {"port": 8099}},
            })),
            for_users: "the container hello runs, and its readiness probe has not succeeded",
            for_clients: "a probe of its pods does not succeed",
        },
    ]
}

async fn deployment(server: &IdleServer) -> Api<Deployment> {
    Api::namespaced(server.client().await, "default")
}

/// Changes the template of the pods while none runs.
async fn change(server: &IdleServer, pod: &Value) {
    let patch = Patch::Strategic(json!({"spec": {"template": {"spec": pod}}}));
    let parameters = PatchParams::default();
    let deployments = deployment(server).await;
    deployments
        .patch("hello", &parameters, &patch)
        .await
        .unwrap();
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one broken service through all commands"
)]
async fn a_wake_that_fails_is_told_everywhere_with_the_reason_of_the_pod() {
    let server = IdleServer::up();
    server.apply_example().await;
    let healthy = deployment(&server).await.get("hello").await.unwrap();
    let healthy = healthy.spec.unwrap().template;
    let services: Api<ElastiService> = Api::namespaced(server.client().await, "default");
    let deadline = Patch::Merge(json!({"spec": {"deadlineSeconds": 12}}));
    let parameters = PatchParams::default();
    services
        .patch("hello", &parameters, &deadline)
        .await
        .unwrap();
    for one in broken() {
        contains(&server.neap("idle sleep hello --wait 2m"), &["is asleep"]);
        contains(
            &server.neap("explain deployment/hello"),
            &["it sleeps, by ElastiService hello"],
        );
        change(&server, &one.template).await;

        let answer = server.get("hello", 8080).await;
        assert!(answer.starts_with("HTTP/1.1 504 "), "{answer}");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let body: Value = serde_json::from_str(body).unwrap();
        let cause = json!({"reason": one.reason, "message": one.for_clients});
        assert_eq!(body["cause"], cause, "{body}");

        let show = server.shows(|show| show["state"] == "failed").await;
        assert_eq!(show["notReady"]["reason"], one.reason, "{show}");
        let told = [
            "WakeFailed: no pod became ready after its last wake",
            one.for_users,
        ];
        contains(
            &server.neap("idle show hello"),
            &["default/hello is failed"],
        );
        contains(&server.neap("idle show hello"), &told);
        contains(&server.neap("idle list"), &["failed"]);
        contains(&server.neap("idle list"), &told);
        contains(&server.neap("explain elastiservice/hello"), &told);
        let summary = format!("failed ({})", one.reason);
        contains(&server.neap("explain elastiservice/hello"), &[&summary]);
        let status = server.neap("status");
        assert!(status.stdout.contains(&summary), "{status:?}");
        assert!(status.stdout.contains(one.for_users), "{status:?}");
        let explained = server.neap("explain deployment/hello");
        let named = "its ElastiService hello is failed";
        assert!(explained.stdout.contains(named), "{explained:?}");
        assert_eq!(replicas(&server).await, 1, "it stays as it is");

        let template = serde_json::to_value(&healthy).unwrap();
        let repaired = Patch::Json::<()>(
            serde_json::from_value(json!([
                {"op": "replace", "path": "/spec/template", "value": template},
            ]))
            .unwrap(),
        );
        let deployments = deployment(&server).await;
        deployments
            .patch("hello", &parameters, &repaired)
            .await
            .unwrap();
        server.shows(|show| show["state"] == "awake").await;
    }
    server.stop();
}

/// The pod template of the example with the change that breaks it.
fn broken_pod(change: &Value) -> Value {
    let mut pod = json!({"containers": [{
        "name": "hello", "image": "neaptide/neap", "args": ["sample", "serve"],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
    }]});
    for (field, value) in change.as_object().unwrap() {
        if field == "containers" {
            for (field, value) in value[0].as_object().unwrap() {
                pod["containers"][0][field] = value.clone();
            }
        } else {
            pod[field] = value.clone();
        }
    }
    pod
}

/// Creates a Deployment with such pods and its Service, whose annotations are `annotations`.
async fn create(server: &IdleServer, name: &str, change: &Value, annotations: &Value) {
    let client = server.client().await;
    let labels = json!({"app": name});
    let deployment = json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": broken_pod(change)},
        },
    });
    let service = json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"selector": labels, "ports": [{"port": 8080}]},
    });
    let parameters = PostParams::default();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let services: Api<Service> = Api::namespaced(client, "default");
    let object = serde_json::from_value(deployment).unwrap();
    deployments.create(&parameters, &object).await.unwrap();
    let object = serde_json::from_value(service).unwrap();
    services.create(&parameters, &object).await.unwrap();
}

/// Lets the service sleep by an ElastiService.
async fn create_elasti_service(server: &IdleServer, name: &str) {
    let elasti_service = json!({
        "metadata": {"name": name},
        "spec": {
            "service": name, "cooldownPeriod": 1, "triggers": [{"type": "requests"}],
            "deadlineSeconds": 12,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        },
    });
    let services: Api<ElastiService> = Api::namespaced(server.client().await, "default");
    let object = serde_json::from_value(elasti_service).unwrap();
    services
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
}

/// What users read of a service whose pods were never ready. Its clients are refused: nothing answers for it.
async fn is_told_everywhere(server: &IdleServer, name: &str, one: &Broken) {
    let show = server
        .shows_of(name, |show| show["state"] == "failed")
        .await;
    assert_eq!(show["notReady"]["reason"], one.reason, "{show}");
    assert_eq!(show["savedReplicaSeconds"], 0, "{show}");
    let told = ["PodsFailing: no pod is ready", one.for_users];
    let failed = format!("default/{name} is failed");
    contains(&server.neap(&format!("idle show {name}")), &[&failed]);
    contains(&server.neap(&format!("idle show {name}")), &told);
    contains(&server.neap("idle list"), &told);
    let summary = format!("failed ({})", one.reason);
    let explained = server.neap(&format!("explain elastiservice/{name}"));
    contains(&explained, &told);
    contains(&explained, &[&summary]);
    let status = server.neap("status");
    assert!(status.stdout.contains(&summary), "{status:?}");
    assert!(status.stdout.contains(one.for_users), "{status:?}");
    let explained = server.neap(&format!("explain deployment/{name}"));
    let named = format!("its ElastiService {name} is failed");
    assert!(explained.stdout.contains(&named), "{explained:?}");

    // Resolvers stand in for a service that sleeps; this one has no pod and does not sleep.
    assert_eq!(server.get(name, 8080).await, "", "{name}");
}

#[tokio::test]
async fn a_service_that_was_never_ready_is_told_everywhere_and_does_not_sleep() {
    let server = IdleServer::up();
    server.neap_once_served("idle list");
    let names = ["image", "crash", "scheduling", "probe"];
    let all: Vec<_> = names.into_iter().zip(broken()).collect();
    for (name, one) in &all {
        create(&server, name, &one.template, &json!({})).await;
        create_elasti_service(&server, name).await;
    }
    let told = all
        .iter()
        .map(|(name, one)| is_told_everywhere(&server, name, one));
    futures::future::join_all(told).await;
    // The cooldown of a second is over for each of them.
    let deployments = deployment(&server).await;
    for name in names {
        let target = deployments.get(name).await.unwrap();
        assert_eq!(target.spec.unwrap().replicas, Some(1), "{name}");
    }
    server.stop();
}

/// The messages of the Events `NotRestored` about an object.
async fn not_restored(server: &IdleServer, kind: &str, name: &str) -> Vec<String> {
    let events: Api<Event> = Api::namespaced(server.client().await, "default");
    let selected = format!("involvedObject.kind={kind},involvedObject.name={name}");
    let events = events.list(&ListParams::default().fields(&selected)).await;
    let events = events.unwrap().items.into_iter();
    let events = events.filter(|event| event.reason.as_deref() == Some("NotRestored"));
    events.filter_map(|event| event.message).collect()
}

#[tokio::test]
async fn what_is_left_of_a_service_that_was_never_ready_is_told_when_it_is_removed() {
    let server = IdleServer::up();
    server.neap_once_served("idle list");
    let [image, crash, ..] = broken();
    let enabled = json!({"idle.neaptide.dev/enabled": "true"});
    create(&server, "declared", &image.template, &json!({})).await;
    create_elasti_service(&server, "declared").await;
    create(&server, "annotated", &crash.template, &enabled).await;
    server.is_created("annotated").await;
    for name in ["declared", "annotated"] {
        let is_failed = |show: &Value| show["state"] == "failed";
        server.shows_of(name, is_failed).await;
    }
    let client = server.client().await;
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    let elasti_services: Api<ElastiService> = Api::namespaced(client, "default");
    let parameters = DeleteParams::default();
    elasti_services
        .delete("declared", &parameters)
        .await
        .unwrap();
    let removed =
        Patch::Merge(json!({"metadata": {"annotations": {"idle.neaptide.dev/enabled": null}}}));
    let parameters = PatchParams::default();
    services
        .patch("annotated", &parameters, &removed)
        .await
        .unwrap();
    let gone = async {
        for name in ["declared", "annotated"] {
            while elasti_services.get_opt(name).await.unwrap().is_some() {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, gone).await.unwrap();
    for (kind, name, one) in [
        ("ElastiService", "declared", &image),
        ("ElastiService", "annotated", &crash),
        ("Service", "annotated", &crash),
    ] {
        let left = format!("Deployment {name} has 1 replicas and no ready pod: pod {name}-");
        let told = not_restored(&server, kind, name).await;
        assert!(
            matches!(told.as_slice(), [one_event] if one_event.contains(&left) && one_event.contains(one.for_users)),
            "{kind} {name}: {told:?}"
        );
        let target = deployment(&server).await.get(name).await.unwrap();
        assert_eq!(target.spec.unwrap().replicas, Some(1), "{name}");
    }
    server.stop();
}
