//! Keeps an ElastiService for everything that is annotated.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        apps::v1::{Deployment, StatefulSet},
        core::v1::{PodTemplateSpec, Service as KubeService},
    },
};
use kube::{
    Api, Resource, ResourceExt,
    api::{ListParams, ObjectMeta},
};
use neap_kit::{
    apply::{Error, Object},
    controller::{Outcome, Trigger},
    event::Note,
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Change, Ended, Metadata, Selection},
    why::chain,
    wiring::{Tools, Wiring},
};

use super::{
    annotations::{ENABLED, SERVICE, TARGET},
    decide::{Decision, FROM, Facts, decide},
};
use crate::{
    api::{ElastiService, ScaleTarget},
    service::namespaces::Namespaces,
};

const NAME: &str = "idle-annotations";
/// What could not be found or asked is looked for again after this time.
const AGAIN: Duration = Duration::from_mins(1);

/// What can be annotated.
const SERVICES: &str = "Service";
const DEPLOYMENTS: &str = "Deployment";
const STATEFUL_SETS: &str = "StatefulSet";

/// Keeps an ElastiService for everything that is annotated. `home` is the namespace of the operator:
/// what is said there is meant for all.
pub fn service(site: &Site, home: &str) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, NAME);
    let everything = Selection::default();
    let services = wiring.here(&everything, false)?;
    let deployments = wiring.here(&everything, false)?;
    let stateful_sets = wiring.here(&everything, false)?;
    let annotated = (services.clone(), deployments.clone(), stateful_sets.clone());
    let tell = move |namespace: &str, trigger: &Trigger<Key>| {
        look_at_all(SERVICES, &annotated.0, namespace, trigger);
        look_at_all(DEPLOYMENTS, &annotated.1, namespace, trigger);
        look_at_all(STATEFUL_SETS, &annotated.2, namespace, trigger);
    };
    let namespaces = Namespaces::new(&mut wiring, site, home, Arc::new(tell))?;
    let work = Work {
        all: wiring.here(&everything, false)?,
        namespaces: namespaces.clone(),
        services,
        deployments,
        stateful_sets,
        tools: wiring.tools(),
        site: site.clone(),
    };
    wiring.follow(&work.services, |change, trigger| {
        look(SERVICES, change, trigger);
    });
    wiring.follow(&work.deployments, |change, trigger| {
        look(DEPLOYMENTS, change, trigger);
    });
    wiring.follow(&work.stateful_sets, |change, trigger| {
        look(STATEFUL_SETS, change, trigger);
    });
    // What somebody does to one that was made is undone, and who waited for a name may have it.
    wiring.follow(&work.all, |change, trigger| {
        let made = change.object();
        let namespace = made.namespace().unwrap_or_default();
        for owner in made
            .owner_references()
            .iter()
            .filter(|_| made.labels().contains_key(FROM))
        {
            trigger.changed(place(&owner.kind, &namespace, &owner.name));
        }
        trigger.changed(place(SERVICES, &namespace, &made.spec.service));
    });
    let controller = wiring.service(work, Work::reconcile);
    Ok(Service::new(NAME, |stop| async move {
        tokio::join!(controller.run(stop.clone()), namespaces.run(stop));
    }))
}

struct Work {
    site: Site,
    namespaces: Namespaces,
    all: Cache<ElastiService>,
    services: Cache<KubeService>,
    deployments: Cache<Metadata<Deployment>>,
    stateful_sets: Cache<Metadata<StatefulSet>>,
    tools: Tools,
}

/// A key that says of what kind the object is.
fn place(kind: &str, namespace: &str, name: &str) -> Key {
    Key::new(namespace, &format!("{kind}/{name}"))
}

fn look_at_all<K>(kind: &str, all: &Cache<K>, namespace: &str, trigger: &Trigger<Key>)
where
    K: Resource<DynamicType = ()> + Send + Sync + 'static,
{
    for object in all.list(namespace) {
        look(kind, &Change::Added(object), trigger);
    }
}

