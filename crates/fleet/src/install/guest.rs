//! What steps read and write in an installed cluster. What is read becomes a pure decision.

use kube::{ResourceExt, api::DynamicObject};
use neap_kit::operation::Progress;
use serde_json::{Value, json};

use super::kinds::{
    CLUSTER_OPERATOR, CLUSTER_VERSION, CONSOLE, INGRESS_CONTROLLER, MACHINE, NODE, OPERATOR_HUB,
    SAMPLES, SECRET, STORAGE_CLASS,
};
use crate::{
    cluster_api::{ApiError, ClusterApi, condition},
    documents::text,
};

/// The parts whose settling ends an installation.
const SETTLED: [&str; 5] = [
    "kube-controller-manager",
    "kube-apiserver",
    "kube-scheduler",
    "console",
    "authentication",
];
/// The least number of workers with which a cluster is usable.
const MIN_WORKERS: usize = 2;

type Read = Result<Progress, ApiError>;

fn not_yet(why: impl Into<String>) -> Progress {
    Progress::NotYet(why.into())
}

/// Whether a ClusterOperator is available and rests.
fn settled(operator: Option<&DynamicObject>, name: &str) -> Progress {
    let Some(operator) = operator else {
        return not_yet(format!("there is no ClusterOperator {name}"));
    };
    let available = condition(operator, "Available");
    let progressing = condition(operator, "Progressing");
    match (available, progressing) {
        (Some("True"), Some("False")) => Progress::Done,
        (Some("True"), _) => not_yet(format!("ClusterOperator {name} is progressing")),
        _ => not_yet(format!("ClusterOperator {name} is not available")),
    }
}

async fn operator_settled(api: &ClusterApi, name: &str) -> Read {
    let operator = api.get(&CLUSTER_OPERATOR, "", name).await?;
    Ok(settled(operator.as_ref(), name))
}

pub(super) async fn api_servers_ready(api: &ClusterApi) -> Read {
    operator_settled(api, "kube-apiserver").await
}

pub(super) async fn cluster_operators_settled(api: &ClusterApi) -> Read {
    for name in SETTLED {
        let state = operator_settled(api, name).await?;
        if state != Progress::Done {
            return Ok(state);
        }
    }
    Ok(Progress::Done)
}

pub(super) async fn ingress_ready(api: &ClusterApi) -> Read {
    operator_settled(api, "ingress").await
}

pub(super) async fn console_ready(api: &ClusterApi) -> Read {
    operator_settled(api, "console").await
}

pub(super) async fn console_exists(api: &ClusterApi) -> Read {
    let console = api.get(&CONSOLE, "", "cluster").await?;
    Ok(console.map_or_else(|| not_yet("there is no console"), |_| Progress::Done))
}

pub(super) async fn version_ready(api: &ClusterApi) -> Read {
    let version = api.get(&CLUSTER_VERSION, "", "version").await?;
    let is_available = version.is_some_and(|it| condition(&it, "Available") == Some("True"));
    Ok(if is_available {
        Progress::Done
    } else {
        not_yet("the ClusterVersion is not available")
    })
}

/// Why machines will never run: the error that customers can act on.
pub(super) fn machine_failure(machine: &DynamicObject) -> Option<String> {
    let status = &machine.data["status"];
    let message = text(status, "/errorMessage");
    let is_quota = ["quota", "sku", "not available in location"]
        .iter()
        .any(|word| message.to_lowercase().contains(word));
    (text(status, "/phase") == "Failed" && is_quota).then(|| message.to_owned())
}

