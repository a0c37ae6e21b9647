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
    plain::plain,
    quiet::{PATIENCE, Quiet},
    scenario::{Request, Scenario},
};

/// What was there after each step of each scenario, in plain form.
pub type Recording = BTreeMap<String, Vec<Vec<Value>>>;

/// The kind of what stands in place of a state that was never reached.
pub const FAILURE: &str = "Failure";

/// A server whose controllers and nodes are at work.
#[derive(Clone)]
pub struct Side {
    pub client: Client,
    pub clock: Clock,
    pub quiet: Quiet,
    pub unfinished: Unfinished,
}

/// The names of the scenarios that are being played.
pub type Unfinished = Arc<Mutex<BTreeSet<String>>>;

impl fmt::Debug for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Side").finish_non_exhaustive()
    }
}

impl Side {
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
            self.quiet.rest(&scenario.name, step.rest()).await?;
            let mut objects = Vec::new();
            for kind in &KINDS {
                objects.extend(api.list(kind).await?);
            }
            states.push(plain(objects, scenario));
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
            ensure!(waited < PATIENCE, "{kind} {name} never has {field}");
            self.clock.sleep(Duration::from_millis(200)).await;
        }
    }
}

/// A script names an owner; only the server knows its uid.
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
