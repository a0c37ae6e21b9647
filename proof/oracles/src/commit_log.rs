//! What really happened, from the server's store: every commit in order.
//!
//! A log is complete after its beginning. Of older objects it knows only what later commits
//! replaced, so the oracles skip objects that were written no later than the beginning.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use serde_json::Value;

use crate::{Filter, fingerprint};

/// One state of an object.
#[derive(Debug, Clone)]
pub struct ObjectState {
    /// The revision that wrote it.
    pub revision: u64,
    /// A hash of its content.
    pub fingerprint: u64,
    /// The group and version it is stored in.
    pub api_version: String,
    /// For selectors.
    pub labels: BTreeMap<String, String>,
    json: Bytes,
}

impl ObjectState {
    /// Parses the state from its JSON.
    pub fn new(revision: u64, json: Bytes) -> Self {
        let value: Value = serde_json::from_slice(&json).unwrap_or_default();
        let labels = value["metadata"]["labels"].as_object();
        let labels = labels
            .into_iter()
            .flatten()
            .filter_map(|(key, label)| Some((key.clone(), label.as_str()?.to_owned())))
            .collect();
        Self {
            revision,
            fingerprint: fingerprint(&value),
            api_version: value["apiVersion"].as_str().unwrap_or_default().into(),
            labels,
            json,
        }
    }

    /// The object.
    pub fn value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }
}

/// A change of an object.
#[derive(Debug, Clone)]
pub struct Commit {
    /// Its revision; no two commits have the same.
    pub revision: u64,
    /// The resource, as `group/plural`; the core group is empty.
    pub resource: String,
    /// `namespace/name`, or `name`.
    pub path: String,
    /// The state it wrote; for a removal, the last state.
    pub state: ObjectState,
    /// Whether it removed the object.
    pub gone: bool,
    /// The state before.
    pub previous: Option<ObjectState>,
}

impl Commit {
    /// The state after the commit, if the object exists then.
    pub fn present(&self) -> Option<&ObjectState> {
        (!self.gone).then_some(&self.state)
    }
}

/// All commits after a beginning.
#[derive(Debug, Clone, Default)]
pub struct CommitLog {
    beginning: u64,
    compacted: u64,
    commits: Vec<Commit>,
    resources: HashMap<String, Vec<usize>>,
    aliases: HashMap<String, String>,
}

impl CommitLog {
    /// An empty log of commits after `beginning`.
    pub fn after(beginning: u64) -> Self {
        Self {
            beginning,
            ..Self::default()
        }
    }

    /// Adds the next commit. Known revisions are ignored, so that parts may overlap.
    pub fn push(&mut self, commit: Commit) {
        if commit.revision <= self.last() {
            return;
        }
        let at = self.commits.len();
        let commits = self.resources.entry(commit.resource.clone());
        commits.or_default().push(at);
        self.commits.push(commit);
    }

    /// Records that the server has compacted its history up to `revision`.
    pub fn compacted(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision);
    }

    /// The revision up to which the server has compacted its history.
    pub fn oldest(&self) -> u64 {
        self.compacted
    }

    /// Declares that a resource shows the objects of another, as `events.k8s.io/events` does.
    pub fn alias(&mut self, shown: &str, stored: &str) {
        self.aliases.insert(shown.into(), stored.into());
    }

    /// The log contains every commit after this revision.
    pub fn beginning(&self) -> u64 {
        self.beginning
    }

    /// The newest revision.
    pub fn last(&self) -> u64 {
        self.commits.last().map_or(self.beginning, |c| c.revision)
    }

    /// The commit of a revision.
    pub fn at(&self, revision: u64) -> Option<&Commit> {
        let found = self
            .commits
            .binary_search_by_key(&revision, |commit| commit.revision);
        found.ok().map(|i| &self.commits[i])
    }

    /// Every commit in order.
    pub fn commits(&self) -> impl Iterator<Item = &Commit> {
        self.commits.iter()
    }

    /// The resource under which objects of `resource` are stored.
    pub(crate) fn stored<'a>(&'a self, resource: &'a str) -> &'a str {
        self.aliases.get(resource).map_or(resource, String::as_str)
    }

    fn indices(&self, resource: &str) -> &[usize] {
        let indices = self.resources.get(self.stored(resource));
        indices.map_or(&[], Vec::as_slice)
    }

    /// The commits of a resource after one revision and up to another.
    pub fn between(
        &self,
        resource: &str,
        after: u64,
        until: u64,
    ) -> impl Iterator<Item = &Commit> + use<'_> {
        let indices = self.indices(resource);
        let start = indices.partition_point(|&i| self.commits[i].revision <= after);
        indices[start..]
            .iter()
            .map(|&i| &self.commits[i])
            .take_while(move |commit| commit.revision <= until)
    }

    /// The selected objects of a resource at a revision, in key order, as far as they were written
    /// after the beginning.
    pub fn state_at(
        &self,
        resource: &str,
        filter: &Filter,
        revision: u64,
    ) -> Vec<(&str, &ObjectState)> {
        let mut objects = BTreeMap::new();
        for commit in self.between(resource, self.beginning, revision) {
            match commit.present() {
                Some(state) => objects.insert(commit.path.as_str(), state),
                None => objects.remove(commit.path.as_str()),
            };
        }
        objects
            .into_iter()
            .filter(|(path, state)| filter.selects(path, state))
            .collect()
    }
}
