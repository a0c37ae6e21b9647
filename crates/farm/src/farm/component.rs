//! A custom resource of any of the five kinds.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::{ObjectRef, ResourceKind},
    key::Key,
};
use serde_json::Value;

use crate::{
    api::{
        BuildbarnBrowser, BuildbarnBrowserSpec, BuildbarnFrontend, BuildbarnFrontendSpec,
        BuildbarnScheduler, BuildbarnSchedulerSpec, BuildbarnStorage, BuildbarnStorageSpec,
        BuildbarnWorker, BuildbarnWorkerSpec, ComponentStatus, ConfigMapKey, FARM_LABEL,
        PodOptions,
    },
    schema::Program,
};

/// The kinds, in the order of a roll-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComponentKind {
    /// BuildbarnStorage.
    Storage,
    /// BuildbarnScheduler.
    Scheduler,
    /// BuildbarnWorker.
    Worker,
    /// BuildbarnFrontend.
    Frontend,
    /// BuildbarnBrowser.
    Browser,
}

impl ComponentKind {
    /// All kinds, in the order of a roll-out.
    pub const ALL: [Self; 5] = [
        Self::Storage,
        Self::Scheduler,
        Self::Worker,
        Self::Frontend,
        Self::Browser,
    ];

    /// The value of the label `app`, and the name of the main container except for the frontend.
    pub fn app(self) -> &'static str {
        match self {
            Self::Storage => "storage",
            Self::Scheduler => "scheduler",
            Self::Worker => "worker",
            Self::Frontend => "frontend",
            Self::Browser => "browser",
        }
    }

    /// The kind in the API.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Storage => "BuildbarnStorage",
            Self::Scheduler => "BuildbarnScheduler",
            Self::Worker => "BuildbarnWorker",
            Self::Frontend => "BuildbarnFrontend",
            Self::Browser => "BuildbarnBrowser",
        }
    }

    /// The finalizer.
    pub fn finalizer(self) -> &'static str {
        match self {
            Self::Storage => "buildbarnstorage.buildbarn.io",
            Self::Scheduler => "buildbarnscheduler.buildbarn.io",
            Self::Worker => "buildbarnworker.buildbarn.io",
            Self::Frontend => "buildbarnfrontend.buildbarn.io",
            Self::Browser => "buildbarnbrowser.buildbarn.io",
        }
    }

    /// The kind as the writer addresses it.
    pub fn resource(self) -> ResourceKind {
        match self {
            Self::Storage => ResourceKind::of::<BuildbarnStorage>(),
            Self::Scheduler => ResourceKind::of::<BuildbarnScheduler>(),
            Self::Worker => ResourceKind::of::<BuildbarnWorker>(),
            Self::Frontend => ResourceKind::of::<BuildbarnFrontend>(),
            Self::Browser => ResourceKind::of::<BuildbarnBrowser>(),
        }
    }

    fn default_image(self) -> &'static str {
        match self {
            Self::Storage | Self::Frontend => {
                "ghcr.io/buildbarn/bb-storage:20260609T094425Z-10acc76"
            }
            Self::Scheduler => "ghcr.io/buildbarn/bb-scheduler:20260527T162223Z-c48dcda",
            Self::Worker => "ghcr.io/buildbarn/bb-worker:20260527T162223Z-c48dcda",
            Self::Browser => "ghcr.io/buildbarn/bb-browser:20260415T065533Z-ee35c54",
        }
    }

    /// The program whose configuration its main container reads.
    pub fn program(self) -> Program {
        match self {
            Self::Storage | Self::Frontend => Program::Storage,
            Self::Scheduler => Program::Scheduler,
            Self::Worker => Program::Worker,
            Self::Browser => Program::Browser,
        }
    }
}

