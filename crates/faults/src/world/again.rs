//! Things that are deleted and made again at once, under the same names: whoever knows them by name
//! takes one for the other.

use neap_trial::{Deed, Node, Workload};
use neap_world::{deployment, endpoint_slice, endpoints, replica_set};
use serde_json::{Value, json};

use super::web;

const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";
const SERVICE: &str = "/api/v1/namespaces/default/services/web";

pub(super) fn workload() -> Workload {
    let another = [Deed::Delete(WEB), Deed::Create(web("Deployment", 2))];
    let service_too = [Deed::Delete(SERVICE), Deed::Create(service(9090))];
    Workload::new("again")
        .actor("controllers", |site| {
            Ok(vec![
                deployment::service(site)?,
                replica_set::service(site)?,
                endpoint_slice::service(site)?,
                endpoints::service(site)?,
            ])
        })
        .node(Node::default())
        .step(
            "create",
            [
                Deed::Create(web("Deployment", 1)),
                Deed::Create(service(8080)),
            ],
        )
        .step("make another of the same name", another)
        .step("change the template", [Deed::Patch(WEB, image("app:2"))])
        .step("make another service of the same name", service_too)
        .step("delete", [Deed::Delete(WEB), Deed::Delete(SERVICE)])
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
