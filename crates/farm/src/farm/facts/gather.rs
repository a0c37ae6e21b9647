//! Gathers the facts about a farm from caches.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Service, ServiceAccount},
        networking::v1::{Ingress, NetworkPolicy},
        policy::v1::PodDisruptionBudget,
    },
};
use kube::{Resource, ResourceExt, api::DynamicObject};
use neap_kit::{
    apply::{Object, ResourceKind},
    builder::ControllerBuilder,
    clock::Clock,
    context::Context,
    key::Key,
    operation::Operation,
    watch::{Cache, Selection, WatchesStopped},
};

use super::{
    ClaimFacts, Evaluations, FarmFacts, ForeignObject, Reconciled, TrustConfig, UserConfig,
    changes::{AwaitMonitors, enqueue_on_change},
    component_caches::ComponentCaches,
    evaluations::Answer,
    pod_states::{POD_STATES, pod_facts},
    user_config::{self, content_hash},
};
use crate::{
    api::{APP_LABEL, COMPONENT_LABEL, MANAGED_BY_LABEL, MANAGER, ports},
    farm::{
        Component, ComponentKind, component::claimed_elsewhere, drain::PodFacts,
        drain_failures::DrainFailures, objects::ServiceMonitor, refusals::Refusals,
    },
    jsonnet::Evaluate,
    queue::BuildQueue,
};

/// How long the first reconcile waits for Operations, whose kind may not be served.
const OPERATIONS_TIMEOUT: Duration = Duration::from_secs(5);

/// The sources of facts about all farms.
pub(crate) struct FarmSources {
    pub(super) components: ComponentCaches,
    pub(super) deployments: Cache<Deployment>,
    pub(super) stateful_sets: Cache<StatefulSet>,
    pub(super) services: Cache<Service>,
    pub(super) ingresses: Cache<Ingress>,
    pub(super) config_maps: Cache<ConfigMap>,
    pub(super) accounts: Cache<ServiceAccount>,
    pub(super) budgets: Cache<PodDisruptionBudget>,
    pub(super) policies: Cache<NetworkPolicy>,
    pub(super) pods: Cache<Pod>,
    pub(super) claims: Cache<PersistentVolumeClaim>,
    pub(super) operations: Cache<Operation>,
    pub(super) monitors: Cache<ServiceMonitor>,
    pub(crate) evaluations: Arc<Evaluations>,
    pub(crate) queue: Arc<dyn BuildQueue>,
    pub(crate) refusals: Refusals,
    pub(in crate::farm) drain_failures: DrainFailures,
    operator_namespace: String,
    clock: Clock,
}

impl FarmSources {
    pub(crate) fn new(
        context: &Context,
        builder: &mut ControllerBuilder,
        evaluator: Arc<dyn Evaluate>,
        queue: Arc<dyn BuildQueue>,
        operator_namespace: &str,
    ) -> Result<Self, WatchesStopped> {
        let all = Selection::default();
        let ours = Selection {
            labels: Some(format!("{MANAGED_BY_LABEL}={MANAGER}")),
            fields: None,
        };
        let sources = Self {
            components: ComponentCaches::new(builder)?,
            deployments: builder.scoped(&all, false)?,
            stateful_sets: builder.scoped(&all, false)?,
            services: builder.scoped(&all, false)?,
            ingresses: builder.scoped(&all, false)?,
            config_maps: builder.scoped(&all, false)?,
            accounts: builder.scoped(&all, false)?,
            budgets: builder.scoped(&all, false)?,
            policies: builder.scoped(&all, false)?,
            pods: builder.scoped_trimmed(&ours, POD_STATES)?,
            claims: builder.scoped(&all, false)?,
            // These kinds may not be served, and a farm does not need them.
            operations: context.scoped_cache(&all)?,
            monitors: context.scoped_cache(&all)?,
            evaluations: Arc::new(Evaluations::new(evaluator, context.clock)),
            queue,
            refusals: Refusals::default(),
            drain_failures: DrainFailures::default(),
            operator_namespace: operator_namespace.to_owned(),
            clock: context.clock,
        };
        let (operations, clock) = (sources.operations.clone(), context.clock);
        builder.wait_for(async move {
            clock.within(OPERATIONS_TIMEOUT, operations.synced()).await;
        });
        enqueue_on_change(&sources, builder);
        Ok(sources)
    }

