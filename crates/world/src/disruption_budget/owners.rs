//! Who is behind pods, and how many he wants.

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, ReplicaSet, StatefulSet},
        core::v1::ReplicationController,
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use neap_kit::{
    apply::Object,
    key::Key,
    watch::{Cache, Change, Ended},
    wiring::Wiring,
};

use super::decide::Scale;
use crate::workload::owner_of;

/// Those who want a number of pods.
#[derive(Debug)]
pub(super) struct Owners {
    deployments: Cache<Deployment>,
    replica_sets: Cache<ReplicaSet>,
    stateful_sets: Cache<StatefulSet>,
    replication_controllers: Cache<ReplicationController>,
}

impl Owners {
    /// Has all budgets of a namespace looked at when somebody there wants another number.
    pub(super) fn new(
        wiring: &mut Wiring,
        budgets: &Cache<PodDisruptionBudget>,
    ) -> Result<Self, Ended> {
        Ok(Self {
            deployments: scaled(wiring, budgets)?,
            replica_sets: scaled(wiring, budgets)?,
            stateful_sets: scaled(wiring, budgets)?,
            replication_controllers: scaled(wiring, budgets)?,
        })
    }

    /// What the controller of a pod wants, or who is behind it.
    pub(super) fn scale(&self, namespace: &str, owner: &OwnerReference) -> Option<Scale> {
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
trait Scaled: Object + 'static {
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

fn scaled<K: Scaled>(
    wiring: &mut Wiring,
    budgets: &Cache<PodDisruptionBudget>,
) -> Result<Cache<K>, Ended> {
    let (owners, budgets) = (wiring.read::<K>()?, budgets.clone());
    wiring.follow(&owners, move |change, trigger| {
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
    Ok(owners)
}