/// The spec of a component.
#[derive(Debug, Clone, PartialEq)]
pub enum ComponentSpec {
    /// Of a BuildbarnStorage.
    Storage(Box<BuildbarnStorageSpec>),
    /// Of a BuildbarnScheduler.
    Scheduler(Box<BuildbarnSchedulerSpec>),
    /// Of a BuildbarnWorker.
    Worker(Box<BuildbarnWorkerSpec>),
    /// Of a BuildbarnFrontend.
    Frontend(Box<BuildbarnFrontendSpec>),
    /// Of a BuildbarnBrowser.
    Browser(Box<BuildbarnBrowserSpec>),
}

/// A component of a farm.
#[derive(Debug, Clone, PartialEq)]
pub struct Component {
    /// Its kind.
    pub kind: ComponentKind,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// Its spec.
    pub spec: ComponentSpec,
    /// Its status.
    pub status: ComponentStatus,
}

/// Reads a field that all specs have.
macro_rules! field {
    ($component:expr, $spec:ident => $value:expr) => {
        match &$component.spec {
            ComponentSpec::Storage($spec) => $value,
            ComponentSpec::Scheduler($spec) => $value,
            ComponentSpec::Worker($spec) => $value,
            ComponentSpec::Frontend($spec) => $value,
            ComponentSpec::Browser($spec) => $value,
        }
    };
}

impl Component {
    /// The namespace.
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The uid.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Namespace and name.
    pub fn key(&self) -> Key {
        Key::new(self.namespace(), self.name())
    }

    /// The farm that it belongs to.
    pub fn farm(&self) -> &str {
        farm_of(&self.metadata)
    }

