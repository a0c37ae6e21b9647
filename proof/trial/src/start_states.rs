//! Random start states, and what controllers make of them.
//!
//! The cluster is half finished: children are missing, surplus, of an older template, orphaned,
//! being deleted, or owned by another object, and the status is wrong. Then the controllers start.
//! They must reach the state that they reach from the declaration alone, and write nothing after
//! that.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    ClusterTemplate, Workload,
    canary::planted,
    canonical::collection,
    cluster::{ClusterState, TestCluster, run_isolated},
    comparable_state::difference,
    generate::SeededRng,
    judge::{Oracle, Violation},
    run::send,
};

/// A start state.
#[derive(Debug, Clone, Default)]
pub struct StartState {
    /// The declared objects. A clean start has only these.
    pub declared: Vec<Value>,
    /// Further objects, created in this order; existing ones are patched. A status is written
    /// through the status subresource; `@/api/v1/…` at the end of a text stands for the uid of the
    /// object at that path; an object with a `deletionTimestamp` is deleted.
    pub leftovers: Vec<Value>,
}

/// A generator of start states, with the rules by which their results are compared.
pub struct StartStates {
    /// The processes, and the objects that exist before.
    pub workload: Workload,
    /// Generates a random start state.
    pub make: fn(&mut SeededRng) -> StartState,
    /// The key under which an object is compared, after removing from it what may depend on the
    /// start state; none if the object is not compared.
    pub counts: fn(place: &str, object: &mut Value) -> Option<String>,
    /// What is wrong with a result by itself.
    pub wrong: fn(&FinalState) -> Option<String>,
}

/// The objects at the end, by comparison key.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct FinalState(ClusterState);

/// The result of a clean start.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct CleanResult {
    pub end: FinalState,
    /// Its violations: if there are any, no other start can be compared with it.
    pub violations: Vec<Violation>,
}

impl FinalState {
    /// The objects whose keys start with `place`.
    pub fn at<'a>(&'a self, place: &'a str) -> impl Iterator<Item = &'a Value> {
        let there = self.0.iter().filter(move |(key, _)| key.starts_with(place));
        there.flat_map(|(_, objects)| objects)
    }
}

impl StartStates {
    /// Compares every object, and no result is wrong by itself.
    pub fn new(workload: Workload, make: fn(&mut SeededRng) -> StartState) -> Self {
        Self {
            workload,
            make,
            counts: |place, _| Some(place.to_owned()),
            wrong: |_| None,
        }
    }

    /// Sets the rule by which results are compared.
    pub fn counting(mut self, counts: fn(&str, &mut Value) -> Option<String>) -> Self {
        self.counts = counts;
        self
    }

    /// Sets the check of a result by itself.
    pub fn wrong_if(mut self, wrong: fn(&FinalState) -> Option<String>) -> Self {
        self.wrong = wrong;
        self
    }

    /// The start state with this number.
    pub fn number(&self, number: u64, seed: u64) -> StartState {
        let mut rng = SeededRng::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(number));
        (self.make)(&mut rng)
    }

    /// Plays a clean start.
    pub fn clean(
        &self,
        start: &StartState,
        seed: u64,
        template: &ClusterTemplate,
    ) -> Result<CleanResult, String> {
        let clean = StartState {
            declared: start.declared.clone(),
            leftovers: Vec::new(),
        };
        let ((end, mut violations), heard) = run_isolated(self.begin(&clean, seed, template))?;
        violations.extend(heard);
        for violation in &mut violations {
            violation.text = format!("a clean start goes wrong: {}", violation.text);
        }
        Ok(CleanResult { end, violations })
    }

    /// Plays a start state and returns its violations. `wanted` is the result of the clean start.
    pub fn play(
        &self,
        start: &StartState,
        wanted: &FinalState,
        seed: u64,
        template: &ClusterTemplate,
    ) -> Result<Vec<Violation>, String> {
        let ((found, mut violations), heard) = run_isolated(self.begin(start, seed, template))?;
        violations.extend(heard);
        if let Some(differs) = difference(&wanted.0, &found.0) {
            let violation = Violation::new(Oracle::EndState, self.workload.name, differs);
            violations.push(violation);
        }
        Ok(violations)
    }

    async fn begin(
        &self,
        start: &StartState,
        seed: u64,
        template: &ClusterTemplate,
    ) -> Result<(FinalState, Vec<Violation>), String> {
        let mut cluster = TestCluster::open(&self.workload, seed, template).await?;
        for object in start.declared.iter().chain(&start.leftovers) {
            create(&cluster, object).await?;
        }
        let foreign = foreign(&cluster.state());
        cluster.start(&self.workload);
        let mut violations: Vec<_> = cluster.wait_until_quiet().await.into_iter().collect();
        violations.extend(cluster.check_stays_quiet().await);
        violations.extend(cluster.orphans());
        violations.extend(cluster.recorded_violations());
        let mut state = cluster.state();
        violations.extend(touched(&foreign, &mut state));
        let wrong = (self.wrong)(&FinalState(state.clone()));
        violations
            .extend(wrong.map(|wrong| Violation::new(Oracle::EndState, self.workload.name, wrong)));
        Ok((FinalState(self.counted(state)), violations))
    }

    fn counted(&self, state: ClusterState) -> ClusterState {
        let mut counted = ClusterState::new();
        for (place, objects) in state {
            for mut object in objects {
                if let Some(place) = (self.counts)(&place, &mut object) {
                    counted.entry(place).or_default().push(object);
                }
            }
        }
        for objects in counted.values_mut() {
            objects.sort_by_cached_key(Value::to_string);
        }
        counted
    }
}

