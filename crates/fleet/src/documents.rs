//! The documents of the provider: their collections, their fields, and which of them are secure.
//!
//! A document is JSON throughout: what a program does not know stays when it writes, at every level. The
//! names here are a contract, because programs of several versions share documents.

use neap_store::{DocumentKey, Partition, SecureFields, UniqueKey};
use serde_json::{Value, json};

use crate::resource_id::ClusterId;

/// Clusters. The id is the key: the lower-case resource id.
pub const CLUSTERS: &str = "OpenShiftClusters";
/// Asynchronous operations.
pub const OPERATIONS: &str = "AsyncOperations";
/// Timelines of operations, with the id of the operation.
pub const TIMELINES: &str = "OperationTimelines";
/// Subscriptions.
pub const SUBSCRIPTIONS: &str = "Subscriptions";
/// Versions that can be installed.
pub const VERSIONS: &str = "OpenShiftVersions";
/// Role sets of workload identities.
pub const ROLE_SETS: &str = "PlatformWorkloadIdentityRoleSets";
/// Billing records.
pub const BILLING: &str = "Billing";

/// The queue of clusters that need work, and of subscriptions.
pub const QUEUE: &str = "work";

/// How long an operation can be asked for after its end, in milliseconds.
pub const OPERATION_TTL: i64 = 7 * 24 * 3_600_000;

/// The secure fields of all collections.
pub const SECURE: &[SecureFields] = &[
    SecureFields {
        collection: CLUSTERS,
        paths: &[
            "/openShiftCluster/properties/clusterProfile/pullSecret",
            "/openShiftCluster/properties/clusterProfile/boundServiceAccountSigningKey",
            "/openShiftCluster/properties/servicePrincipalProfile/clientSecret",
            "/openShiftCluster/properties/sshKey",
            "/openShiftCluster/properties/adminKubeconfig",
            "/openShiftCluster/properties/aroServiceKubeconfig",
            "/openShiftCluster/properties/aroSREKubeconfig",
            "/openShiftCluster/properties/kubeadminPassword",
            "/openShiftCluster/properties/userAdminKubeconfig",
            "/openShiftCluster/properties/registryProfiles/*/password",
        ],
    },
    // A snapshot keeps what it was taken from: sealed for another document, it is taken without secrets.
];

/// The paths of secure members below `openShiftCluster`.
const SECRETS: &[&str] = &[
    "/properties/clusterProfile/pullSecret",
    "/properties/clusterProfile/boundServiceAccountSigningKey",
    "/properties/servicePrincipalProfile/clientSecret",
    "/properties/sshKey",
    "/properties/adminKubeconfig",
    "/properties/aroServiceKubeconfig",
    "/properties/aroSREKubeconfig",
    "/properties/kubeadminPassword",
    "/properties/userAdminKubeconfig",
    "/properties/registryProfiles",
];

/// The cluster in a document, without its secrets.
pub fn without_secrets(cluster: &Value) -> Value {
    let mut cluster = cluster.clone();
    for path in SECRETS {
        let Some((parent, name)) = path.rsplit_once('/') else {
            continue;
        };
        if let Some(parent) = cluster.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(name);
        }
    }
    cluster
}

/// The key of a cluster.
pub fn cluster_key(id: &ClusterId) -> DocumentKey {
    let partition = Partition::subscription(&id.subscription);
    DocumentKey::new(CLUSTERS, &partition, id.to_string())
}

/// The key of a document of a subscription.
pub fn subscription_document(
    collection: &'static str,
    subscription: &str,
    id: &str,
) -> DocumentKey {
    let partition = Partition::subscription(subscription);
    DocumentKey::new(collection, &partition, id.to_ascii_lowercase())
}

/// The key of a document of the region.
pub fn region_document(collection: &'static str, id: &str) -> DocumentKey {
    DocumentKey::new(collection, &Partition::region(), id.to_ascii_lowercase())
}

/// The text at a pointer; empty if there is none.
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    let found = value.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}

/// Sets the member at a pointer, and creates the objects that lead to it.
pub fn set(value: &mut Value, pointer: &str, new: Value) {
    let mut at = value;
    for name in pointer.split('/').skip(1) {
        if !at.is_object() {
            *at = json!({});
        }
        // Indexing with a name inserts it.
        at = &mut at[name];
    }
    *at = new;
}

