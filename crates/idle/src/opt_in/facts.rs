//! The facts about an object that may have annotations, and how they are gathered.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{ObjectReference, PodTemplateSpec, Service},
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DynamicObject, ListParams, ObjectMeta},
};
use neap_kit::{
    apply::{Object, ObjectRef},
    builder::ControllerBuilder,
    context::Context,
    controller::Enqueuer,
    key::Key,
    watch::{Cache, Change, Metadata, Selection, WatchesStopped},
    why::chain,
};

use super::{
    annotations::{self, ENABLED, OptIn},
    decide::FROM_ANNOTATIONS,
    limits::OptInLimits,
};
use crate::{
    api::{AutoscalerKind, ElastiService, ScaleTarget, labels::PRIVATE},
    namespaces::Namespaces,
    target::{KindLookup, scaled_object_kind},
};

/// The kinds that can have annotations.
pub(super) const SERVICE_KIND: &str = "Service";
pub(super) const DEPLOYMENT_KIND: &str = "Deployment";
pub(super) const STATEFUL_SET_KIND: &str = "StatefulSet";

/// Everything that is known about an object that may have annotations.
#[derive(Debug, Clone)]
pub struct Facts {
    /// The metadata of the object.
    pub annotated: ObjectMeta,
    /// The object, for the check that it still exists.
    pub object: ObjectRef,
    /// The object, for Events.
    pub reference: ObjectReference,
    /// The object as an owner.
    pub owner: OwnerReference,
    /// The Services that it may be about: itself, or those that select the pods of the workload.
    pub services: Vec<String>,
    /// The workloads that it may be about: itself, or those that the Service selects.
    pub targets: Vec<ScaleTarget>,
    /// Whether the Service that is annotated or named selects the pods of the workload that is named or
    /// annotated; none if nothing is named, or if it does not exist.
    pub named_are_related: Option<bool>,
    /// What the ScaledObject that is named scales; none if it does not exist, or none is named.
    pub scaled_object_target: Option<ScaleTarget>,
    /// What the operator's settings allow.
    pub limits: OptInLimits,
    /// Why the Services or workloads could not be read, if so.
    pub unreadable: Option<Unreadable>,
    /// All ElastiServices of the namespace.
    pub elasti_services: Vec<Arc<ElastiService>>,
    /// No service sleeps in the namespace, so no ElastiService is created. Existing ones stay.
    pub off: bool,
}

/// A failed read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The error.
    pub message: String,
    /// Whether the API server refused the read, which does not pass by itself.
    pub refused: bool,
}

impl Unreadable {
    fn new(error: &kube::Error) -> Self {
        Self {
            message: chain(error),
            refused: matches!(error, kube::Error::Api(_)),
        }
    }
}

/// The sources of facts about all objects that may have annotations.
pub(super) struct AnnotationSources {
    context: Context,
    pub(super) namespaces: Namespaces,
    elasti_services: Cache<ElastiService>,
    services: Cache<Service>,
    deployments: Cache<Metadata<Deployment>>,
    stateful_sets: Cache<Metadata<StatefulSet>>,
    kinds: KindLookup,
    limits: OptInLimits,
}

/// What the annotations of an object refer to.
#[derive(Default)]
struct References {
    services: Vec<String>,
    targets: Vec<ScaleTarget>,
    named_are_related: Option<bool>,
    scaled_object_target: Option<ScaleTarget>,
}

impl AnnotationSources {
    pub(super) fn new(
        builder: &mut ControllerBuilder,
        context: &Context,
        operator_namespace: &str,
        limits: &OptInLimits,
    ) -> Result<Self, WatchesStopped> {
        let everything = Selection::default();
        let services = builder.scoped(&everything, false)?;
        let deployments = builder.scoped(&everything, false)?;
        let stateful_sets = builder.scoped(&everything, false)?;
        let annotated = (services.clone(), deployments.clone(), stateful_sets.clone());
        let on_change = move |namespace: &str, enqueuer: &Enqueuer<Key>| {
            enqueue_all(SERVICE_KIND, &annotated.0, namespace, enqueuer);
            enqueue_all(DEPLOYMENT_KIND, &annotated.1, namespace, enqueuer);
            enqueue_all(STATEFUL_SET_KIND, &annotated.2, namespace, enqueuer);
        };
        let namespaces =
            Namespaces::new(builder, context, operator_namespace, Arc::new(on_change))?;
        let sources = Self {
            elasti_services: builder.scoped(&everything, false)?,
            context: context.clone(),
            namespaces,
            services,
            deployments,
            stateful_sets,
            kinds: KindLookup::default(),
            limits: limits.clone(),
        };
        sources.enqueue_on_change(builder);
        Ok(sources)
    }

