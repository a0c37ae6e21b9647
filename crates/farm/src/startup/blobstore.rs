//! Backends of stores.

use std::collections::BTreeSet;

use super::{Node, Rules};
use crate::{api::Shard, schema::duration, sharding::duplicate_key};

/// The store that a backend belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreKind {
    Cas,
    ActionCache,
    Other,
}

/// The largest number of blocks.
const MAX_BLOCKS: i64 = 100;

/// Where a backend is.
#[derive(Clone)]
struct BackendScope<'a> {
    kind: StoreKind,
    /// Whether the program has a CAS, which completeness checking reads.
    has_cas: bool,
    /// The labels of the backends around it.
    labels: BTreeSet<&'a str>,
}

impl Rules {
    /// The backend of a store and those inside it. `has_cas` is whether the program has a CAS.
    pub(super) fn backend(&mut self, at: &Node<'_>, kind: StoreKind, has_cas: bool) {
        let labels = BTreeSet::new();
        let scope = BackendScope {
            kind,
            has_cas,
            labels,
        };
        self.nested(at, &scope);
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each backend")]
    fn nested<'a>(&mut self, at: &Node<'a>, scope: &BackendScope<'a>) {
        let (kind, has_cas) = (scope.kind, scope.has_cas);
        let Some(backend) = at.fields().into_iter().next() else {
            return self.add(at, "has to be one of the backends, such as grpc or local");
        };
        let name = backend
            .path
            .rsplit('.')
            .next()
            .unwrap_or_default()
            .to_owned();
        let mut inner = Vec::new();
        match name.as_str() {
            "local" => self.local(&backend, kind),
            "grpc" => {
                let client = backend.get("client");
                if client.get("address").text().is_empty() {
                    self.add(&client.get("address"), "is required");
                }
            }
            "sharding" => inner = self.sharding(&backend),
            "mirrored" => {
                self.require(&backend, &["replicatorAToB", "replicatorBToA"]);
                inner = vec![backend.get("backendA"), backend.get("backendB")];
            }
            "readCaching" => {
                self.require(&backend, &["replicator"]);
                inner = vec![backend.get("slow"), backend.get("fast")];
            }
            "readFallback" => {
                self.require(&backend, &["replicator"]);
                inner = vec![backend.get("primary"), backend.get("secondary")];
            }
            "completenessChecking" => {
                self.completeness(&backend, kind, has_cas);
                inner = vec![backend.get("backend")];
            }
            "existenceCaching" => {
                if kind != StoreKind::Cas {
                    self.add(&backend, "only the content addressable storage can have it");
                }
                self.require(&backend, &["existenceCache"]);
                inner = vec![backend.get("backend")];
            }
            "actionResultExpiring" => {
                self.expiring(&backend, kind);
                inner = vec![backend.get("backend")];
            }
            "hierarchicalInstanceNames" => {
                if kind == StoreKind::Cas {
                    let problem =
                        "the content addressable storage cannot have it: use that of \"local\"";
                    self.add(&backend, problem);
                }
                inner = vec![backend.clone()];
            }
            "readCanarying" => inner = vec![backend.get("source"), backend.get("replica")],
            "demultiplexing" => {
                let prefixes = backend.get("instanceNamePrefixes").entries();
                inner = prefixes.iter().map(|(_, it)| it.get("backend")).collect();
            }
            "withLabels" | "with_labels" => self.labels(&backend, scope),
            "label" if !scope.labels.contains(backend.text()) => {
                let problem = format!(
                    "no withLabels around it declares the label {:?}",
                    backend.text()
                );
                self.add(&backend, problem);
            }
            "deadlineEnforcing" => {
                self.require(&backend, &["timeout"]);
                inner = vec![backend.get("backend")];
            }
            _ => {}
        }
        for inner in inner {
            self.nested(&inner, scope);
        }
    }

