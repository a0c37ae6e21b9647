//! Objects that are deleted and immediately created again under the same name: a controller that
//! identifies them by name mistakes one for the other.

use neap_trial::{Node, UserRequest, Workload};
use neap_world::{deployment, endpoint_slice, endpoints, replica_set};
use serde_json::{Value, json};

use super::web;

const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const SERVICE: &str = "/api/v1/namespaces/default/services/web";

pub(super) fn workload() -> Workload {
    let another = [
        UserRequest::Delete(WEB),
        UserRequest::Create(web("Deployment", 2)),
    ];
    let service_too = [
        UserRequest::Delete(SERVICE),
        UserRequest::Create(service(9090)),
    ];
    Workload::new("again")
        .actor("controllers", |context| {
            Ok(vec![
                deployment::component(context)?,
                replica_set::component(context)?,
                endpoint_slice::component(context)?,
                endpoints::component(context)?,
            ])
        })
        .node(Node::default())
        .step(
            "create",
            [
                UserRequest::Create(web("Deployment", 1)),
                UserRequest::Create(service(8080)),
            ],
        )
        .step("make another of the same name", another)
        .step(
            "change the template",
            [UserRequest::Patch(WEB, image("app:2"))],
        )
        .step("make another service of the same name", service_too)
        .step(
            "delete",
            [UserRequest::Delete(WEB), UserRequest::Delete(SERVICE)],
        )
}

fn service(port: u16) -> Value {
    let port = json!({"name": "http", "port": 80, "targetPort": port});
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}, "ports": [port]},
    })
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}
