//! Any state that a cluster may be found in, and what controllers make of it.
//!
//! The objects under the care of controllers are half done: children are missing, too many, of an
//! older template, orphaned, on their way out, or somebody else's; what a status says is not so.
//! Then the controllers are started. What they come to is what they come to when there is nothing
//! but the declaration, and nothing is written any longer after that.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Ground, Workload,
    canary::planted,
    canonical::collection,
    generate::Chance,
    house::{House, State, alone},
    judge::{Oracle, Violation},
    run::send,
    settled::difference,
};

/// A start state.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// What is declared. A clean start begins with this alone.
    pub declared: Vec<Value>,
    /// What is there besides, in this order; who is there already is changed. A status is written as its controller would write it;
    /// `@/api/v1/…` at the end of a text stands for the uid of the object there; who has a
    /// `deletionTimestamp` is deleted.
    pub remains: Vec<Value>,
}

/// Makes start states, and says what of their ends counts.
pub struct Starts {
    /// Those at work, and what is there before.
    pub workload: Workload,
    /// A start state by chance.
    pub make: fn(&mut Chance) -> Start,
    /// The place under which an object counts, once what may depend on how it began is taken out of
    /// it; nothing if it does not count.
    pub counts: fn(place: &str, object: &mut Value) -> Option<String>,
    /// What is wrong with an end in itself.
    pub wrong: fn(&End) -> Option<String>,
}

/// What there is in the end, by place.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct End(State);

/// What a clean start came to.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Clean {
    /// What there is then.
    pub end: End,
    /// What is wrong with it: no other start can be held against it then.
    pub violations: Vec<Violation>,
}

impl End {
    /// The objects whose places begin like this.
    pub fn at<'a>(&'a self, place: &'a str) -> impl Iterator<Item = &'a Value> {
        let there = self.0.iter().filter(move |(key, _)| key.starts_with(place));
        there.flat_map(|(_, objects)| objects)
    }
}

impl Starts {
    /// Whatever there is in the end counts, and no end is wrong in itself.
    pub fn new(workload: Workload, make: fn(&mut Chance) -> Start) -> Self {
        Self {
            workload,
            make,
            counts: |place, _| Some(place.to_owned()),
            wrong: |_| None,
        }
    }

    /// What of an end counts.
    pub fn counting(mut self, counts: fn(&str, &mut Value) -> Option<String>) -> Self {
        self.counts = counts;
        self
    }

    /// What is wrong with an end in itself.
    pub fn wrong_if(mut self, wrong: fn(&End) -> Option<String>) -> Self {
        self.wrong = wrong;
        self
    }

    /// The start state of that number.
    pub fn number(&self, number: u64, seed: u64) -> Start {
        let mut chance = Chance::new(seed.wrapping_mul(0x9e37_79b9).wrapping_add(number));
        (self.make)(&mut chance)
    }

    /// What a clean start comes to, and what goes wrong with it.
    pub fn clean(&self, start: &Start, seed: u64, ground: &Ground) -> Result<Clean, String> {
        let clean = Start {
            declared: start.declared.clone(),
            remains: Vec::new(),
        };
        let ((end, mut violations), heard) = alone(self.begin(&clean, seed, ground))?;
        violations.extend(heard);
        for violation in &mut violations {
            violation.text = format!("a clean start goes wrong: {}", violation.text);
        }
        Ok(Clean { end, violations })
    }

    /// What goes wrong with a start state whose clean end is `wanted`.
    pub fn play(
        &self,
        start: &Start,
        wanted: &End,
        seed: u64,
        ground: &Ground,
    ) -> Result<Vec<Violation>, String> {
        let ((found, mut violations), heard) = alone(self.begin(start, seed, ground))?;
        violations.extend(heard);
        if let Some(differs) = difference(&wanted.0, &found.0) {
            let violation = Violation::new(Oracle::EndState, self.workload.name, differs);
            violations.push(violation);
        }
        Ok(violations)
    }

    async fn begin(
        &self,
        start: &Start,
        seed: u64,
        ground: &Ground,
    ) -> Result<(End, Vec<Violation>), String> {
        let mut house = House::open(&self.workload, seed, ground).await?;
        for object in start.declared.iter().chain(&start.remains) {
            furnish(&house, object).await?;
        }
        let foreign = foreign(&house.state());
        house.start(&self.workload);
        let mut violations: Vec<_> = house.rest().await.into_iter().collect();
        violations.extend(house.stay().await);
        violations.extend(house.orphans());
        violations.extend(house.look_back());
        let mut state = house.state();
        violations.extend(touched(&foreign, &mut state));
        let wrong = (self.wrong)(&End(state.clone()));
        violations
            .extend(wrong.map(|wrong| Violation::new(Oracle::EndState, self.workload.name, wrong)));
        Ok((End(self.counted(state)), violations))
    }

    fn counted(&self, state: State) -> State {
        let mut counted = State::new();
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

/// Those that belong to somebody else: nobody may touch them.
fn foreign(state: &State) -> State {
    let mut foreign = state.clone();
    foreign.retain(|place, _| place.contains("foreign"));
    for object in foreign.values_mut().flatten() {
        forget_status(object);
    }
    foreign
}

/// What is said of it is not what it is.
fn forget_status(object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
}

/// What was done to others; they are taken out of the state.
fn touched(before: &State, state: &mut State) -> Option<Violation> {
    let mut after = State::new();
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

async fn furnish(house: &House, object: &Value) -> Result<(), String> {
    let mut object = planted(object);
    resolve(house, &mut object).await?;
    let going = object["metadata"]["deletionTimestamp"].is_string();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("deletionTimestamp");
    }
    let collection = collection(&object);
    let words = |error: kube::Error| format!("{error} at {object}");
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let path = format!("{collection}/{name}");
    // Who has nothing but a status is there already.
    if object["status"].is_null() || object["spec"].is_object() {
        let mut made = send(&house.user, "POST", &collection, &object).await;
        if matches!(&made, Err(kube::Error::Api(status)) if status.code == 409) {
            made = send(&house.user, "PATCH", &path, &object).await;
        }
        made.map_err(words)?;
    }
    if object["status"].is_object() {
        let status = json!({"status": object["status"]});
        let told = send(&house.user, "PATCH", &format!("{path}/status"), &status).await;
        told.map_err(words)?;
    }
    if going {
        let options = json!({"propagationPolicy": "Background"});
        let gone = send(&house.user, "DELETE", &path, &options).await;
        gone.map_err(words)?;
    }
    Ok(())
}

/// Puts uids in the place of paths.
async fn resolve(house: &House, value: &mut Value) -> Result<(), String> {
    let paths: Vec<String> = paths(value);
    for path in paths {
        let found = send(&house.user, "GET", &path[1..], &Value::Null).await;
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

impl std::fmt::Debug for Starts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Starts")
            .field("workload", &self.workload.name)
            .finish_non_exhaustive()
    }
}