    fn enqueue_on_change(&self, builder: &ControllerBuilder) {
        builder.on_change(&self.services, |change, enqueuer| {
            enqueue_annotated(SERVICE_KIND, change, enqueuer);
        });
        builder.on_change(&self.deployments, |change, enqueuer| {
            enqueue_annotated(DEPLOYMENT_KIND, change, enqueuer);
        });
        builder.on_change(&self.stateful_sets, |change, enqueuer| {
            enqueue_annotated(STATEFUL_SET_KIND, change, enqueuer);
        });
        // Changes of users to a generated ElastiService are reverted, and an object that waited for a name
        // may use it.
        builder.on_change(&self.elasti_services, |change, enqueuer| {
            let service = change.object();
            let namespace = service.namespace().unwrap_or_default();
            for owner in service
                .owner_references()
                .iter()
                .filter(|_| service.labels().contains_key(FROM_ANNOTATIONS))
            {
                enqueuer.enqueue(key_of(&owner.kind, &namespace, &owner.name));
            }
            enqueuer.enqueue(key_of(SERVICE_KIND, &namespace, &service.spec.service));
        });
    }

    /// Waits until all caches are complete, for callers that do not run the controller.
    pub(super) async fn synced(&self) {
        self.elasti_services.synced().await;
        self.services.synced().await;
        self.deployments.synced().await;
        self.stateful_sets.synced().await;
        self.namespaces.synced().await;
    }

    /// Gathers the facts about the object of a key; none if it does not exist.
    pub(super) async fn gather(&self, key: &Key) -> Option<Facts> {
        let (kind, name) = key.name().split_once('/').unwrap_or_default();
        let key = Key::new(key.namespace(), name);
        match kind {
            SERVICE_KIND => self.of_service(&*self.services.get(&key)?).await,
            DEPLOYMENT_KIND => {
                let found = self.deployments.get(&key)?;
                self.of_workload::<Deployment>(&found, deployment_template)
                    .await
            }
            _ => {
                let found = self.stateful_sets.get(&key)?;
                self.of_workload::<StatefulSet>(&found, stateful_set_template)
                    .await
            }
        }
    }

    async fn of_service(&self, service: &Service) -> Option<Facts> {
        let references = self.references_of_service(service).await;
        self.facts(service, references)
    }

    async fn references_of_service(&self, service: &Service) -> Result<References, Unreadable> {
        let opt_in = opt_in_of(&service.metadata);
        let namespace = service.namespace().unwrap_or_default();
        let mut references = References {
            services: vec![service.name_any()],
            ..References::default()
        };
        match opt_in.as_ref().map(|opt_in| &opt_in.target) {
            Some(Some(target)) => {
                let labels = self.pod_labels(&namespace, target).await?;
                let selector = selector(service);
                references.named_are_related =
                    labels.map(|labels| selects_labels(&selector, Some(&labels)));
            }
            Some(None) => {
                let targets = self.selected_workloads(service).await;
                references.targets = targets.map_err(|error| Unreadable::new(&error))?;
            }
            None => {}
        }
        references.scaled_object_target = self.scaled_object(&namespace, opt_in).await?;
        Ok(references)
    }

    async fn of_workload<K>(
        &self,
        workload: &Metadata<K>,
        template: fn(&K) -> Option<&PodTemplateSpec>,
    ) -> Option<Facts>
    where
        K: Object + Resource<Scope = NamespaceResourceScope> + Default + 'static,
    {
        let references = self.references_of_workload(workload, template).await;
        // Only the metadata are used.
        let mut annotated = K::default();
        annotated.meta_mut().clone_from(&workload.metadata);
        self.facts(&annotated, references)
    }