    /// A backend with a label sees the labels around both, and not those beside it.
    fn labels<'a>(&mut self, backend: &Node<'a>, scope: &BackendScope<'a>) {
        let mut inside = scope.clone();
        for (label, labelled) in backend.get("labels").entries() {
            if scope.labels.contains(label) {
                let problem = format!("the label {label:?} is declared around it already");
                self.add(&labelled, problem);
            }
            self.nested(&labelled, scope);
            inside.labels.insert(label);
        }
        self.nested(&backend.get("backend"), &inside);
    }

    fn completeness(&mut self, backend: &Node<'_>, kind: StoreKind, has_cas: bool) {
        if kind != StoreKind::ActionCache {
            self.add(backend, "only the action cache can have it");
        } else if !has_cas {
            let problem = "needs a content addressable storage in the same configuration";
            self.add(backend, problem);
        }
        if backend.get("maximumTotalTreeSizeBytes").number() <= 0 {
            let at = backend.get("maximumTotalTreeSizeBytes");
            self.add(
                &at,
                "has to be positive, or results with directories are never found",
            );
        }
    }

    fn expiring(&mut self, backend: &Node<'_>, kind: StoreKind) {
        if kind != StoreKind::ActionCache {
            self.add(backend, "only the action cache can have it");
        }
        let required = [
            "minimumValidity",
            "maximumValidityJitter",
            "minimumTimestamp",
        ];
        self.require(backend, &required);
        let jitter = backend.get("maximumValidityJitter");
        if duration(jitter.text()).is_some_and(|it| it <= 0) {
            self.add(
                &jitter,
                "has to be positive: the program ends at the first hit",
            );
        }
    }

    fn sharding<'a>(&mut self, backend: &Node<'a>) -> Vec<Node<'a>> {
        let shards = backend.get("shards").entries();
        if shards.is_empty() {
            self.add(&backend.get("shards"), "has to have at least one shard");
        }
        let keys: Vec<_> = shards
            .iter()
            .map(|(key, _)| Shard {
                key: (*key).to_owned(),
                weight: 1,
            })
            .collect();
        if let Some(key) = duplicate_key(&keys) {
            let problem = format!("the hash of the key {key:?} is that of another");
            self.add(&backend.get("shards"), problem);
        }
        for (_, shard) in &shards {
            if shard.get("weight").number() < 1 {
                self.add(&shard.get("weight"), "has to be at least 1");
            }
        }
        shards
            .iter()
            .map(|(_, shard)| shard.get("backend"))
            .collect()
    }

    fn local(&mut self, local: &Node<'_>, kind: StoreKind) {
        let in_memory = local.get("keyLocationMapInMemory");
        let on_device = local.get("keyLocationMapOnBlockDevice");
        if in_memory.is_absent() && on_device.is_absent() {
            let problem = "needs keyLocationMapOnBlockDevice or keyLocationMapInMemory";
            self.add(local, problem);
        }
        for attempts in [
            "keyLocationMapMaximumGetAttempts",
            "keyLocationMapMaximumPutAttempts",
        ] {
            let attempts = local.get(attempts);
            if attempts.number() < 1 {
                let problem = "has to be positive: with 0, blobs are written and never found \
                     (16 to get and 64 to put are usual)";
                self.add(&attempts, problem);
            }
        }
        self.blocks(local, kind);
        let persistent = local.get("persistent");
        if persistent.is_present() {
            self.require(&persistent, &["stateDirectoryPath", "minimumEpochInterval"]);
            let blocks = local.get("blocksOnBlockDevice");
            if on_device.is_absent() || blocks.is_absent() {
                let problem = "needs keyLocationMapOnBlockDevice and blocksOnBlockDevice";
                self.add(&persistent, problem);
            }
        }
        if kind != StoreKind::Cas && local.get("hierarchicalInstanceNames").value == true {
            let at = local.get("hierarchicalInstanceNames");
            self.add(&at, "only the content addressable storage can have it here");
        }
    }

    fn blocks(&mut self, local: &Node<'_>, kind: StoreKind) {
        let count = |name: &str| local.get(name).number();
        let new_blocks = local.get("newBlocks");
        if kind != StoreKind::Cas && new_blocks.number() != 1 {
            let problem = "has to be 1 for every store but the content addressable storage";
            self.add(&new_blocks, problem);
        } else if new_blocks.number() < 1 {
            self.add(&new_blocks, "has to be at least 1");
        }
        let device = local.get("blocksOnBlockDevice");
        let memory = local.get("blocksInMemory");
        if device.is_absent() && memory.is_absent() {
            return self.add(local, "needs blocksOnBlockDevice or blocksInMemory");
        }
        let spare = device.get("spareBlocks").number();
        let sum = spare + count("oldBlocks") + count("currentBlocks") + new_blocks.number();
        if sum > MAX_BLOCKS {
            let problem =
                format!("has {sum} blocks with those that are spare; at most 100 are allowed");
            self.add(local, problem);
        }
        for file in [
            device.get("source").get("file"),
            local.get("keyLocationMapOnBlockDevice").get("file"),
        ] {
            if file.is_present() && file.get("sizeBytes").number() < 4096 {
                self.add(&file.get("sizeBytes"), "is smaller than a sector");
            }
        }
        let file = device.get("source").get("file");
        let size = file.get("sizeBytes").number();
        if file.is_present() && size >= 4096 && size / 4096 < sum {
            let problem = format!("has fewer sectors than the {sum} blocks");
            self.add(&file.get("sizeBytes"), problem);
        }
    }
}
