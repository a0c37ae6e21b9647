//! The objects of a component: what has to exist for it. Pure.

mod monitoring;
mod network;
mod pod;
mod services;
mod workloads;

use std::{collections::BTreeMap, fmt::Write as _};

use aws_lc_rs::digest::{SHA256, digest};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{ConfigMap, Service, ServiceAccount},
        networking::v1::{Ingress, NetworkPolicy},
        policy::v1::PodDisruptionBudget,
    },
};
use kube::Resource;
use neap_kit::apply::{DesiredObject, ResourceKind};
use serde_json::{Value, json};

pub(crate) use self::workloads::PROGRESS_DEADLINE_SECONDS;
pub use self::{
    monitoring::ServiceMonitor,
    services::{is_exposed, queue_service_name},
    workloads::{claims, volume_names},
};
use super::{Component, ComponentKind};
use crate::api::{
    ANNOTATION_REVISION, APP_LABEL, COMPONENT_LABEL, FARM_LABEL, INSTANCE_LABEL, MANAGED_BY_LABEL,
    MANAGER, OPERATOR_NAMESPACE,
};

/// Where a component gets its configuration from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigSource {
    /// The ConfigMap.
    pub config_map: String,
    /// A hash of its content, so that a change rolls the pods out.
    pub hash: String,
    /// The file of the main program.
    pub file: String,
    /// The files that are rendered; none if the user has a ConfigMap.
    pub rendered: Option<BTreeMap<String, String>>,
    /// A hash of what callers are checked with, for the same reason.
    pub trust: Option<String>,
}

/// What else the objects depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectContext {
    /// The longest time that an action may take, in seconds.
    pub longest_action_seconds: i64,
    /// The namespace of the operator, which may ask schedulers about their queue.
    pub operator_namespace: String,
    /// Whether the cluster has ServiceMonitors.
    pub monitored: bool,
}

impl Default for ObjectContext {
    fn default() -> Self {
        Self {
            longest_action_seconds: 7200,
            operator_namespace: OPERATOR_NAMESPACE.to_owned(),
            monitored: false,
        }
    }
}

/// The workload of a component: what a roll-out changes.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredWorkload {
    /// The Deployment or StatefulSet, with the replicas that the spec asks for.
    pub object: DesiredObject,
    /// The hash of everything but the replicas.
    pub revision: String,
}

/// The workload of a component.
pub fn workload(
    component: &Component,
    config: &ConfigSource,
    context: &ObjectContext,
) -> DesiredWorkload {
    let mut object = workloads::workload(component, config, context);
    let mut bare = object.object.clone();
    bare["spec"]["replicas"] = Value::Null;
    // A component that is restored from a backup has another uid, and its pods are the same.
    bare["metadata"]["ownerReferences"] = Value::Null;
    // Claims of existing pods are changed one by one.
    bare["spec"]["volumeClaimTemplates"] = Value::Null;
    let revision = hash_of(bare.to_string());
    for metadata in ["/metadata", "/spec/template/metadata"] {
        if let Some(metadata) = object.object.pointer_mut(metadata) {
            metadata["annotations"][ANNOTATION_REVISION] = revision.clone().into();
        }
    }
    DesiredWorkload { object, revision }
}

/// The ConfigMap of a rendered configuration. Its name contains the hash of its content, so a pod that
/// restarts during a roll-out gets the configuration that it had.
pub fn config_map(component: &Component, config: &ConfigSource) -> Option<DesiredObject> {
    let data = config.rendered.as_ref()?;
    let mut object = base(component, &config.config_map);
    object["data"] = json!(data);
    object["immutable"] = true.into();
    Some(desired::<ConfigMap>(object))
}

/// The prefix of the names of rendered configurations.
const CONFIG_MAP_PREFIX: &str = "buildbarn-config-";

/// The name of the ConfigMap of a rendered configuration, and the hash in it.
pub fn config_map_name(
    component: &Component,
    files: &BTreeMap<String, String>,
) -> (String, String) {
    let hash = hash_of(format!("{files:?}"));
    let (app, name) = (component.kind.app(), component.name());
    (format!("{CONFIG_MAP_PREFIX}{app}-{name}-{hash}"), hash)
}

