//! What upgrades from one release to another have led to.
//!
//! ProwJobs are deleted after a while, and their results stay here: in the Secret, and in the form, that the
//! original uses. A result that is final does not change any more.

use std::{
    collections::BTreeMap,
    io::{self, Read, Write},
};

use flate2::{Compression, GzBuilder, read::GzDecoder};
use serde::{Deserialize, Serialize};

use crate::api::{ProwJobRun, ProwJobState, annotations};

/// The Secret, in the first release namespace.
pub const SECRET: &str = "release-upgrade-graph";
/// The key of the Secret.
pub const SECRET_KEY: &str = "latest";
/// The most bytes of a value: a Secret has at most 1 MiB, and the value is encoded in it.
pub const MAX_BYTES: usize = 1024 * 1024 - 4096;
/// The most bytes that a stored graph may unpack to.
const MAX_UNPACKED: u64 = 256 * 1024 * 1024;

/// The result of an upgrade test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UpgradeState {
    /// It runs.
    Pending,
    /// It passed.
    Succeeded,
    /// It failed.
    Failed,
}

impl UpgradeState {
    /// The result of a run; none if its state has no meaning here.
    pub fn of(state: ProwJobState) -> Option<Self> {
        Some(match state {
            ProwJobState::Success => Self::Succeeded,
            ProwJobState::Failure | ProwJobState::Error | ProwJobState::Aborted => Self::Failed,
            ProwJobState::Triggered
            | ProwJobState::Pending
            | ProwJobState::Scheduling
            | ProwJobState::Unset => Self::Pending,
            ProwJobState::Unknown => return None,
        })
    }
}

/// The results of upgrades from one release to another, by the address of the run.
pub type Results = BTreeMap<String, UpgradeState>;

/// All results, by the release that was upgraded to and the one before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpgradeGraph(BTreeMap<(String, String), Results>);

#[derive(Serialize, Deserialize)]
struct Edge {
    from: String,
    to: String,
    #[serde(default)]
    results: Vec<EdgeResult>,
}

#[derive(Serialize, Deserialize)]
struct EdgeResult {
    state: UpgradeState,
    url: String,
}

impl UpgradeGraph {
    /// The graph that was stored.
    pub fn read(stored: &[u8]) -> io::Result<Self> {
        let mut text = Vec::new();
        let unpacked = GzDecoder::new(stored)
            .take(MAX_UNPACKED)
            .read_to_end(&mut text)?;
        if unpacked as u64 == MAX_UNPACKED {
            return Err(io::Error::other("the graph is too large"));
        }
        let edges: Vec<Edge> = serde_json::from_slice(&text)?;
        let mut graph = Self::default();
        for edge in edges {
            for result in edge.results {
                graph.record(&edge.from, &edge.to, &result.url, result.state);
            }
        }
        Ok(graph)
    }

    /// The graph to store: sorted by target, source and address, so that the same graph is the same text.
    pub fn store(&self) -> io::Result<Vec<u8>> {
        let edges: Vec<_> = self
            .0
            .iter()
            .map(|((to, from), results)| Edge {
                from: from.clone(),
                to: to.clone(),
                results: results
                    .iter()
                    .map(|(url, state)| EdgeResult {
                        state: *state,
                        url: url.clone(),
                    })
                    .collect(),
            })
            .collect();
        let mut packed = GzBuilder::new()
            .mtime(0)
            .write(Vec::new(), Compression::best());
        packed.write_all(&serde_json::to_vec(&edges)?)?;
        packed.finish()
    }

    /// Adds a result. Whether the graph has changed: a final result stays as it is.
    pub fn record(&mut self, from: &str, to: &str, url: &str, state: UpgradeState) -> bool {
        let results = self.0.entry((to.to_owned(), from.to_owned())).or_default();
        match results.get_mut(url) {
            None => {
                results.insert(url.to_owned(), state);
                true
            }
            Some(known) if *known == UpgradeState::Pending && state != UpgradeState::Pending => {
                *known = state;
                true
            }
            Some(_) => false,
        }
    }

