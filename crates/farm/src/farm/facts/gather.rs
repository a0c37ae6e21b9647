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
    controller::Enqueuer,
    key::Key,
    operation::Operation,
    watch::{Cache, Change, Selection, WatchesStopped},
};

use super::{
    ClaimFacts, Evaluations, FarmFacts, UserConfig,
    evaluations::Answer,
    pod_states::POD_STATES,
    user_config::{self, content_hash},
};
use crate::{
    api::{
        ANNOTATION_REVISION, APP_LABEL, BuildbarnBrowser, BuildbarnFrontend, BuildbarnScheduler,
        BuildbarnStorage, BuildbarnWorker, COMPONENT_LABEL, MANAGED_BY_LABEL, MANAGER, ports,
    },
    farm::{
        Component, ComponentKind,
        component::{claimed_elsewhere, components, farm_of},
        drain::{DELETION_COST, PodFacts},
        refusals::Refusals,
    },
    jsonnet::Evaluate,
    queue::BuildQueue,
};

/// How long the first reconcile waits for Operations, whose kind may not be served.
const OPERATIONS_TIMEOUT: Duration = Duration::from_secs(5);

/// The sources of facts about all farms.
pub(crate) struct FarmSources {
    schedulers: Cache<BuildbarnScheduler>,
    workers: Cache<BuildbarnWorker>,
    storages: Cache<BuildbarnStorage>,
    frontends: Cache<BuildbarnFrontend>,
    browsers: Cache<BuildbarnBrowser>,
    deployments: Cache<Deployment>,
    stateful_sets: Cache<StatefulSet>,
    services: Cache<Service>,
    ingresses: Cache<Ingress>,
    config_maps: Cache<ConfigMap>,
    accounts: Cache<ServiceAccount>,
    budgets: Cache<PodDisruptionBudget>,
    policies: Cache<NetworkPolicy>,
    pods: Cache<Pod>,
    claims: Cache<PersistentVolumeClaim>,
    operations: Cache<Operation>,
    pub(crate) evaluations: Arc<Evaluations>,
    pub(crate) queue: Arc<dyn BuildQueue>,
    pub(crate) refusals: Refusals,
    operator_namespace: String,
    clock: Clock,
}

