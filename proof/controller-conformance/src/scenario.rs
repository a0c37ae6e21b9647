//! The scenarios.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::KINDS;

const FILES: [(&str, &str); 6] = [
    ("cron_job", include_str!("../scenarios/cron_job.yaml")),
    ("daemon_set", include_str!("../scenarios/daemon_set.yaml")),
    ("deployment", include_str!("../scenarios/deployment.yaml")),
    ("job", include_str!("../scenarios/job.yaml")),
    ("service", include_str!("../scenarios/service.yaml")),
    (
        "stateful_set",
        include_str!("../scenarios/stateful_set.yaml"),
    ),
];
/// Seconds without a write after which a step is over, unless it needs longer.
const REST_SECONDS: u64 = 4;

/// A sequence of steps in its own namespace.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Also the name of its namespace.
    pub name: String,
    /// Whether several pods become ready or go at the same moment: the intermediate writes then
    /// depend on how many of them a reconcile sees.
    #[serde(default)]
    pub at_once: bool,
    /// Whether a controller may start with any node.
    #[serde(default)]
    pub any_node: bool,
    pub steps: Vec<Step>,
}

/// A request, and the time after it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    #[serde(default)]
    create: Option<ShortObject>,
    /// `KIND/NAME`.
    #[serde(default)]
    patch: Option<String>,
    #[serde(default)]
    with: Value,
    /// `KIND/NAME`.
    #[serde(default)]
    delete: Option<String>,
    /// `KIND/NAME` and a field that must exist before the step continues.
    #[serde(default)]
    until: Option<(String, String)>,
    /// Seconds to wait before the step continues.
    #[serde(default)]
    wait: u64,
    #[serde(default)]
    rest: Option<u64>,
}

/// An object in a short form.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShortObject {
    kind: String,
    name: String,
    /// The behaviour of its pods.
    #[serde(default)]
    play: Option<String>,
    #[serde(default)]
    annotations: Value,
    #[serde(default)]
    labels: Value,
    #[serde(default)]
    spec: Value,
    /// Merged over the rest, for kinds without a spec.
    #[serde(default)]
    fields: Value,
}

/// A request to a server.
#[derive(Debug)]
pub enum Request<'a> {
    Create(Value),
    Patch(&'a str, &'a str, &'a Value),
    Delete(&'a str, &'a str),
    /// Only time passes.
    Nothing,
}

/// All scenarios whose name contains `only`.
pub fn all(only: &str) -> Result<Vec<Scenario>> {
    let mut all = Vec::new();
    for (file, text) in FILES {
        let read: Vec<Scenario> = serde_saphyr::from_str(text).context(file)?;
        all.extend(read);
    }
    all.retain(|scenario| scenario.name.contains(only));
    Ok(all)
}

impl Step {
    pub fn request(&self) -> Result<Request<'_>> {
        let parted = |what: &'_ str| -> Result<(usize, usize)> {
            let place = what.find('/').context("KIND/NAME is wanted")?;
            Ok((place, place + 1))
        };
        Ok(match (&self.create, &self.patch, &self.delete) {
            (Some(short), None, None) => Request::Create(short.object()?),
            (None, Some(what), None) => {
                let (end, next) = parted(what)?;
                Request::Patch(&what[..end], &what[next..], &self.with)
            }
            (None, None, Some(what)) => {
                let (end, next) = parted(what)?;
                Request::Delete(&what[..end], &what[next..])
            }
            (None, None, None) => Request::Nothing,
            _ => bail!("a step is one request"),
        })
    }

    pub fn until(&self) -> Option<(&str, &str, &str)> {
        let (what, field) = self.until.as_ref()?;
        let (kind, name) = what.split_once('/')?;
        Some((kind, name, field))
    }

    pub fn wait(&self) -> Duration {
        Duration::from_secs(self.wait)
    }

    pub fn rest(&self) -> Duration {
        Duration::from_secs(self.rest.unwrap_or(REST_SECONDS))
    }
}

impl ShortObject {
    fn object(&self) -> Result<Value> {
        let kind = KINDS.iter().find(|known| known.0 == self.kind);
        let (_, base, _) = kind.with_context(|| format!("{} is not known here", self.kind))?;
        let version = base.trim_start_matches("apis/").trim_start_matches("api/");
        let mut object = json!({
            "apiVersion": version, "kind": self.kind,
            "metadata": {
                "name": self.name, "annotations": self.annotations, "labels": self.labels,
            },
        });
        match self.kind.as_str() {
            "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => {
                let selector = json!({"matchLabels": {"app": self.name}});
                object["spec"] = json!({"selector": selector, "template": self.template("Always")});
            }
            "Job" => object["spec"] = json!({"template": self.template("Never")}),
            "CronJob" => {
                let spec = json!({"template": self.template("Never")});
                object["spec"] = json!({"jobTemplate": {"spec": spec}});
            }
            "Pod" => {
                let template = self.template("Always");
                object["spec"] = template["spec"].clone();
                merge(&mut object["metadata"], &template["metadata"]);
            }
            _ => {}
        }
        if !self.spec.is_null() {
            merge(&mut object["spec"], &self.spec);
        }
        merge(&mut object, &self.fields);
        Ok(object)
    }

    fn template(&self, restart: &str) -> Value {
        let play = self.play.as_deref().unwrap_or("ready");
        let container = json!({
            "name": "main", "image": "example.com/app:1",
            "ports": [{"name": "http", "containerPort": 8080}],
        });
        json!({
            "metadata": {"labels": {"app": self.name}, "annotations": {"play": play}},
            "spec": {"restartPolicy": restart, "containers": [container]},
        })
    }
}

/// Merges `over` into `under`, field by field.
fn merge(under: &mut Value, over: &Value) {
    match (under, over) {
        (_, Value::Null) => {}
        (Value::Object(under), Value::Object(over)) => {
            for (key, value) in over {
                merge(under.entry(key).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_can_be_played() {
        let all = all("").unwrap();
        let mut names: Vec<_> = all.iter().map(|scenario| &scenario.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
        for scenario in &all {
            for step in &scenario.steps {
                step.request().unwrap();
            }
        }
    }
}