    /// Adds the result of a run, if it is an upgrade of this architecture and has an address.
    pub fn record_run(&mut self, run: &ProwJobRun, architecture: &str) -> bool {
        let of = |name: &str| run.annotation(name).filter(|text| !text.is_empty());
        let (Some(from), Some(to)) = (of(annotations::FROM_TAG), of(annotations::TO_TAG)) else {
            return false;
        };
        let url = Some(run.url()).filter(|url| !url.is_empty());
        let (Some(url), Some(state)) = (url, UpgradeState::of(run.state())) else {
            return false;
        };
        of(annotations::ARCHITECTURE) == Some(architecture) && self.record(from, to, &url, state)
    }

    /// All results, with source and target.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &Results)> {
        self.0
            .iter()
            .map(|((to, from), results)| (from.as_str(), to.as_str(), results))
    }

    /// How many pairs of releases there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run(state: &str, url: &str, architecture: &str) -> ProwJobRun {
        serde_json::from_value(json!({
            "metadata": {"name": "r", "namespace": "ci", "annotations": {
                annotations::FROM_TAG: "4.20.1", annotations::TO_TAG: "4.21.0",
                annotations::ARCHITECTURE: architecture,
            }},
            "status": {"state": state, "url": url},
        }))
        .unwrap()
    }

    #[test]
    fn a_result_is_recorded_once_and_a_final_one_stays() {
        let mut graph = UpgradeGraph::default();
        assert!(graph.record_run(&run("triggered", "u1", "amd64"), "amd64"));
        assert!(!graph.record_run(&run("pending", "u1", "amd64"), "amd64"));
        assert!(graph.record_run(&run("success", "u1", "amd64"), "amd64"));
        assert!(!graph.record_run(&run("failure", "u1", "amd64"), "amd64"));
        assert!(!graph.record_run(&run("pending", "u1", "amd64"), "amd64"));
        assert!(graph.record_run(&run("aborted", "u2", "amd64"), "amd64"));
        let all: Vec<_> = graph.iter().collect();
        let results = Results::from([
            ("u1".to_owned(), UpgradeState::Succeeded),
            ("u2".to_owned(), UpgradeState::Failed),
        ]);
        assert_eq!(all, [("4.20.1", "4.21.0", &results)]);
    }

    #[test]
    fn runs_without_address_of_another_architecture_or_of_no_known_state_do_not_count() {
        let mut graph = UpgradeGraph::default();
        for (state, url, architecture) in [
            ("success", "", "amd64"),
            ("success", "u", "arm64"),
            ("novel", "u", "amd64"),
        ] {
            assert!(!graph.record_run(&run(state, url, architecture), "amd64"));
        }
        let no_upgrade = json!({
            "metadata": {"name": "r", "annotations": {annotations::TO_TAG: "4.21.0"}},
            "status": {"state": "success", "url": "u"},
        });
        let no_upgrade: ProwJobRun = serde_json::from_value(no_upgrade).unwrap();
        assert!(!graph.record_run(&no_upgrade, "amd64"));
        assert!(graph.is_empty());
    }

    #[test]
    fn what_is_stored_is_what_the_original_stores() {
        let mut graph = UpgradeGraph::default();
        graph.record("b", "z", "u2", UpgradeState::Failed);
        graph.record("a", "z", "u1", UpgradeState::Pending);
        graph.record("a", "y", "u3", UpgradeState::Succeeded);
        let stored = graph.store().unwrap();
        let mut text = String::new();
        GzDecoder::new(&stored[..])
            .read_to_string(&mut text)
            .unwrap();
        let result = |state: &str, url: &str| json!([{"state": state, "url": url}]);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            json!([
                {"from": "a", "to": "y", "results": result("Succeeded", "u3")},
                {"from": "a", "to": "z", "results": result("Pending", "u1")},
                {"from": "b", "to": "z", "results": result("Failed", "u2")},
            ])
        );
        assert_eq!(UpgradeGraph::read(&stored).unwrap(), graph);
        assert_eq!(
            graph.store().unwrap(),
            stored,
            "the same graph is the same bytes"
        );
        assert!(UpgradeGraph::read(b"not packed").is_err());
    }
}