    async fn references_of_workload<K>(
        &self,
        workload: &Metadata<K>,
        template: fn(&K) -> Option<&PodTemplateSpec>,
    ) -> Result<References, Unreadable>
    where
        K: Object + Resource<Scope = NamespaceResourceScope> + Default + 'static,
    {
        let key = Key::of(workload);
        let itself = ScaleTarget {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            name: key.name().to_owned(),
        };
        let mut references = References {
            targets: vec![itself],
            ..References::default()
        };
        let Some(opt_in) = opt_in_of(&workload.metadata) else {
            return Ok(references);
        };
        let api: Api<K> = Api::namespaced(self.context.client.clone(), key.namespace());
        let whole = api.get(key.name()).await;
        let whole = whole.map_err(|error| Unreadable::new(&error))?;
        if let Some(named) = &opt_in.service {
            let named = self.services.get(&Key::new(key.namespace(), named));
            references.named_are_related =
                named.map(|named| selects(&selector(&named), template(&whole)));
        } else {
            references.services = self.selecting_services(key.namespace(), template(&whole));
        }
        references.scaled_object_target = self.scaled_object(key.namespace(), Some(opt_in)).await?;
        Ok(references)
    }

    /// The labels of the pods of a workload; none if it does not exist.
    async fn pod_labels(
        &self,
        namespace: &str,
        target: &ScaleTarget,
    ) -> Result<Option<BTreeMap<String, String>>, Unreadable> {
        let client = self.context.client.clone();
        let kind = match self.kinds.of(&client, target).await {
            Ok(kind) => kind,
            Err(unknown) if unknown.is_definite() => return Ok(None),
            Err(unknown) => {
                return Err(Unreadable {
                    message: chain(&unknown),
                    refused: false,
                });
            }
        };
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &kind.resource);
        let found = api.get_opt(&target.name).await;
        let found = found.map_err(|error| Unreadable::new(&error))?;
        Ok(found.map(|found| {
            let labels = &found.data["spec"]["template"]["metadata"]["labels"];
            serde_json::from_value(labels.clone()).unwrap_or_default()
        }))
    }

    /// What the ScaledObject scales that the annotations name; none if it does not exist or none is named.
    async fn scaled_object(
        &self,
        namespace: &str,
        opt_in: Option<OptIn>,
    ) -> Result<Option<ScaleTarget>, Unreadable> {
        let named = opt_in.and_then(|opt_in| opt_in.spec.autoscaler);
        let Some(named) = named.filter(|named| named.kind == AutoscalerKind::Keda) else {
            return Ok(None);
        };
        let (client, kind) = (self.context.client.clone(), scaled_object_kind());
        let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &kind.resource);
        let found = match api.get_opt(&named.name).await {
            Ok(found) => found,
            // Without KEDA there is no such kind.
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => return Err(Unreadable::new(&error)),
        };
        Ok(found.map(|found| {
            let target = &found.data["spec"]["scaleTargetRef"];
            let text =
                |field: &str, usual: &str| target[field].as_str().unwrap_or(usual).to_owned();
            ScaleTarget {
                api_version: text("apiVersion", "apps/v1"),
                kind: text("kind", DEPLOYMENT_KIND),
                name: text("name", ""),
            }
        }))
    }

    fn facts<K>(&self, annotated: &K, references: Result<References, Unreadable>) -> Option<Facts>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let (references, unreadable) = match references {
            Ok(references) => (references, None),
            Err(unreadable) => (References::default(), Some(unreadable)),
        };
        if let Some(Unreadable { message, .. }) = &unreadable {
            let key = Key::of(annotated);
            tracing::warn!(%key, error = message, "the objects that an annotation is about cannot be read");
        }
        let namespace = annotated.meta().namespace.clone().unwrap_or_default();
        Some(Facts {
            annotated: annotated.meta().clone(),
            object: ObjectRef::of(annotated),
            reference: annotated.object_ref(&()),
            owner: annotated.owner_ref(&())?,
            services: references.services,
            targets: references.targets,
            named_are_related: references.named_are_related,
            scaled_object_target: references.scaled_object_target,
            limits: self.limits.clone(),
            unreadable,
            elasti_services: self.elasti_services.list(&namespace),
            off: self.namespaces.switches(&namespace).off,
        })
    }

    /// The workloads that the Service selects.
    async fn selected_workloads(&self, service: &Service) -> kube::Result<Vec<ScaleTarget>> {
        let selector = selector(service);
        let namespace = service.namespace().unwrap_or_default();
        let deployments: Api<Deployment> = Api::namespaced(self.context.client.clone(), &namespace);
        let sets: Api<StatefulSet> = Api::namespaced(self.context.client.clone(), &namespace);
        let all = ListParams::default();
        let (deployments, sets) = (deployments.list(&all).await?, sets.list(&all).await?);
        let is_selected = |template: Option<&PodTemplateSpec>| selects(&selector, template);
        let deployments = deployments
            .iter()
            .filter(|it| is_selected(deployment_template(it)));
        let sets = sets
            .iter()
            .filter(|it| is_selected(stateful_set_template(it)));
        let deployments = deployments.map(|it| apps_target(DEPLOYMENT_KIND, it.name_any()));
        let sets = sets.map(|it| apps_target(STATEFUL_SET_KIND, it.name_any()));
        Ok(deployments.chain(sets).collect())
    }

    /// The public Services that select pods of this template.
    fn selecting_services(
        &self,
        namespace: &str,
        template: Option<&PodTemplateSpec>,
    ) -> Vec<String> {
        let services = self.services.list(namespace).into_iter();
        let public = services.filter(|it| !it.labels().contains_key(PRIVATE));
        let selecting = public.filter(|service| selects(&selector(service), template));
        selecting.map(|service| service.name_any()).collect()
    }
}