/// Whatever is or was annotated is looked at; there are many others.
fn look<K: Resource<DynamicType = ()>>(kind: &str, change: &Change<K>, trigger: &Trigger<Key>) {
    let says = |object: &Arc<K>| {
        let annotations = object.meta().annotations.as_ref();
        annotations.is_some_and(|all| all.contains_key(ENABLED))
    };
    let was = match change {
        Change::Modified { old, .. } => says(old),
        _ => false,
    };
    if was || says(change.object()) {
        let key = change.key();
        trigger.changed(place(kind, key.namespace(), key.name()));
    }
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let (kind, name) = key.name().split_once('/').unwrap_or_default();
        let at = Key::new(key.namespace(), name);
        match kind {
            SERVICES => match self.services.get(&at) {
                Some(service) => self.of_service(&service).await,
                None => Ok(Outcome::Gone),
            },
            DEPLOYMENTS => match self.deployments.get(&at) {
                Some(found) => self.of_target::<Deployment>(&found, template).await,
                None => Ok(Outcome::Gone),
            },
            _ => match self.stateful_sets.get(&at) {
                Some(found) => self.of_target::<StatefulSet>(&found, template_of_set).await,
                None => Ok(Outcome::Gone),
            },
        }
    }

    async fn of_service(&self, service: &KubeService) -> Result<Outcome, Error> {
        let targets = if is_asked(&service.metadata) && !says(&service.metadata, TARGET) {
            match self.behind(service).await {
                Ok(found) => found,
                Err(error) => return Ok(self.unread(service, &error).await),
            }
        } else {
            Vec::new()
        };
        self.settle(service, vec![service.name_any()], targets)
            .await
    }

    async fn of_target<K>(
        &self,
        target: &Metadata<K>,
        template: fn(&K) -> Option<&PodTemplateSpec>,
    ) -> Result<Outcome, Error>
    where
        K: Object + Resource<Scope = NamespaceResourceScope> + Default + 'static,
    {
        let key = Key::of(target);
        let services = if is_asked(&target.metadata) && !says(&target.metadata, SERVICE) {
            let api: Api<K> = Api::namespaced(self.site.client.clone(), key.namespace());
            match api.get(key.name()).await {
                Ok(whole) => self.before(key.namespace(), template(&whole)),
                Err(error) => return Ok(self.unread(target, &error).await),
            }
        } else {
            Vec::new()
        };
        let itself = ScaleTarget {
            api_version: K::api_version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            name: key.name().to_owned(),
        };
        // Nothing else of it is looked at.
        let mut annotated = K::default();
        annotated.meta_mut().clone_from(&target.metadata);
        self.settle(&annotated, services, vec![itself]).await
    }

    /// Nothing is decided on what cannot be read. Whoever annotated it is told if the server says no:
    /// that does not pass by itself.
    async fn unread<K>(&self, annotated: &K, error: &kube::Error) -> Outcome
    where
        K: Resource<DynamicType = ()>,
    {
        let (key, error_chain) = (Key::of(annotated), chain(error));
        tracing::warn!(
            %key, error = error_chain, "what an annotation is about cannot be read; it is tried again"
        );
        if matches!(error, kube::Error::Api(_)) {
            let message = format!("what it is about cannot be read: {error_chain}");
            self.tools
                .tell(annotated, &Note::warning("NotRead", message))
                .await;
        }
        Outcome::Again(AGAIN)
    }

    async fn settle<K>(
        &self,
        annotated: &K,
        services: Vec<String>,
        targets: Vec<ScaleTarget>,
    ) -> Result<Outcome, Error>
    where
        K: Object,
    {
        let Some(owner) = annotated.owner_ref(&()) else {
            return Ok(Outcome::Settled);
        };
        let namespace = annotated.meta().namespace.clone().unwrap_or_default();
        let all = self.all.list(&namespace);
        let decision = decide(&Facts {
            annotated: annotated.meta(),
            owner,
            services,
            targets,
            all: all.iter().map(|one| &**one).collect(),
            off: self.namespaces.switches(&namespace).off,
        });
        let again = decision.note.is_some();
        self.carry_out(annotated, decision).await?;
        Ok(if again {
            Outcome::Again(AGAIN)
        } else {
            Outcome::Settled
        })
    }

    async fn carry_out<K>(&self, annotated: &K, decision: Decision) -> Result<(), Error>
    where
        K: Object,
    {
        let hand = &self.tools.hand;
        for service in &decision.remove {
            hand.remove(service, None).await?;
        }
        if let Some(keep) = decision.keep {
            let makes = keep.resource_version().is_none();
            self.tools.confirm(annotated, makes).await?;
            if keep.resource_version().is_some() {
                hand.replace(&*keep).await?;
            } else if hand.create(&*keep).await?.is_none() {
                // One that is there without being seen is looked at when the watch shows it.
                return Err(Error::Replaced(Key::of(&*keep)));
            }
        }
        if let Some(note) = &decision.note {
            self.tools.tell(annotated, note).await;
        }
        Ok(())
    }

    /// What the Service selects.
    async fn behind(&self, service: &KubeService) -> kube::Result<Vec<ScaleTarget>> {
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.clone());
        let selector = selector.unwrap_or_default();
        let namespace = service.namespace().unwrap_or_default();
        let deployments: Api<Deployment> = Api::namespaced(self.site.client.clone(), &namespace);
        let sets: Api<StatefulSet> = Api::namespaced(self.site.client.clone(), &namespace);
        let all = ListParams::default();
        let (deployments, sets) = (deployments.list(&all).await?, sets.list(&all).await?);
        let fits = |template: Option<&PodTemplateSpec>| selects(&selector, template);
        let deployments = deployments.iter().filter(|it| fits(template(it)));
        let sets = sets.iter().filter(|it| fits(template_of_set(it)));
        let deployments = deployments.map(|it| apps(DEPLOYMENTS, it.name_any()));
        let sets = sets.map(|it| apps(STATEFUL_SETS, it.name_any()));
        Ok(deployments.chain(sets).collect())
    }

    /// The Services that select pods of this template.
    fn before(&self, namespace: &str, template: Option<&PodTemplateSpec>) -> Vec<String> {
        let services = self.services.list(namespace).into_iter();
        let public =
            services.filter(|it| !it.labels().contains_key(crate::service::objects::PRIVATE));
        let fitting = public.filter(|service| {
            let selector = service.spec.as_ref().and_then(|it| it.selector.as_ref());
            selector.is_some_and(|selector| selects(selector, template))
        });
        fitting.map(|service| service.name_any()).collect()
    }
}

