//! A web server that is rolled out, scaled, changed and deleted.

use neap_trial::{Node, UserRequest, Workload};
use neap_world::{deployment, replica_set};
use serde_json::{Value, json};

use super::web;

const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";

pub(super) fn workload() -> Workload {
    Workload::new("deployment")
        .actor("controllers", |context| {
            Ok(vec![
                deployment::component(context)?,
                replica_set::component(context)?,
            ])
        })
        .node(Node::default())
        .step("create", [UserRequest::Create(web("Deployment", 1))])
        .step("scale up", [scale(2)])
        .step(
            "change the template",
            [UserRequest::Patch(WEB, image("app:2"))],
        )
        .step("scale down", [scale(1)])
        .step("delete", [UserRequest::Delete(WEB)])
}

fn scale(replicas: u32) -> UserRequest {
    UserRequest::Patch(WEB, json!({"spec": {"replicas": replicas}}))
}

fn image(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}
