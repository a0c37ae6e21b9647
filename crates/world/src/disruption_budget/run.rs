//! Reads the facts, and carries the decision out.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet, StatefulSet},
        core::v1::{Pod, ReplicationController},
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Resource, ResourceExt,
    core::{Selector, SelectorExt},
};
use neap_kit::{
    apply::{Error, Hand},
    clock::Clock,
    controller::{Controller, Options, Outcome, Trigger},
    event::Recorder,
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Change, Ended},
};

use super::decide::{Facts, Scale, decide};
use crate::workload::{Labelled, owner_of, report};

const NAME: &str = "disruption-controller";

/// The controller of PodDisruptionBudgets.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let budgets = site.all::<PodDisruptionBudget>()?;
    let pods = site.all::<Pod>()?;
    let owners = Owners::new(site)?;
    let controller = Controller::new(Options::new(NAME), site.clock);
    let work = Arc::new(Work {
        labelled: Labelled::new(&pods),
        owners: owners.clone(),
        hand: site.hand(NAME),
        recorder: site.recorder(NAME),
        clock: site.clock,
        budgets: budgets.clone(),
    });
    let trigger = controller.trigger();
    budgets.follow(move |change| trigger.changed(change.key()));
    let (trigger, known) = (controller.trigger(), budgets.clone());
    pods.follow(move |change| {
        tell(&known, change.object(), &trigger);
        if let Change::Modified { old, new } = change
            && old.labels() != new.labels()
        {
            tell(&known, old, &trigger);
        }
    });
    owners.tell(&budgets, &controller.trigger());
    Ok(Service::new(NAME, move |stop| async move {
        let known = async {
            budgets.synced().await;
            pods.synced().await;
            owners.synced().await;
        };
        let reconcile = move |key| work.clone().reconcile(key);
        controller.run_once_known(known, reconcile, stop).await;
    }))
}

/// Has the budgets looked at that select `pod`; there are few in a namespace.
fn tell(budgets: &Cache<PodDisruptionBudget>, pod: &Pod, trigger: &Trigger<Key>) {
    for budget in budgets.list(&pod.namespace().unwrap_or_default()) {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
        let selector = selector.and_then(|selector| Selector::try_from(selector).ok());
        if selector.is_some_and(|selector| selector.matches(pod.labels())) {
            trigger.changed(Key::of(&*budget));
        }
    }
}

/// Those who want a number of pods.
#[derive(Clone)]
struct Owners {
    deployments: Cache<Deployment>,
    replica_sets: Cache<ReplicaSet>,
    stateful_sets: Cache<StatefulSet>,
    replication_controllers: Cache<ReplicationController>,
}

impl Owners {
    fn new(site: &Site) -> Result<Self, Ended> {
        Ok(Self {
            deployments: site.all()?,
            replica_sets: site.all()?,
            stateful_sets: site.all()?,
            replication_controllers: site.all()?,
        })
    }

    async fn synced(&self) {
        self.deployments.synced().await;
        self.replica_sets.synced().await;
        self.stateful_sets.synced().await;
        self.replication_controllers.synced().await;
    }

    /// Has all budgets of a namespace looked at when somebody there wants another number.
    fn tell(&self, budgets: &Cache<PodDisruptionBudget>, trigger: &Trigger<Key>) {
        follow(&self.deployments, budgets, trigger);
        follow(&self.replica_sets, budgets, trigger);
        follow(&self.stateful_sets, budgets, trigger);
        follow(&self.replication_controllers, budgets, trigger);
    }

    /// What the controller of a pod wants, or who is behind it.
    fn scale(&self, namespace: &str, owner: &OwnerReference) -> Option<Scale> {
        let key = Key::new(namespace, &owner.name);
        let found = match owner.kind.as_str() {
            "ReplicaSet" => {
                let set = self.replica_sets.get(&key)?;
                let above = owner_of(&*set).filter(|above| above.kind == "Deployment");
                let above = above.and_then(|above| {
                    let deployment = self.deployments.get(&Key::new(namespace, &above.name))?;
                    scale(&*deployment).filter(|scale| scale.uid == above.uid)
                });
                scale(&*set).map(|own| (own.uid.clone(), above.unwrap_or(own)))
            }
            "StatefulSet" => {
                scale(&*self.stateful_sets.get(&key)?).map(|own| (own.uid.clone(), own))
            }
            "ReplicationController" => {
                let found = self.replication_controllers.get(&key)?;
                scale(&*found).map(|own| (own.uid.clone(), own))
            }
            _ => None,
        };
        let (uid, scale) = found?;
        Some(scale).filter(|_| uid == owner.uid)
    }
}

/// Whoever wants a number of pods.
trait Scaled: Resource<DynamicType = ()> + Send + Sync + 'static {
    fn replicas(&self) -> Option<i32>;
}

impl Scaled for Deployment {
    fn replicas(&self) -> Option<i32> {
        self.spec.as_ref()?.replicas
    }
}

impl Scaled for ReplicaSet {
    fn replicas(&self) -> Option<i32> {
        self.spec.as_ref()?.replicas
    }
}

impl Scaled for StatefulSet {
    fn replicas(&self) -> Option<i32> {
        self.spec.as_ref()?.replicas
    }
}

impl Scaled for ReplicationController {
    fn replicas(&self) -> Option<i32> {
        self.spec.as_ref()?.replicas
    }
}

fn scale<K: Scaled>(of: &K) -> Option<Scale> {
    let uid = of.meta().uid.clone()?;
    let replicas = of.replicas().unwrap_or(1);
    Some(Scale { uid, replicas })
}

fn follow<K: Scaled>(
    owners: &Cache<K>,
    budgets: &Cache<PodDisruptionBudget>,
    trigger: &Trigger<Key>,
) {
    let (budgets, trigger) = (budgets.clone(), trigger.clone());
    owners.follow(move |change| {
        if let Change::Modified { old, new } = change
            && old.replicas() == new.replicas()
        {
            return;
        }
        let namespace = change.object().meta().namespace.as_deref();
        for budget in budgets.list(namespace.unwrap_or_default()) {
            trigger.changed(Key::of(&*budget));
        }
    });
}

struct Work {
    budgets: Cache<PodDisruptionBudget>,
    labelled: Labelled,
    owners: Owners,
    hand: Hand,
    recorder: Recorder,
    clock: Clock,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(budget) = self.budgets.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let found = |selector| self.labelled.selected(key.namespace(), selector);
        let pods = selector.map_or_else(Vec::new, found);
        let owners = pods.iter().filter_map(|pod| owner_of(&**pod));
        let scales = owners.filter_map(|owner| {
            let scale = self.owners.scale(key.namespace(), owner)?;
            Some((owner.uid.clone(), scale))
        });
        let facts = Facts {
            budget: &budget,
            scales: scales.collect::<BTreeMap<_, _>>(),
            pods: pods.iter().map(|pod| &**pod).collect(),
            now: self.clock.now(),
        };
        let decision = decide(&facts);
        if budget.status.as_ref() != Some(&decision.status) {
            for note in &decision.notes {
                self.recorder.tell(&*budget, note).await;
            }
            let mut budget = (*budget).clone();
            budget.status = Some(decision.status);
            report(&self.hand, &budget).await?;
        }
        Ok(decision.again.map_or(Outcome::Settled, Outcome::Again))
    }
}