/// Whether enough workers run; an error text if they never will.
pub(super) async fn workers_ready(api: &ClusterApi) -> Result<Result<Progress, String>, ApiError> {
    let machines = api.list(&MACHINE, "openshift-machine-api").await?;
    if let Some(message) = machines.iter().find_map(machine_failure) {
        return Ok(Err(message));
    }
    let is_worker = |machine: &&DynamicObject| {
        machine
            .labels()
            .get("machine.openshift.io/cluster-api-machine-role")
            == Some(&"worker".to_owned())
    };
    let running = machines
        .iter()
        .filter(is_worker)
        .filter(|it| text(&it.data, "/status/phase") == "Running")
        .count();
    let nodes = api.list(&NODE, "").await?;
    let ready = nodes
        .iter()
        .filter(|node| node.labels().contains_key("node-role.kubernetes.io/worker"))
        .filter(|node| condition(node, "Ready") == Some("True"))
        .count();
    Ok(Ok(if running >= MIN_WORKERS && ready >= MIN_WORKERS {
        Progress::Done
    } else {
        not_yet(format!(
            "{running} worker machines run and {ready} worker nodes are ready, of {MIN_WORKERS} each"
        ))
    }))
}

/// Merges `patch` into an object that the cluster made; waits for it until it is there.
async fn change(
    api: &ClusterApi,
    kind: &crate::cluster_api::Kind,
    name: &str,
    patch: Value,
) -> Read {
    let Some(found) = api.get(kind, "", name).await? else {
        return Ok(not_yet(format!("there is no {} {name}", kind.kind)));
    };
    api.merge(kind, &found, patch).await?;
    Ok(Progress::Done)
}

pub(super) async fn brand_console(api: &ClusterApi) -> Read {
    let patch = json!({"spec": {"customization": {"brand": "azure"}}});
    change(api, &CONSOLE, "cluster", patch).await
}

pub(super) async fn disable_samples(api: &ClusterApi) -> Read {
    let patch = json!({"spec": {"managementState": "Removed"}});
    change(api, &SAMPLES, "cluster", patch).await
}

pub(super) async fn disable_operator_hub(api: &ClusterApi) -> Read {
    let sources = ["certified-operators", "redhat-operators"];
    let sources = sources.map(|name| json!({"name": name, "disabled": true}));
    change(
        api,
        &OPERATOR_HUB,
        "cluster",
        json!({"spec": {"sources": sources}}),
    )
    .await
}

pub(super) async fn disable_updates(api: &ClusterApi) -> Read {
    let patch = json!({"spec": {"upstream": null, "channel": null}});
    change(api, &CLUSTER_VERSION, "version", patch).await
}

/// Makes the storage class that encrypts with the cluster's own key the default.
pub(super) async fn default_storage_class(api: &ClusterApi, set: &str) -> Read {
    const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
    if let Some(stock) = api.get(&STORAGE_CLASS, "", "managed-csi").await? {
        let patch = json!({"metadata": {"annotations": {DEFAULT: "false"}}});
        api.merge(&STORAGE_CLASS, &stock, patch).await?;
    }
    let class = json!({
        "apiVersion": STORAGE_CLASS.api_version,
        "kind": STORAGE_CLASS.kind,
        "metadata": {"name": "managed-csi-encrypted-cmk", "annotations": {DEFAULT: "true"}},
        "provisioner": "disk.csi.azure.com",
        "parameters": {"skuname": "Premium_LRS", "kind": "Managed", "diskEncryptionSetID": set},
        "reclaimPolicy": "Delete",
        "allowVolumeExpansion": true,
        "volumeBindingMode": "WaitForFirstConsumer",
    });
    api.ensure(&STORAGE_CLASS, class).await?;
    Ok(Progress::Done)
}

/// The service principal, where the cloud credential operator finds it.
pub(super) async fn update_credentials(api: &ClusterApi, data: Value) -> Read {
    let secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": "kube-system", "name": "azure-credentials"},
        "data": data,
    });
    api.ensure(&SECRET, secret).await?;
    Ok(Progress::Done)
}

/// The address of the default ingress, if the cluster says it.
pub(super) async fn ingress_domain(api: &ClusterApi) -> Result<String, ApiError> {
    let found = api
        .get(&INGRESS_CONTROLLER, "openshift-ingress-operator", "default")
        .await?;
    Ok(found.map_or_else(String::new, |it| {
        text(&it.data, "/status/domain").to_owned()
    }))
}
