//! Kinds of other projects, without a schema: whatever is written to them is stored.

use anyhow::Result;
use serde_json::json;

use super::environment;
use crate::client::Connection;

pub(super) async fn define(
    api: &mut Connection,
    group: &str,
    version: &str,
    kind: &str,
) -> Result<()> {
    let singular = kind.to_ascii_lowercase();
    let plural = format!("{singular}s");
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": singular},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    environment::create(api, path, &definition).await?;
    Ok(())
}
