//! What is served: every version of every resource, built-in and custom.
//!
//! Looked up on every request, changed only by custom resource definitions. Each change counts one
//! generation, by which discovery and OpenAPI documents are cached.

mod builtin;
mod custom;
mod served;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use http::StatusCode;
use parking_lot::RwLock;

use super::Target;
use crate::status::{ApiError, Result};

pub use served::{Resource, Served, Shape};

/// Plural name to what is served under it.
pub type Plurals = BTreeMap<String, Arc<Served>>;

/// Everything served, by (group, version) and then by plural name.
pub type Groups = BTreeMap<(String, String), Plurals>;

/// The table of what is served.
#[derive(Debug, Default)]
pub struct Registry {
    groups: RwLock<Arc<Groups>>,
    generation: AtomicU64,
}

impl Registry {
    /// The built-in kinds and nothing else; `runs_pods` offers what needs something that runs them.
    pub fn built_in(runs_pods: bool) -> Self {
        let registry = Self::default();
        registry.change(|groups| {
            for served in builtin::all(runs_pods) {
                insert(groups, Arc::new(served));
            }
        });
        registry
    }

    /// Grows with every change of what is served.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Everything served now.
    pub fn groups(&self) -> Arc<Groups> {
        self.groups.read().clone()
    }

    /// Whether anything is served under this group and version.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        let key = (group.to_owned(), version.to_owned());
        self.groups.read().contains_key(&key)
    }

    /// What a URL points at, or 404.
    pub fn find(&self, target: &Target) -> Result<Arc<Served>> {
        self.lookup(&target.group, &target.version, &target.plural)
            .filter(|served| has_place(served, target))
            .ok_or_else(missing)
    }

    /// What is served under these names.
    pub fn lookup(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Served>> {
        let key = (group.to_owned(), version.to_owned());
        self.groups.read().get(&key)?.get(plural).cloned()
    }

    /// The storage version of every resource, each once.
    pub fn stored(&self) -> Vec<Arc<Served>> {
        let groups = self.groups();
        let all = groups.values().flat_map(BTreeMap::values);
        all.filter(|served| served.is_storage()).cloned().collect()
    }

    /// The storage version of what is stored in `bucket`.
    pub fn by_bucket(&self, bucket: &str) -> Option<Arc<Served>> {
        let (group, plural) = bucket.split_once('/')?;
        let groups = self.groups();
        let versions = groups.iter().filter(|((name, _), _)| name == group);
        let mut found = versions.filter_map(|(_, plurals)| plurals.get(plural));
        found.find(|served| served.is_storage()).cloned()
    }

    /// How long objects in `bucket` live after their last write, if not for ever.
    pub fn lifetime(&self, bucket: &str) -> Option<Duration> {
        self.by_bucket(bucket)?.traits().ttl
    }

    /// What is served as `kind` in `api_version`.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Served>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let groups = self.groups();
        let plurals = groups.get(&(group.to_owned(), version.to_owned()))?;
        plurals
            .values()
            .find(|served| served.resource.kind == kind)
            .cloned()
    }

    fn change(&self, change: impl FnOnce(&mut Groups)) {
        let mut groups = self.groups.write();
        change(Arc::make_mut(&mut groups));
        self.generation.fetch_add(1, Ordering::Release);
    }
}

fn insert(groups: &mut Groups, served: Arc<Served>) {
    let key = (served.resource.group.clone(), served.version.clone());
    let plural = served.resource.plural.clone();
    groups.entry(key).or_default().insert(plural, served);
}

/// Whether the path has a namespace where the kind needs one, and none where it has none. The
/// collection of a namespaced kind over all namespaces is a place of its own.
fn has_place(served: &Served, target: &Target) -> bool {
    if served.resource.namespaced {
        !target.namespace.is_empty() || target.name.is_empty()
    } else {
        target.namespace.is_empty() || served.is_namespace()
    }
}

/// 404 for a resource that is not there at all.
pub(crate) fn missing() -> ApiError {
    let message = "the server could not find the requested resource";
    ApiError::new(StatusCode::NOT_FOUND, "NotFound", message).about("", "", "")
}