fn is_asked(metadata: &ObjectMeta) -> bool {
    says(metadata, ENABLED)
}

fn says(metadata: &ObjectMeta, name: &str) -> bool {
    let annotations = metadata.annotations.as_ref();
    annotations.is_some_and(|all| all.contains_key(name))
}

fn apps(kind: &str, name: String) -> ScaleTarget {
    ScaleTarget {
        api_version: "apps/v1".to_owned(),
        kind: kind.to_owned(),
        name,
    }
}

fn template(deployment: &Deployment) -> Option<&PodTemplateSpec> {
    deployment.spec.as_ref().map(|spec| &spec.template)
}

fn template_of_set(set: &StatefulSet) -> Option<&PodTemplateSpec> {
    set.spec.as_ref().map(|spec| &spec.template)
}

/// Nothing selects nothing.
fn selects(selector: &BTreeMap<String, String>, template: Option<&PodTemplateSpec>) -> bool {
    let metadata = template.and_then(|template| template.metadata.as_ref());
    let labels = metadata.and_then(|metadata| metadata.labels.as_ref());
    let has = |labels: &BTreeMap<String, String>| {
        let mut wanted = selector.iter();
        wanted.all(|(name, value)| labels.get(name) == Some(value))
    };
    !selector.is_empty() && labels.is_some_and(has)
}