    /// What enqueues the farms once ServiceMonitors are served.
    pub(crate) fn await_monitors(&self) -> AwaitMonitors {
        AwaitMonitors::new(self)
    }

    /// Waits until all caches are complete, for callers that do not run the controller.
    pub(crate) async fn synced(&self) {
        self.components.synced().await;
        self.deployments.synced().await;
        self.stateful_sets.synced().await;
        self.services.synced().await;
        self.ingresses.synced().await;
        self.config_maps.synced().await;
        self.accounts.synced().await;
        self.budgets.synced().await;
        self.policies.synced().await;
        self.pods.synced().await;
        self.claims.synced().await;
    }

    /// The component as the object that was read, for status writes.
    pub(crate) fn object(&self, component: &Component) -> Option<Reconciled> {
        self.components.object(component.kind, &component.key())
    }

    /// The address of a scheduler's build queue. The address of its Service is the same everywhere, while
    /// its name resolves only inside the cluster.
    pub(crate) fn queue_address(&self, namespace: &str, scheduler: &str) -> Option<String> {
        let port = ports::BUILD_QUEUE_STATE;
        // An exposed scheduler has it in a second Service. While that changes, both may exist.
        let app = ComponentKind::Scheduler.app();
        let names = [scheduler.to_owned(), format!("{scheduler}-{app}")];
        let services = names.iter().map(|name| Key::new(namespace, name));
        let mut services = services.filter_map(|key| self.services.get(&key));
        let service = services.find(|it| {
            let ports = it.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
            let mut numbers = ports.map(|it| it.port);
            numbers.any(|number| number == i32::from(port))
        })?;
        let address = service.spec.as_ref()?.cluster_ip.clone()?;
        match &*address {
            "" | "None" => None,
            address if address.contains(':') => Some(format!("[{address}]:{port}")),
            address => Some(format!("{address}:{port}")),
        }
    }

    /// The facts about a farm, without what schedulers say; none if it has no components.
    pub(crate) fn gather(&self, key: &Key) -> Option<FarmFacts> {
        let namespace = key.namespace();
        let mut members = self.components.list(namespace);
        let owners = members.iter().map(|it| it.uid().to_owned()).collect();
        let claimed_elsewhere = claimed_elsewhere(key.name(), &members);
        members.retain(|it| it.farm() == key.name());
        if members.is_empty() {
            return None;
        }
        let mut facts = FarmFacts {
            live: BTreeMap::new(),
            foreign: BTreeMap::new(),
            pods: self.pods_by_component(namespace, &members),
            claims: self.claims(namespace),
            user_configs: BTreeMap::new(),
            trust: BTreeMap::new(),
            claimed_elsewhere,
            queues: BTreeMap::new(),
            refused: self.refusals.of(&members, self.clock.now()),
            farm: key.clone(),
            operations: self.operations(namespace),
            monitored: self.monitors.is_synced(),
            operator_namespace: self.operator_namespace.clone(),
            now: self.clock.now(),
            components: members,
        };
        self.objects(namespace, &owners, &mut facts);
        for component in facts.components.clone() {
            if let Some((_, trust)) = component.trust() {
                let name = Key::new(namespace, &trust.config_map_name);
                let trust = TrustConfig::of(self.config_maps.get(&name).as_deref(), &trust.key);
                facts.trust.insert(component.uid().to_owned(), trust);
            }
            if let Some(name) = component.config_map_name() {
                let config = self.user_config(&component, name);
                facts
                    .user_configs
                    .insert(component.uid().to_owned(), config);
            }
        }
        Some(facts)
    }