/// The objects besides workload and configuration, which change without a roll-out.
pub fn around(component: &Component, context: &ObjectContext) -> Vec<DesiredObject> {
    let mut objects = Vec::new();
    if component
        .pod()
        .is_none_or(|pod| pod.service_account_name.is_none())
    {
        let mut account = base(component, &side_name(component));
        account["automountServiceAccountToken"] = false.into();
        objects.push(desired::<ServiceAccount>(account));
    }
    objects.extend(services::service(component));
    objects.extend(services::inner_service(component, context.monitored));
    objects.extend(services::ingress(component));
    objects.extend(network::disruption_budget(component));
    objects.push(network::policy(component, context));
    objects.extend(
        context
            .monitored
            .then(|| monitoring::service_monitor(component)),
    );
    objects
}

/// The components that an object of this name may belong to: the kind and the name of each.
pub fn possible_owners(name: &str) -> Vec<(ComponentKind, &str)> {
    let mut owners = Vec::new();
    for kind in ComponentKind::ALL {
        owners.push((kind, name));
        let side = name.strip_suffix(kind.app());
        owners.extend(
            side.and_then(|it| it.strip_suffix('-'))
                .map(|it| (kind, it)),
        );
        let rendered = name.strip_prefix(CONFIG_MAP_PREFIX);
        let rendered = rendered.and_then(|it| it.strip_prefix(kind.app())?.strip_prefix('-'));
        owners.extend(rendered.and_then(|it| Some((kind, it.rsplit_once('-')?.0))));
    }
    owners
}

/// The kinds of all objects that a component may have, for the search for those that are not wanted.
pub fn owned_kinds() -> [ResourceKind; 9] {
    [
        ResourceKind::of::<ConfigMap>(),
        ResourceKind::of::<ServiceAccount>(),
        ResourceKind::of::<Service>(),
        ResourceKind::of::<Deployment>(),
        ResourceKind::of::<StatefulSet>(),
        ResourceKind::of::<Ingress>(),
        ResourceKind::of::<PodDisruptionBudget>(),
        ResourceKind::of::<NetworkPolicy>(),
        ResourceKind::of::<ServiceMonitor>(),
    ]
}

/// The kind of the workload.
pub fn workload_kind(kind: ComponentKind) -> ResourceKind {
    match kind {
        ComponentKind::Storage => ResourceKind::of::<StatefulSet>(),
        _ => ResourceKind::of::<Deployment>(),
    }
}

/// A hash for names and annotations. It is the same in every version of the operator: a new one must not
/// roll out what has not changed.
pub fn hash_of(content: impl AsRef<[u8]>) -> String {
    let hash = digest(&SHA256, content.as_ref());
    let mut text = String::new();
    for byte in hash.as_ref().iter().take(5) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn desired<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(
    object: Value,
) -> DesiredObject {
    DesiredObject {
        kind: ResourceKind::of::<K>(),
        object,
    }
}

/// An object with name, namespace, labels and owner.
fn base(component: &Component, name: &str) -> Value {
    json!({"metadata": {
        "name": name,
        "namespace": component.namespace(),
        "labels": object_labels(component),
        "ownerReferences": [component.owner_reference()],
    }})
}

/// The name of objects that are not part of the original's contract. Components of different kinds may have
/// the same name, so it contains the kind.
fn side_name(component: &Component) -> String {
    format!("{}-{}", component.name(), component.kind.app())
}

fn object_labels(component: &Component) -> BTreeMap<String, String> {
    let mut labels = selector(component);
    labels.insert(MANAGED_BY_LABEL.to_owned(), MANAGER.to_owned());
    if !component.farm().is_empty() {
        labels.insert(FARM_LABEL.to_owned(), component.farm().to_owned());
    }
    labels
}

/// The labels that select the pods.
fn selector(component: &Component) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::from([
        (APP_LABEL.to_owned(), component.kind.app().to_owned()),
        (COMPONENT_LABEL.to_owned(), component.name().to_owned()),
    ]);
    if let Some(worker) = component.worker() {
        labels.insert(INSTANCE_LABEL.to_owned(), worker.instance_name().to_owned());
    }
    labels
}