/// Removes the member at a pointer.
pub fn remove(value: &mut Value, pointer: &str) {
    if let Some((parent, name)) = pointer.rsplit_once('/')
        && let Some(parent) = value.pointer_mut(parent).and_then(Value::as_object_mut)
    {
        parent.remove(name);
    }
}

/// The unique keys of a cluster document: its resource group and its identity in the cloud. The second
/// follows the identity when that is changed.
pub fn unique_keys(document: &Value) -> Vec<UniqueKey> {
    let keys = ["clusterResourceGroupIdKey", "clientIdKey"].map(|name| UniqueKey {
        name,
        value: text(document, &format!("/{name}")).to_owned(),
    });
    keys.into_iter()
        .filter(|key| !key.value.is_empty())
        .collect()
}

/// Sets the members of a cluster document that its unique keys are made of.
pub fn set_unique_keys(document: &mut Value) {
    let cluster = &document["openShiftCluster"];
    let group = text(cluster, "/properties/clusterProfile/resourceGroupId").to_lowercase();
    let client = text(cluster, "/properties/servicePrincipalProfile/clientId").to_lowercase();
    let identities = cluster.pointer("/managedServiceIdentity/userAssignedIdentities");
    let identity = identities.and_then(Value::as_object);
    let identity = identity.and_then(|it| it.keys().next().map(|id| id.to_lowercase()));
    let client = if client.is_empty() {
        identity.unwrap_or_default()
    } else {
        client
    };
    document["clusterResourceGroupIdKey"] = group.into();
    document["clientIdKey"] = client.into();
}

/// Whether the cluster uses workload identities.
pub fn uses_identities(cluster: &Value) -> bool {
    let has = |name: &str| {
        cluster["properties"]
            .get(name)
            .is_some_and(Value::is_object)
    };
    has("platformWorkloadIdentityProfile") && !has("servicePrincipalProfile")
}

/// Sets what a client need not say.
pub fn set_defaults(cluster: &mut Value) {
    let mut default = |pointer: &str, value: Value| {
        let absent = cluster
            .pointer(pointer)
            .is_none_or(|old| old.is_null() || old.as_str() == Some(""));
        if absent {
            set(cluster, pointer, value);
        }
    };
    default(
        "/properties/masterProfile/encryptionAtHost",
        "Disabled".into(),
    );
    default(
        "/properties/clusterProfile/fipsValidatedModules",
        "Disabled".into(),
    );
    default(
        "/properties/networkProfile/outboundType",
        "Loadbalancer".into(),
    );
    default(
        "/properties/networkProfile/preconfiguredNSG",
        "Disabled".into(),
    );
    default("/properties/operatorFlags", default_operator_flags());
    if text(cluster, "/properties/networkProfile/outboundType") == "Loadbalancer"
        && cluster
            .pointer("/properties/networkProfile/loadBalancerProfile")
            .is_none_or(Value::is_null)
    {
        let profile = json!({"managedOutboundIps": {"count": 1}});
        set(
            cluster,
            "/properties/networkProfile/loadBalancerProfile",
            profile,
        );
    }
    let workers = cluster.pointer_mut("/properties/workerProfiles");
    for worker in workers.and_then(Value::as_array_mut).into_iter().flatten() {
        if text(worker, "/encryptionAtHost").is_empty() {
            worker["encryptionAtHost"] = "Disabled".into();
        }
    }
}

/// The flags of the operator in a cluster that was not told otherwise.
fn default_operator_flags() -> Value {
    let enabled = [
        "aro.alertwebhook.enabled",
        "aro.azuresubnets.enabled",
        "aro.azuresubnets.nsg.managed",
        "aro.azuresubnets.serviceendpoint.managed",
        "aro.banner.enabled",
        "aro.checker.enabled",
        "aro.dnsmasq.enabled",
        "aro.genevalogging.enabled",
        "aro.imageconfig.enabled",
        "aro.ingress.enabled",
        "aro.machine.enabled",
        "aro.machinehealthcheck.enabled",
        "aro.machineset.enabled",
        "aro.monitoring.enabled",
        "aro.nodedrainer.enabled",
        "aro.pullsecret.enabled",
        "aro.pullsecret.managed",
        "aro.rbac.enabled",
        "aro.routefix.enabled",
        "aro.storageaccounts.enabled",
        "aro.workaround.enabled",
    ];
    let flags = enabled.map(|name| (name.to_owned(), Value::from("true")));
    Value::Object(flags.into_iter().collect())
}