/// The objects that a reconcile is about.
#[derive(Clone)]
pub(crate) enum Reconciled {
    Scheduler(Arc<BuildbarnScheduler>),
    Worker(Arc<BuildbarnWorker>),
    Storage(Arc<BuildbarnStorage>),
    Frontend(Arc<BuildbarnFrontend>),
    Browser(Arc<BuildbarnBrowser>),
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
            schedulers: builder.scoped(&all, false)?,
            workers: builder.scoped(&all, false)?,
            storages: builder.scoped(&all, false)?,
            frontends: builder.scoped(&all, false)?,
            browsers: builder.scoped(&all, false)?,
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
            // Their kind may not be served, and a farm does not need it.
            operations: context.scoped_cache(&all)?,
            evaluations: Arc::new(Evaluations::new(evaluator, context.clock)),
            queue,
            refusals: Refusals::default(),
            operator_namespace: operator_namespace.to_owned(),
            clock: context.clock,
        };
        let (operations, clock) = (sources.operations.clone(), context.clock);
        builder.wait_for(async move {
            clock.within(OPERATIONS_TIMEOUT, operations.synced()).await;
        });
        sources.enqueue_on_change(builder);
        Ok(sources)
    }

    fn enqueue_on_change(&self, builder: &ControllerBuilder) {
        enqueue_farms(builder, &self.schedulers);
        enqueue_farms(builder, &self.workers);
        enqueue_farms(builder, &self.storages);
        enqueue_farms(builder, &self.frontends);
        enqueue_farms(builder, &self.browsers);
        // What a component owns carries the label of its farm.
        enqueue_owners(builder, &self.deployments);
        enqueue_owners(builder, &self.stateful_sets);
        enqueue_owners(builder, &self.services);
        enqueue_owners(builder, &self.ingresses);
        enqueue_owners(builder, &self.accounts);
        enqueue_owners(builder, &self.budgets);
        enqueue_owners(builder, &self.policies);
        enqueue_owners(builder, &self.pods);
        enqueue_owners(builder, &self.config_maps);
        enqueue_owners(builder, &self.operations);
        let storages = self.storages.clone();
        builder.on_change(&self.claims, move |change, enqueuer| {
            for storage in storages.list(change.key().namespace()) {
                enqueuer.enqueue(farm_key(&*storage));
            }
        });
        self.enqueue_users_of_config_maps(builder);
    }

    fn enqueue_users_of_config_maps(&self, builder: &ControllerBuilder) {
        let caches = (
            self.schedulers.clone(),
            self.workers.clone(),
            self.storages.clone(),
            self.frontends.clone(),
            self.browsers.clone(),
        );
        builder.on_change(&self.config_maps, move |change, enqueuer| {
            let key = change.key();
            let namespace = key.namespace();
            let mut all: Vec<Component> = components(&caches.0.list(namespace)).collect();
            all.extend(components(&caches.1.list(namespace)));
            all.extend(components(&caches.2.list(namespace)));
            all.extend(components(&caches.3.list(namespace)));
            all.extend(components(&caches.4.list(namespace)));
            for component in all {
                if component.config_map_name() == Some(key.name()) {
                    enqueuer.enqueue(Key::new(namespace, component.farm()));
                }
            }
        });
    }

    /// Waits until all caches are complete, for callers that do not run the controller.
    pub(crate) async fn synced(&self) {
        self.schedulers.synced().await;
        self.workers.synced().await;
        self.storages.synced().await;
        self.frontends.synced().await;
        self.browsers.synced().await;
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
        let key = component.key();
        Some(match component.kind {
            ComponentKind::Scheduler => Reconciled::Scheduler(self.schedulers.get(&key)?),
            ComponentKind::Worker => Reconciled::Worker(self.workers.get(&key)?),
            ComponentKind::Storage => Reconciled::Storage(self.storages.get(&key)?),
            ComponentKind::Frontend => Reconciled::Frontend(self.frontends.get(&key)?),
            ComponentKind::Browser => Reconciled::Browser(self.browsers.get(&key)?),
        })
    }

    /// The address of a scheduler's build queue. The address of its Service is the same everywhere, while
    /// its name resolves only inside the cluster.
    pub(crate) fn queue_address(&self, namespace: &str, scheduler: &str) -> Option<String> {
        let service = self.services.get(&Key::new(namespace, scheduler))?;
        let address = service.spec.as_ref()?.cluster_ip.clone()?;
        let port = ports::BUILD_QUEUE_STATE;
        match &*address {
            "" | "None" => None,
            address if address.contains(':') => Some(format!("[{address}]:{port}")),
            address => Some(format!("{address}:{port}")),
        }
    }

    fn all_components(&self, namespace: &str) -> Vec<Component> {
        let mut all: Vec<Component> = components(&self.storages.list(namespace)).collect();
        all.extend(components(&self.schedulers.list(namespace)));
        all.extend(components(&self.workers.list(namespace)));
        all.extend(components(&self.frontends.list(namespace)));
        all.extend(components(&self.browsers.list(namespace)));
        all.sort_by(|one, other| (one.kind, one.name()).cmp(&(other.kind, other.name())));
        all
    }

    /// The facts about a farm, without what schedulers say; none if it has no components.
    pub(crate) fn gather(&self, key: &Key) -> Option<FarmFacts> {
        let namespace = key.namespace();
        let mut members = self.all_components(namespace);
        let claimed_elsewhere = claimed_elsewhere(key.name(), &members);
        members.retain(|it| it.farm() == key.name());
        if members.is_empty() {
            return None;
        }
        let mut facts = FarmFacts {
            live: BTreeMap::new(),
            foreign: BTreeSet::new(),
            pods: self.pods_by_component(namespace, &members),
            claims: self.claims(namespace),
            user_configs: BTreeMap::new(),
            claimed_elsewhere,
            queues: BTreeMap::new(),
            refused: self.refusals.of(&members, self.clock.now()),
            farm: key.clone(),
            operations: self.operations(namespace),
            operator_namespace: self.operator_namespace.clone(),
            now: self.clock.now(),
            components: members,
        };
        self.objects(namespace, &mut facts);
        for component in facts.components.clone() {
            if let Some(name) = component.config_map_name() {
                let config = self.user_config(&component, name);
                facts
                    .user_configs
                    .insert(component.uid().to_owned(), config);
            }
        }
        Some(facts)
    }

    fn objects(&self, namespace: &str, facts: &mut FarmFacts) {
        sort_objects(&self.config_maps.list(namespace), facts);
        sort_objects(&self.accounts.list(namespace), facts);
        sort_objects(&self.services.list(namespace), facts);
        sort_objects(&self.deployments.list(namespace), facts);
        sort_objects(&self.stateful_sets.list(namespace), facts);
        sort_objects(&self.ingresses.list(namespace), facts);
        sort_objects(&self.budgets.list(namespace), facts);
        sort_objects(&self.policies.list(namespace), facts);
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

fn enqueue_farms<K>(builder: &ControllerBuilder, cache: &Cache<K>)
where
    K: Resource<DynamicType = ()> + Send + Sync + 'static,
{
    builder.on_change(cache, |change, enqueuer| {
        enqueuer.enqueue(farm_key(&**change.object()));
        // A component that changed its farm is missed by the former.
        if let Change::Modified { old, .. } = change {
            enqueuer.enqueue(farm_key(&**old));
        }
    });
}

/// Objects that we made carry the label of their farm.
fn enqueue_owners<K>(builder: &ControllerBuilder, cache: &Cache<K>)
where
    K: Resource<DynamicType = ()> + Send + Sync + 'static,
{
    let enqueue = |object: &K, enqueuer: &Enqueuer<Key>| {
        let labels = object.meta().labels.as_ref();
        let ours = labels.and_then(|it| it.get(MANAGED_BY_LABEL));
        if ours.is_some_and(|it| it == MANAGER) {
            enqueuer.enqueue(farm_key(object));
        }
    };
    builder.on_change(cache, move |change, enqueuer| {
        enqueue(change.object(), enqueuer);
        if let Change::Modified { old, .. } = change {
            enqueue(old, enqueuer);
        }
    });
}

fn farm_key<K: Resource>(object: &K) -> Key {
    let namespace = object.meta().namespace.as_deref().unwrap_or_default();
    Key::new(namespace, farm_of(object.meta()))
}

/// Sorts the objects of a kind by the components that own them.
fn sort_objects<K>(objects: &[Arc<K>], facts: &mut FarmFacts)
where
    K: Object + Resource<Scope = NamespaceResourceScope>,
{
    let kind = ResourceKind::of::<K>();
    for object in objects {
        let owners = object.owner_references().iter();
        let owner = owners.clone().find(|owner| owner.controller == Some(true));
        let owner = owner.map(|owner| owner.uid.as_str()).unwrap_or_default();
        let known = facts.components.iter().any(|it| it.uid() == owner);
        if !known {
            let name = (kind.resource.plural.clone(), object.name_any());
            facts.foreign.insert(name);
            continue;
        }
        let value = serde_json::to_value(&**object).unwrap_or_default();
        if let Ok(object) = serde_json::from_value::<DynamicObject>(value) {
            let live = facts.live.entry(owner.to_owned()).or_default();
            live.push((kind.clone(), object));
        }
    }
}

fn pod_facts(pod: &Pod) -> PodFacts {
    let status = pod.status.as_ref();
    let phase = status
        .and_then(|it| it.phase.as_deref())
        .unwrap_or_default();
    let conditions = status.iter().flat_map(|it| it.conditions.iter().flatten());
    let ready = conditions
        .clone()
        .any(|it| it.type_ == "Ready" && it.status == "True");
    let cost = pod.annotations().get(DELETION_COST);
    let created = pod.metadata.creation_timestamp.as_ref();
    PodFacts {
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        assigned: pod.spec.as_ref().is_some_and(|it| it.node_name.is_some()),
        running: phase == "Running",
        ready,
        deleting: pod.metadata.deletion_timestamp.is_some(),
        finished: ["Succeeded", "Failed"].contains(&phase),
        created_at: created.map(|it| it.0),
        deletion_cost: cost.and_then(|it| it.parse().ok()).unwrap_or(0),
        revision: pod
            .annotations()
            .get(ANNOTATION_REVISION)
            .cloned()
            .unwrap_or_default(),
        trouble: trouble(pod),
    }
}

/// Why a container does not run.
fn trouble(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let init = status.init_container_statuses.iter().flatten();
    let mut all = init.chain(status.container_statuses.iter().flatten());
    all.find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        let reason = waiting.reason.as_deref()?;
        if ["PodInitializing", "ContainerCreating"].contains(&reason) {
            return None;
        }
        let message = waiting.message.as_deref().unwrap_or_default();
        let ended = container
            .last_state
            .as_ref()
            .and_then(|it| it.terminated.as_ref());
        let code = ended
            .map(|it| format!(" (exit code {})", it.exit_code))
            .unwrap_or_default();
        Some(
            format!("{}: {reason}{code} {message}", container.name)
                .trim_end()
                .to_owned(),
        )
    })
}