/// The key of an object, which includes its kind.
pub(super) fn key_of(kind: &str, namespace: &str, name: &str) -> Key {
    Key::new(namespace, &format!("{kind}/{name}"))
}

fn enqueue_all<K>(kind: &str, all: &Cache<K>, namespace: &str, enqueuer: &Enqueuer<Key>)
where
    K: Resource<DynamicType = ()> + Send + Sync + 'static,
{
    for object in all.list(namespace) {
        enqueue_annotated(kind, &Change::Added(object), enqueuer);
    }
}

/// Enqueues objects that have or had the annotation; there are many others.
fn enqueue_annotated<K: Resource<DynamicType = ()>>(
    kind: &str,
    change: &Change<K>,
    enqueuer: &Enqueuer<Key>,
) {
    let is_annotated = |object: &Arc<K>| has(object.meta(), ENABLED);
    let was = match change {
        Change::Modified { old, .. } => is_annotated(old),
        _ => false,
    };
    if was || is_annotated(change.object()) {
        let key = change.key();
        enqueuer.enqueue(key_of(kind, key.namespace(), key.name()));
    }
}

fn has(metadata: &ObjectMeta, annotation: &str) -> bool {
    let annotations = metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(annotation))
}

fn apps_target(kind: &str, name: String) -> ScaleTarget {
    ScaleTarget {
        api_version: "apps/v1".to_owned(),
        kind: kind.to_owned(),
        name,
    }
}

fn deployment_template(deployment: &Deployment) -> Option<&PodTemplateSpec> {
    deployment.spec.as_ref().map(|spec| &spec.template)
}

fn stateful_set_template(set: &StatefulSet) -> Option<&PodTemplateSpec> {
    set.spec.as_ref().map(|spec| &spec.template)
}

fn selector(service: &Service) -> BTreeMap<String, String> {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.clone());
    selector.unwrap_or_default()
}

/// The settings in the annotations; none if they do not enable sleep, or are invalid.
fn opt_in_of(metadata: &ObjectMeta) -> Option<OptIn> {
    annotations::parse(metadata.annotations.as_ref()?).ok()?
}

fn selects(selector: &BTreeMap<String, String>, template: Option<&PodTemplateSpec>) -> bool {
    let metadata = template.and_then(|template| template.metadata.as_ref());
    selects_labels(
        selector,
        metadata.and_then(|metadata| metadata.labels.as_ref()),
    )
}

/// An empty selector selects nothing.
fn selects_labels(
    selector: &BTreeMap<String, String>,
    labels: Option<&BTreeMap<String, String>>,
) -> bool {
    let has_all = |labels: &BTreeMap<String, String>| {
        let mut wanted = selector.iter();
        wanted.all(|(name, value)| labels.get(name) == Some(value))
    };
    !selector.is_empty() && labels.is_some_and(has_all)
}
