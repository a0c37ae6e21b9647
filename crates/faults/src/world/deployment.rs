//! A web server that is rolled out, scaled, changed and deleted.

use neap_trial::{Deed, Node, Workload};
use neap_world::{deployment, replica_set};
use serde_json::{Value, json};

use super::web;

const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";

pub(super) fn workload() -> Workload {
    Workload::new("deployment")
        .actor("controllers", |site| {
            Ok(vec![
                deployment::service(site)?,
                replica_set::service(site)?,
            ])
        })
        .node(Node::default())
        .step("create", [Deed::Create(web("Deployment", 1))])
        .step("scale up", [scale(2)])
        .step("change the template", [Deed::Patch(WEB, image("app:2"))])
        .step("scale down", [scale(1)])
        .step("delete", [Deed::Delete(WEB)])
}

fn scale(replicas: u32) -> Deed {
    Deed::Patch(WEB, json!({"spec": {"replicas": replicas}}))
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}
