//! Services whose pods do not become ready, as a user sees them: in `status`, `explain`, `idle list`, `idle show`
//! and in the answer that a client gets.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use neap_idle::api::ElastiService;
use serde_json::{Value, json};

use super::{contains, idle_server::IdleServer, replicas};

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

#[tokio::test]
async fn a_service_that_was_never_ready_is_failed_and_does_not_sleep() {
    let server = IdleServer::up();
    server.apply_example().await;
    let client = server.client().await;
    let labels = json!({"app": "never"});
    let deployment = json!({
        "metadata": {"name": "never"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "never", "image": "example.com/none:1"}]},
            },
        },
    });
    let service = json!({
        "metadata": {"name": "never"},
        "spec": {"selector": labels, "ports": [{"port": 8080}]},
    });
    let elasti_service = json!({
        "metadata": {"name": "never"},
        "spec": {
            "service": "never", "cooldownPeriod": 1, "triggers": [{"type": "requests"}],
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "never"},
        },
    });
    let parameters = PostParams::default();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    let elasti_services: Api<ElastiService> = Api::namespaced(client, "default");
    let object = serde_json::from_value(deployment).unwrap();
    deployments.create(&parameters, &object).await.unwrap();
    let object = serde_json::from_value(service).unwrap();
    services.create(&parameters, &object).await.unwrap();
    let object = serde_json::from_value(elasti_service).unwrap();
    elasti_services.create(&parameters, &object).await.unwrap();
    // The example has a longer cooldown, so the other one would be asleep by then.
    server.shows(|show| show["state"] == "asleep").await;
    let show = server.json("idle show never");
    assert_eq!(show["state"], "failed", "{show}");
    assert_eq!(show["notReady"]["reason"], "ImagePullBackOff", "{show}");
    assert_eq!(show["savedReplicaSeconds"], 0, "{show}");
    contains(
        &server.neap("idle list"),
        &["PodsFailing: no pod is ready: pod never-"],
    );
    let never = deployments.get("never").await.unwrap();
    assert_eq!(never.spec.unwrap().replicas, Some(1));
    // It goes within a minute, and what is left is told.
    let parameters = kube::api::DeleteParams::default();
    elasti_services.delete("never", &parameters).await.unwrap();
    let gone = async {
        while elasti_services.get_opt("never").await.unwrap().is_some() {
            tokio::time::sleep(super::idle_server::POLL_INTERVAL).await;
        }
    };
    let limit = super::idle_server::WAIT_TIMEOUT;
    tokio::time::timeout(limit, gone).await.unwrap();
    server.stop();
}
