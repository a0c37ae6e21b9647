//! What a decision about a farm depends on.

mod changes;
mod component_caches;
mod evaluations;
mod gather;
mod pod_states;
mod pool_match;
mod trust;
mod user_config;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kube::api::DynamicObject;
use neap_kit::{apply::ResourceKind, key::Key, operation::Operation};

pub(super) use self::{
    component_caches::Reconciled, evaluations::Evaluations, gather::FarmSources,
    user_config::MAX_FINDINGS,
};
pub use self::{trust::TrustConfig, user_config::UserConfig};
use super::{Component, drain::PodFacts};
use crate::queue::QueueFacts;

/// Everything that is known about a farm.
#[derive(Debug, Clone)]
pub struct FarmFacts {
    /// Its components, in the order of a roll-out.
    pub components: Vec<Component>,
    /// The objects of each component, by its uid.
    pub live: BTreeMap<String, Vec<(ResourceKind, DynamicObject)>>,
    /// Objects of the namespace that belong to no component of the farm, by the plural and the name.
    pub foreign: BTreeMap<(String, String), ForeignObject>,
    /// The pods of each component, by its uid.
    pub pods: BTreeMap<String, Vec<PodFacts>>,
    /// The volume claims of the namespace: the name, the requested bytes and the uid.
    pub claims: BTreeMap<String, ClaimFacts>,
    /// The ConfigMaps of users, by the uid of the component that names them.
    pub user_configs: BTreeMap<String, UserConfig>,
    /// What components check their callers with, by the uid of the component.
    pub trust: BTreeMap<String, TrustConfig>,
    /// ConfigMaps that a component of another farm has named before.
    pub claimed_elsewhere: BTreeSet<String>,
    /// What schedulers say about the queues of pools, by the uid of the pool.
    pub queues: BTreeMap<String, Result<QueueFacts, String>>,
    /// What the server has refused to write for a component in its present version, by the uid of the
    /// component.
    pub refused: BTreeMap<String, String>,
    /// The farm.
    pub farm: Key,
    /// The Operations of the namespace; none if the kind is not served.
    pub operations: Option<Vec<Operation>>,
    /// Whether the cluster has ServiceMonitors.
    pub monitored: bool,
    /// The namespace of the operator.
    pub operator_namespace: String,
    /// The time.
    pub now: Timestamp,
}

/// An object that belongs to no component of the farm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignObject {
    /// Whether it goes by itself: it is being deleted, or the component that it belonged to is gone and the
    /// garbage collector follows.
    pub leaves: bool,
}

/// A volume claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimFacts {
    /// Its uid.
    pub uid: String,
    /// Namespace and name.
    pub key: Key,
    /// The requested size in bytes, if it can be read.
    pub bytes: Option<u64>,
}

impl FarmFacts {
    /// The objects of a component.
    pub fn live_of(&self, component: &Component) -> &[(ResourceKind, DynamicObject)] {
        self.live.get(component.uid()).map_or(&[], Vec::as_slice)
    }

    /// The pods of a component.
    pub fn pods_of(&self, component: &Component) -> &[PodFacts] {
        self.pods.get(component.uid()).map_or(&[], Vec::as_slice)
    }
}