    /// What decides between components that ask for the same thing: the oldest has it, so that a new one never
    /// takes what another uses.
    pub(super) fn seniority(&self) -> (Option<Timestamp>, &str, ComponentKind) {
        let created = self.metadata.creation_timestamp.as_ref();
        (created.map(|it| it.0), self.name(), self.kind)
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether the operator's finalizer is set.
    pub fn has_finalizer(&self) -> bool {
        let finalizers = self.metadata.finalizers.as_ref();
        finalizers.is_some_and(|all| all.iter().any(|it| it == self.kind.finalizer()))
    }

    /// It as the owner of what is made for it.
    pub fn owner_reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: "buildbarn.io/v1alpha1".to_owned(),
            kind: self.kind.kind().to_owned(),
            name: self.name().to_owned(),
            uid: self.uid().to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// A reference to it.
    pub fn object_ref(&self) -> ObjectRef {
        ObjectRef {
            kind: self.kind.resource(),
            key: self.key(),
            uid: self.uid().to_owned(),
        }
    }

    /// The number of replicas that the spec asks for.
    pub fn replicas(&self) -> i32 {
        let default = match self.kind {
            ComponentKind::Storage => 2,
            ComponentKind::Scheduler => 1,
            ComponentKind::Worker => 8,
            ComponentKind::Frontend | ComponentKind::Browser => 3,
        };
        field!(self, spec => spec.replicas).unwrap_or(default)
    }

    /// The image of the main container.
    pub fn image(&self) -> &str {
        let image = field!(self, spec => spec.image.as_deref());
        image.unwrap_or_else(|| self.kind.default_image())
    }

    /// The ConfigMap with the user's own configuration.
    pub fn config_map_name(&self) -> Option<&str> {
        field!(self, spec => spec.config_map_name.as_deref()).filter(|it| !it.is_empty())
    }

    /// What callers are checked with, and the path of the field that says so.
    pub fn trust(&self) -> Option<(&'static str, &ConfigMapKey)> {
        let access = self.frontend().and_then(|spec| spec.access.as_ref())?;
        let authentication = access.authentication.as_ref()?;
        let certificate = authentication.client_certificate.as_ref();
        let certificate =
            certificate.map(|it| ("spec.access.authentication.clientCertificate", it));
        let token = authentication.jwt.as_ref();
        certificate.or_else(|| token.map(|it| ("spec.access.authentication.jwt", it)))
    }

    /// More settings of the pods.
    pub fn pod(&self) -> Option<&PodOptions> {
        field!(self, spec => spec.pod.as_ref())
    }

    pub(super) fn resources(&self) -> Option<&Value> {
        field!(self, spec => spec.resources.as_ref())
    }

    pub(super) fn image_pull_secrets(&self) -> &[Value] {
        field!(self, spec => &spec.image_pull_secrets)
    }

    pub(super) fn node_selector(&self) -> &BTreeMap<String, String> {
        field!(self, spec => &spec.node_selector)
    }

    pub(super) fn tolerations(&self) -> &[Value] {
        field!(self, spec => &spec.tolerations)
    }

    /// The spec, if this is a storage.
    pub fn storage(&self) -> Option<&BuildbarnStorageSpec> {
        match &self.spec {
            ComponentSpec::Storage(spec) => Some(spec),
            _ => None,
        }
    }

    /// The spec, if this is a scheduler.
    pub fn scheduler(&self) -> Option<&BuildbarnSchedulerSpec> {
        match &self.spec {
            ComponentSpec::Scheduler(spec) => Some(spec),
            _ => None,
        }
    }

    /// The spec, if this is a pool of workers.
    pub fn worker(&self) -> Option<&BuildbarnWorkerSpec> {
        match &self.spec {
            ComponentSpec::Worker(spec) => Some(spec),
            _ => None,
        }
    }

    /// The spec, if this is a frontend.
    pub fn frontend(&self) -> Option<&BuildbarnFrontendSpec> {
        match &self.spec {
            ComponentSpec::Frontend(spec) => Some(spec),
            _ => None,
        }
    }

    /// The spec, if this is a browser.
    pub fn browser(&self) -> Option<&BuildbarnBrowserSpec> {
        match &self.spec {
            ComponentSpec::Browser(spec) => Some(spec),
            _ => None,
        }
    }
}

/// The farm of an object: the value of its label, or the one without a name.
pub(super) fn farm_of(metadata: &ObjectMeta) -> &str {
    let labels = metadata.labels.as_ref();
    let farm = labels.and_then(|labels| labels.get(FARM_LABEL));
    farm.map_or("", String::as_str)
}

/// The ConfigMaps that belong to other farms of the namespace: a ConfigMap is that of its oldest user.
pub(super) fn claimed_elsewhere(farm: &str, components: &[Component]) -> BTreeSet<String> {
    let mut owners: BTreeMap<&str, &Component> = BTreeMap::new();
    for component in components {
        let Some(name) = component.config_map_name() else {
            continue;
        };
        let owner = owners.entry(name).or_insert(component);
        if component.seniority() < owner.seniority() {
            *owner = component;
        }
    }
    let elsewhere = owners.into_iter().filter(|(_, owner)| owner.farm() != farm);
    elsewhere.map(|(name, _)| name.to_owned()).collect()
}

macro_rules! component_from {
    ($type:ident, $kind:ident) => {
        impl From<&$type> for Component {
            fn from(object: &$type) -> Self {
                Self {
                    kind: ComponentKind::$kind,
                    metadata: object.meta().clone(),
                    spec: ComponentSpec::$kind(Box::new(object.spec.clone())),
                    status: object.status.clone().unwrap_or_default(),
                }
            }
        }
    };
}

component_from!(BuildbarnStorage, Storage);
component_from!(BuildbarnScheduler, Scheduler);
component_from!(BuildbarnWorker, Worker);
component_from!(BuildbarnFrontend, Frontend);
component_from!(BuildbarnBrowser, Browser);

/// The objects of a kind as components.
pub(super) fn components<'a, K>(
    objects: &'a [std::sync::Arc<K>],
) -> impl Iterator<Item = Component> + 'a
where
    K: ResourceExt,
    Component: for<'b> From<&'b K>,
{
    objects.iter().map(|object| Component::from(&**object))
}
