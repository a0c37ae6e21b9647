//! The registry: every served version of every resource, built-in and custom.
//!
//! Looked up on every request, changed only by custom resource definitions. Each change increments
//! the generation, by which discovery and OpenAPI documents are cached.

mod builtin;
mod custom;
mod served;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use http::StatusCode;
use parking_lot::RwLock;
use tokio::sync::watch as wake;

use super::Target;
use crate::status::{ApiError, Result};

pub(super) use custom::is_established;
pub use served::{Resource, SchemaSource, Served};

/// Served resources by plural name.
pub type Plurals = BTreeMap<String, Arc<Served>>;

/// Everything served, by (group, version) and then by plural name.
pub type Groups = BTreeMap<(String, String), Plurals>;

/// The table of served resources.
#[derive(Debug, Default)]
pub struct Registry {
    tables: RwLock<Tables>,
    generation: wake::Sender<u64>,
}

#[derive(Debug, Default)]
struct Tables {
    groups: Arc<Groups>,
    /// The storage version of every resource, by bucket; a definition need not serve it.
    stored: BTreeMap<Arc<str>, Arc<Served>>,
}

impl Registry {
    /// The built-in kinds and nothing else; `runs_pods` adds the subresources that need a pod
    /// runtime.
    pub fn built_in(runs_pods: bool) -> Self {
        let registry = Self::default();
        registry.change(|tables| {
            for served in builtin::all(runs_pods) {
                let served = Arc::new(served);
                if served.is_storage() {
                    tables.keep(served.clone());
                }
                tables.serve(served);
            }
        });
        registry
    }

    /// Increases with every change of the table.
    pub fn generation(&self) -> u64 {
        *self.generation.borrow()
    }

    /// Notifies of changes of the generation.
    pub(crate) fn changes(&self) -> wake::Receiver<u64> {
        self.generation.subscribe()
    }

    pub fn groups(&self) -> Arc<Groups> {
        self.tables.read().groups.clone()
    }

    /// Whether anything is served under this group and version.
    pub fn has_version(&self, group: &str, version: &str) -> bool {
        let key = (group.to_owned(), version.to_owned());
        self.tables.read().groups.contains_key(&key)
    }

    /// Whether a group is built in.
    pub fn is_own_group(&self, group: &str) -> bool {
        let groups = self.groups();
        let mut served = groups.iter().filter(|((name, _), _)| name == group);
        served.any(|(_, plurals)| plurals.values().any(|served| !served.is_custom()))
    }

    /// The resource of a URL, or 404.
    pub fn find(&self, target: &Target) -> Result<Arc<Served>> {
        self.lookup(&target.group, &target.version, &target.plural)
            .filter(|served| has_place(served, target))
            .ok_or_else(missing)
    }

    pub fn lookup(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Served>> {
        let key = (group.to_owned(), version.to_owned());
        self.tables.read().groups.get(&key)?.get(plural).cloned()
    }

    /// The storage version of every resource, each once.
    pub fn stored(&self) -> Vec<Arc<Served>> {
        self.tables.read().stored.values().cloned().collect()
    }

    /// The storage version of the resource in `bucket`.
    pub fn by_bucket(&self, bucket: &str) -> Option<Arc<Served>> {
        self.tables.read().stored.get(bucket).cloned()
    }

    /// The lifetime of objects in `bucket` after their last write, if it is limited.
    pub fn lifetime(&self, bucket: &str) -> Option<Duration> {
        self.tables.read().stored.get(bucket)?.traits().ttl
    }

    /// The resource served as `kind` in `api_version`.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<Arc<Served>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let groups = self.groups();
        let plurals = groups.get(&(group.to_owned(), version.to_owned()))?;
        plurals
            .values()
            .find(|served| served.resource.kind == kind)
            .cloned()
    }

    fn change(&self, change: impl FnOnce(&mut Tables)) {
        change(&mut self.tables.write());
        self.generation.send_modify(|generation| *generation += 1);
    }
}

impl Tables {
    fn serve(&mut self, served: Arc<Served>) {
        let key = (served.resource.group.clone(), served.version.clone());
        let plural = served.resource.plural.clone();
        let groups = Arc::make_mut(&mut self.groups);
        groups.entry(key).or_default().insert(plural, served);
    }

    fn keep(&mut self, served: Arc<Served>) {
        self.stored.insert(served.resource.bucket.clone(), served);
    }

    fn remove(&mut self, group: &str, plural: &str) {
        let groups = Arc::make_mut(&mut self.groups);
        for ((name, _), plurals) in groups.iter_mut() {
            if name == group {
                plurals.remove(plural);
            }
        }
        groups.retain(|_, plurals| !plurals.is_empty());
        self.stored.remove(&*format!("{group}/{plural}"));
    }
}

/// Whether the path has a namespace where the kind needs one, and none otherwise. The collection
/// across all namespaces is allowed. Kinds that are not stored have no names.
fn has_place(served: &Served, target: &Target) -> bool {
    if served.is_review() && !target.name.is_empty() {
        return false;
    }
    if served.resource.namespaced {
        !target.namespace.is_empty() || target.name.is_empty()
    } else {
        target.namespace.is_empty()
    }
}

/// 404 for an unknown resource.
pub(crate) fn missing() -> ApiError {
    let message = "the server could not find the requested resource";
    ApiError::new(StatusCode::NOT_FOUND, "NotFound", message).about("", "", "")
}