    /// `owners` are the uids of all components of the namespace.
    fn objects(&self, namespace: &str, owners: &BTreeSet<String>, facts: &mut FarmFacts) {
        sort_objects(&self.config_maps.list(namespace), owners, facts);
        sort_objects(&self.accounts.list(namespace), owners, facts);
        sort_objects(&self.services.list(namespace), owners, facts);
        sort_objects(&self.deployments.list(namespace), owners, facts);
        sort_objects(&self.stateful_sets.list(namespace), owners, facts);
        sort_objects(&self.ingresses.list(namespace), owners, facts);
        sort_objects(&self.budgets.list(namespace), owners, facts);
        sort_objects(&self.policies.list(namespace), owners, facts);
        sort_objects(&self.monitors.list(namespace), owners, facts);
    }

    fn operations(&self, namespace: &str) -> Option<Vec<Operation>> {
        let all = || self.operations.list(namespace).into_iter();
        let is_served = self.operations.is_synced();
        is_served.then(|| all().map(|operation| (*operation).clone()).collect())
    }

    fn claims(&self, namespace: &str) -> BTreeMap<String, ClaimFacts> {
        let claims = self.claims.list(namespace).into_iter();
        let claims = claims.map(|claim| {
            let spec = claim.spec.as_ref();
            let requests = spec.and_then(|it| it.resources.as_ref()?.requests.as_ref());
            let storage = requests.and_then(|it| it.get("storage"));
            let bytes = storage.and_then(|it| crate::api::parse_quantity(&it.0));
            let facts = ClaimFacts {
                uid: claim.uid().unwrap_or_default(),
                key: Key::of(&*claim),
                bytes,
            };
            (claim.name_any(), facts)
        });
        claims.collect()
    }

    fn pods_by_component(
        &self,
        namespace: &str,
        members: &[Component],
    ) -> BTreeMap<String, Vec<PodFacts>> {
        let mut pods: BTreeMap<String, Vec<PodFacts>> = BTreeMap::new();
        for pod in self.pods.list(namespace) {
            let label = |name: &str| pod.labels().get(name).map(String::as_str);
            let component = members.iter().find(|it| {
                label(APP_LABEL) == Some(it.kind.app()) && label(COMPONENT_LABEL) == Some(it.name())
            });
            if let Some(component) = component {
                let uid = component.uid().to_owned();
                pods.entry(uid).or_default().push(pod_facts(&pod));
            }
        }
        pods
    }

    fn user_config(&self, component: &Component, name: &str) -> UserConfig {
        let Some(config_map) = self.config_maps.get(&Key::new(component.namespace(), name)) else {
            return UserConfig::Missing;
        };
        let programs = match user_config::programs(component, &config_map) {
            Ok(programs) => programs,
            Err(missing) => return UserConfig::MissingKey(missing),
        };
        match self.evaluations.ask(component, config_map.clone()) {
            Answer::Known(config) => config,
            Answer::Pending { failure, ask_again } => UserConfig::Evaluating {
                hash: content_hash(&config_map),
                file: programs
                    .into_iter()
                    .next()
                    .map_or_else(String::new, |it| it.1),
                failure,
                ask_again,
            },
        }
    }
}

/// Sorts the objects of a kind by the components that own them.
fn sort_objects<K>(objects: &[Arc<K>], owners: &BTreeSet<String>, facts: &mut FarmFacts)
where
    K: Object + Resource<Scope = NamespaceResourceScope>,
{
    let kind = ResourceKind::of::<K>();
    for object in objects {
        let references = object.owner_references().iter();
        let owner = references.clone().find(|it| it.controller == Some(true));
        let uid = owner.map(|it| it.uid.as_str()).unwrap_or_default();
        let known = facts.components.iter().any(|it| it.uid() == uid);
        if !known {
            let name = (kind.resource.plural.clone(), object.name_any());
            let former = owner.is_some_and(|it| {
                it.api_version.starts_with("buildbarn.io/") && !owners.contains(uid)
            });
            let foreign = ForeignObject {
                leaves: former || object.meta().deletion_timestamp.is_some(),
            };
            facts.foreign.insert(name, foreign);
            continue;
        }
        let value = serde_json::to_value(&**object).unwrap_or_default();
        if let Ok(object) = serde_json::from_value::<DynamicObject>(value) {
            let live = facts.live.entry(uid.to_owned()).or_default();
            live.push((kind.clone(), object));
        }
    }
}