/// Objects of other owners, which no controller may change.
fn foreign(state: &ClusterState) -> ClusterState {
    let mut foreign = state.clone();
    foreign.retain(|place, _| place.contains("foreign"));
    for object in foreign.values_mut().flatten() {
        forget_status(object);
    }
    foreign
}

/// The status of a foreign object may change.
fn forget_status(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
}

/// Changes to foreign objects, which are removed from the state.
fn touched(before: &ClusterState, state: &mut ClusterState) -> Option<Violation> {
    let mut after = ClusterState::new();
    state.retain(|place, objects| {
        let foreign = place.contains("foreign");
        if foreign {
            objects.iter_mut().for_each(forget_status);
            after.insert(place.clone(), objects.clone());
        }
        !foreign
    });
    let differs = difference(before, &after)?;
    let text = format!("what belongs to others was touched: {differs}");
    Some(Violation::new(Oracle::EndState, "foreign", text))
}

async fn create(cluster: &TestCluster, object: &Value) -> Result<(), String> {
    let mut object = planted(object);
    resolve(cluster, &mut object).await?;
    let going = object["metadata"]["deletionTimestamp"].is_string();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("deletionTimestamp");
    }
    let collection = collection(&object);
    let words = |error: kube::Error| format!("{error} at {object}");
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{collection}/{name}");
    // An object with nothing but a status exists already.
    if object["status"].is_null() || object["spec"].is_object() {
        let mut made = send(&cluster.user, "POST", &collection, &object).await;
        if matches!(&made, Err(kube::Error::Api(status)) if status.code == 409) {
            made = send(&cluster.user, "PATCH", &path, &object).await;
        }
        made.map_err(words)?;
    }
    if object["status"].is_object() {
        let status = json!({"status": object["status"]});
        let told = send(&cluster.user, "PATCH", &format!("{path}/status"), &status).await;
        told.map_err(words)?;
    }
    if going {
        let options = json!({"propagationPolicy": "Background"});
        let gone = send(&cluster.user, "DELETE", &path, &options).await;
        gone.map_err(words)?;
    }
    Ok(())
}

/// Replaces paths by uids.
async fn resolve(cluster: &TestCluster, value: &mut Value) -> Result<(), String> {
    let paths: Vec<String> = paths(value);
    for path in paths {
        let found = send(&cluster.user, "GET", &path[1..], &Value::Null).await;
        let found = found.map_err(|error| format!("{path}: {error}"))?;
        let uid = found["metadata"]["uid"].as_str().unwrap_or_default();
        replace(value, &path, uid);
    }
    Ok(())
}

fn paths(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => text
            .find("@/")
            .map(|at| text[at..].to_owned())
            .into_iter()
            .collect(),
        Value::Array(items) => items.iter().flat_map(paths).collect(),
        Value::Object(fields) => fields.values().flat_map(paths).collect(),
        _ => Vec::new(),
    }
}

fn replace(value: &mut Value, path: &str, uid: &str) {
    match value {
        Value::String(text) => *text = text.replace(path, uid),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, path, uid)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| replace(field, path, uid)),
        _ => {}
    }
}

impl std::fmt::Debug for StartStates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Starts")
            .field("workload", &self.workload.name)
            .finish_non_exhaustive()
    }
}
