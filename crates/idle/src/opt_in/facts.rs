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
    api::{ListParams, ObjectMeta},
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
    annotations::{ENABLED, SERVICE, TARGET},
    decide::FROM_ANNOTATIONS,
};
use crate::{
    api::{ElastiService, ScaleTarget, labels::PRIVATE},
    namespaces::Namespaces,
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
}

impl AnnotationSources {
    pub(super) fn new(
        builder: &mut ControllerBuilder,
        context: &Context,
        operator_namespace: &str,
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
        let needed = has(&service.metadata, ENABLED) && !has(&service.metadata, TARGET);
        let targets = if needed {
            self.selected_workloads(service).await
        } else {
            Ok(Vec::new())
        };
        self.facts(service, Ok(vec![service.name_any()]), targets)
    }

    async fn of_workload<K>(
        &self,
        workload: &Metadata<K>,
        template: fn(&K) -> Option<&PodTemplateSpec>,
    ) -> Option<Facts>
    where
        K: Object + Resource<Scope = NamespaceResourceScope> + Default + 'static,
    {
        let key = Key::of(workload);
        let needed = has(&workload.metadata, ENABLED) && !has(&workload.metadata, SERVICE);
        let services = if needed {
            let api: Api<K> = Api::namespaced(self.context.client.clone(), key.namespace());
            let whole = api.get(key.name()).await;
            whole.map(|whole| self.selecting_services(key.namespace(), template(&whole)))
        } else {
            Ok(Vec::new())
        };
        let itself = ScaleTarget {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            name: key.name().to_owned(),
        };
        // Only the metadata are used.
        let mut annotated = K::default();
        annotated.meta_mut().clone_from(&workload.metadata);
        self.facts(&annotated, services, Ok(vec![itself]))
    }

    fn facts<K>(
        &self,
        annotated: &K,
        services: kube::Result<Vec<String>>,
        targets: kube::Result<Vec<ScaleTarget>>,
    ) -> Option<Facts>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        let error = services.as_ref().err().or(targets.as_ref().err());
        let unreadable = error.map(Unreadable::new);
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
            services: services.unwrap_or_default(),
            targets: targets.unwrap_or_default(),
            unreadable,
            elasti_services: self.elasti_services.list(&namespace),
            off: self.namespaces.switches(&namespace).off,
        })
    }

    /// The workloads that the Service selects.
    async fn selected_workloads(&self, service: &Service) -> kube::Result<Vec<ScaleTarget>> {
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.clone());
        let selector = selector.unwrap_or_default();
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
        let selecting = public.filter(|service| {
            let selector = service.spec.as_ref().and_then(|it| it.selector.as_ref());
            selector.is_some_and(|selector| selects(selector, template))
        });
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

/// An empty selector selects nothing.
fn selects(selector: &BTreeMap<String, String>, template: Option<&PodTemplateSpec>) -> bool {
    let metadata = template.and_then(|template| template.metadata.as_ref());
    let labels = metadata.and_then(|metadata| metadata.labels.as_ref());
    let has_all = |labels: &BTreeMap<String, String>| {
        let mut wanted = selector.iter();
        wanted.all(|(name, value)| labels.get(name) == Some(value))
    };
    !selector.is_empty() && labels.is_some_and(has_all)
}
