//! Plays scenarios on a server.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use futures::future::join_all;
use kube::Client;
use neap_kit::clock::Clock;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::{
    api::{Api, KINDS},
    normalize::normalize,
    scenario::{Request, Scenario},
    write_tracker::{REST_TIMEOUT, WriteTracker},
};

/// The normalized objects after each step of each scenario.
pub type Recording = BTreeMap<String, Vec<Vec<Value>>>;

/// The kind of the object that stands for a state that was never reached.
pub const FAILURE: &str = "Failure";

/// A server with running controllers and nodes.
#[derive(Clone)]
pub struct ScenarioRunner {
    pub client: Client,
    pub clock: Clock,
    pub tracker: WriteTracker,
    pub unfinished: Unfinished,
}

/// The names of the scenarios in progress.
pub type Unfinished = Arc<Mutex<BTreeSet<String>>>;

impl fmt::Debug for ScenarioRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Side").finish_non_exhaustive()
    }
}

impl ScenarioRunner {
    /// Plays all scenarios at the same time.
    pub async fn play(&self, scenarios: &[Scenario]) -> Recording {
        let played = scenarios.iter().map(async |scenario| {
            let mut states = Vec::new();
            self.unfinished.lock().insert(scenario.name.clone());
            if let Err(error) = self.play_one(scenario, &mut states).await {
                let name = json!({"name": format!("{error:#}")});
                states.push(vec![json!({"kind": FAILURE, "metadata": name})]);
            }
            self.unfinished.lock().remove(&scenario.name);
            (scenario.name.clone(), states)
        });
        join_all(played).await.into_iter().collect()
    }

    async fn play_one(&self, scenario: &Scenario, states: &mut Vec<Vec<Value>>) -> Result<()> {
        let api = Api::new(&self.client, &scenario.name);
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": scenario.name},
        });
        api.create(&namespace).await?;
        self.until(&api, ("ServiceAccount", "default", "/metadata/uid"))
            .await?;
        for step in &scenario.steps {
            match step.request()? {
                Request::Create(object) => {
                    api.create(&owned(&api, object).await?).await?;
                }
                Request::Patch(kind, name, patch) => drop(api.patch(kind, name, patch).await?),
                Request::Delete(kind, name) => drop(api.delete(kind, name, &Value::Null).await?),
                Request::Nothing => {}
            }
            if let Some(wanted) = step.until() {
                self.until(&api, wanted).await?;
            }
            self.clock.sleep(step.wait()).await;
            self.tracker.rest(&scenario.name, step.rest()).await?;
            let mut objects = Vec::new();
            for kind in &KINDS {
                objects.extend(api.list(kind).await?);
            }
            states.push(normalize(objects, scenario));
        }
        Ok(())
    }

    async fn until(&self, api: &Api, (kind, name, field): (&str, &str, &str)) -> Result<()> {
        let begun = self.clock.uptime();
        loop {
            let object = api.get(kind, name).await;
            if object.is_ok_and(|object| object.pointer(field).is_some()) {
                return Ok(());
            }
            let waited = self.clock.uptime().saturating_sub(begun);
            ensure!(waited < REST_TIMEOUT, "{kind} {name} never has {field}");
            self.clock.sleep(Duration::from_millis(200)).await;
        }
    }
}

/// A scenario names an owner; its uid comes from the server.
async fn owned(api: &Api, mut object: Value) -> Result<Value> {
    let owners = object["metadata"]["ownerReferences"].as_array_mut();
    for owner in owners.into_iter().flatten() {
        let text = |field: &str| {
            owner[field]
                .as_str()
                .context("an owner has a kind and a name")
        };
        let live = api.get(text("kind")?, text("name")?).await?;
        owner["uid"] = live["metadata"]["uid"].clone();
    }
    Ok(object)
}
