//! A Service whose pods come, go and change, and whose port and selector do.

use neap_trial::{UserRequest, Workload};
use neap_world::{endpoint_slice, endpoints};
use serde_json::{Value, json};

const WEB: &str = "/api/v1/namespaces/default/services/web";
const A: &str = "/api/v1/namespaces/default/pods/a";
const A_STATUS: &str = "/api/v1/namespaces/default/pods/a/status";
const B_STATUS: &str = "/api/v1/namespaces/default/pods/b/status";
const C_STATUS: &str = "/api/v1/namespaces/default/pods/c/status";

pub(super) fn workload() -> Workload {
    let first = [
        UserRequest::Create(pod("a")),
        is(A_STATUS, "10.1.0.1", true),
    ];
    let more = [
        UserRequest::Create(pod("b")),
        UserRequest::Create(pod("c")),
        is(B_STATUS, "10.1.0.2", true),
        is(C_STATUS, "10.1.0.3", false),
    ];
    Workload::new("service")
        .actor("controllers", |context| {
            let slices = endpoint_slice::component(context)?;
            Ok(vec![slices, endpoints::component(context)?])
        })
        .step("create", [UserRequest::Create(web())])
        .step("a pod comes", first)
        .step("two more come", more)
        .step("the last gets ready", [is(C_STATUS, "10.1.0.3", true)])
        .step("one fails", [is(B_STATUS, "10.1.0.2", false)])
        .step("change the port", [UserRequest::Patch(WEB, port(9090))])
        .step("one goes", [UserRequest::Delete(A)])
        .step(
            "select others",
            [UserRequest::Patch(WEB, selector("other"))],
        )
        .step(
            "select the same again",
            [UserRequest::Patch(WEB, selector("web"))],
        )
        .step("delete", [UserRequest::Delete(WEB)])
}

pub(crate) fn web() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
    })
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": "app"}]},
    })
}

/// The status that a node would write.
fn is(status: &'static str, address: &str, ready: bool) -> UserRequest {
    let ready = if ready { "True" } else { "False" };
    let status_of = json!({
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": ready}],
    });
    UserRequest::Patch(status, json!({"status": status_of}))
}

fn port(target: u16) -> Value {
    json!({"spec": {"ports": [{"name": "http", "port": 80, "targetPort": target}]}})
}

fn selector(app: &str) -> Value {
    json!({"spec": {"selector": {"app": app}}})
}
