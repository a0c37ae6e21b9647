//! The workloads that control pods, and their replica counts.

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
    builder::ControllerBuilder,
    key::Key,
    watch::{Cache, Change, WatchesStopped},
};

use super::decide::ControllerScale;
use crate::workload::owner_of;

/// Finds the scale of a pod's controller.
#[derive(Debug)]
pub(super) struct ControllerFinder {
    deployments: Cache<Deployment>,
    replica_sets: Cache<ReplicaSet>,
    stateful_sets: Cache<StatefulSet>,
    replication_controllers: Cache<ReplicationController>,
}

impl ControllerFinder {
    /// Enqueues all budgets of a namespace when a workload there changes its replica count.
    pub(super) fn new(
        builder: &mut ControllerBuilder,
        budgets: &Cache<PodDisruptionBudget>,
    ) -> Result<Self, WatchesStopped> {
        Ok(Self {
            deployments: watch_replicas(builder, budgets)?,
            replica_sets: watch_replicas(builder, budgets)?,
            stateful_sets: watch_replicas(builder, budgets)?,
            replication_controllers: watch_replicas(builder, budgets)?,
        })
    }

    /// The scale of a pod's controller, or of the Deployment above it.
    pub(super) fn scale(&self, namespace: &str, owner: &OwnerReference) -> Option<ControllerScale> {
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

/// A kind with a replica count.
trait HasReplicas: Object + 'static {
    fn replicas(&self) -> Option<i32>;
}

impl HasReplicas for Deployment {
    fn replicas(&self) -> Option<i32> {
        self.spec.as_ref()?.replicas
    }
}

impl HasReplicas for ReplicaSet {
    fn replicas(&self) -> Option<i32> {
        self.spec.as_ref()?.replicas
    }
}

impl HasReplicas for StatefulSet {
    fn replicas(&self) -> Option<i32> {
        self.spec.as_ref()?.replicas
    }
}

impl HasReplicas for ReplicationController {
    fn replicas(&self) -> Option<i32> {
        self.spec.as_ref()?.replicas
    }
}

fn scale<K: HasReplicas>(of: &K) -> Option<ControllerScale> {
    let uid = of.meta().uid.clone()?;
    let replicas = of.replicas().unwrap_or(1);
    Some(ControllerScale { uid, replicas })
}

fn watch_replicas<K: HasReplicas>(
    builder: &mut ControllerBuilder,
    budgets: &Cache<PodDisruptionBudget>,
) -> Result<Cache<K>, WatchesStopped> {
    let (owners, budgets) = (builder.cache::<K>()?, budgets.clone());
    builder.on_change(&owners, move |change, enqueuer| {
        if let Change::Modified { old, new } = change
            && old.replicas() == new.replicas()
        {
            return;
        }
        let namespace = change.object().meta().namespace.as_deref();
        for budget in budgets.list(namespace.unwrap_or_default()) {
            enqueuer.enqueue(Key::of(&*budget));
        }
    });
    Ok(owners)
}
