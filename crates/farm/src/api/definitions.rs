//! The definitions of the five kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps,
};
use kube::CustomResourceExt;
use serde_json::json;

use super::{
    BuildbarnBrowser, BuildbarnFrontend, BuildbarnScheduler, BuildbarnStorage, BuildbarnWorker,
};

/// The definitions of the five kinds. A new object has the state Creating from the start: no operator has
/// to write what is true of every new object. All settings have defaults, so an object needs no spec.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let mut all = vec![
        BuildbarnScheduler::crd(),
        BuildbarnWorker::crd(),
        BuildbarnStorage::crd(),
        BuildbarnFrontend::crd(),
        BuildbarnBrowser::crd(),
    ];
    for definition in &mut all {
        for version in &mut definition.spec.versions {
            let schema = version.schema.as_mut();
            let Some(root) = schema.and_then(|it| it.open_api_v3_schema.as_mut()) else {
                continue;
            };
            if let Some(spec) = property(root, "spec") {
                spec.default = Some(JSON(json!({})));
            }
            root.required = None;
            if let Some(status) = property(root, "status") {
                status.nullable = None;
                let default = json!({"state": "Creating", "replicas": 0, "readyReplicas": 0});
                status.default = Some(JSON(default));
            }
        }
    }
    all
}

fn property<'a>(root: &'a mut JSONSchemaProps, name: &str) -> Option<&'a mut JSONSchemaProps> {
    root.properties.as_mut()?.get_mut(name)
}
