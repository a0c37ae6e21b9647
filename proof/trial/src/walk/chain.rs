//! A chain of changes.

use serde_json::{Value, json};

use super::{
    Property, Subject, WalkReport,
    values::{Candidate, candidates, put},
};
use crate::{
    ClusterTemplate,
    canary::planted,
    canonical::collection,
    cluster::{ClusterState, TestCluster, run_isolated},
    comparable_state::difference,
    generate::SeededRng,
    judge::{Oracle, Violation},
    run::send,
};

pub(super) fn walk(
    subject: &Subject,
    properties: &[Property],
    seed: u64,
    template: &ClusterTemplate,
) -> Result<WalkReport, String> {
    let ((mut walked, good, state), heard) = run_isolated(async {
        // Canaries are planted only at the start: what a walk has removed stays removed in a fresh
        // start.
        let object = planted(&subject.object);
        let mut walker = Walker::begin(subject, &object["spec"], seed, template).await?;
        for property in properties {
            walker.walk_property(property).await?;
        }
        walker.add_recorded_violations();
        Ok((walker.walked, walker.good, walker.state))
    })?;
    walked.violations.extend(heard);
    if subject.afresh && walked.kept > 0 && walked.violations.is_empty() {
        let fresh = async {
            let mut fresh = Walker::begin(subject, &good, seed, template).await?;
            fresh.add_recorded_violations();
            Ok((fresh.state, fresh.walked.violations))
        };
        let ((fresh, wrong), heard) = run_isolated(fresh)?;
        walked.violations.extend(wrong);
        walked.violations.extend(heard);
        let differs = difference(&fresh, &state);
        walked.violations.extend(differs.map(|differs| {
            let text = format!("not what a fresh start with {good} comes to: {differs}");
            Violation::new(Oracle::EndState, "", text)
        }));
    }
    Ok(walked)
}

/// The state of a walk.
struct Walker<'a> {
    subject: &'a Subject,
    template: &'a ClusterTemplate,
    seed: u64,
    rng: SeededRng,
    cluster: TestCluster,
    /// The last valid spec, and the objects that resulted from it.
    good: Value,
    state: ClusterState,
    /// Whether the object had finished before anything was changed.
    over: bool,
    walked: WalkReport,
}

impl<'a> Walker<'a> {
    async fn begin(
        subject: &'a Subject,
        spec: &Value,
        seed: u64,
        template: &'a ClusterTemplate,
    ) -> Result<Self, String> {
        let mut cluster = TestCluster::open(&subject.workload, seed, template).await?;
        cluster.start(&subject.workload);
        let mut object = subject.object.clone();
        object["spec"] = spec.clone();
        let made = send(&cluster.user, "POST", &collection(&object), &object).await;
        made.map_err(|error| error.to_string())?;
        let mut walker = Self {
            subject,
            template,
            seed,
            rng: SeededRng::new(seed),
            good: Value::Null,
            over: false,
            state: ClusterState::new(),
            walked: WalkReport::default(),
            cluster,
        };
        walker.wait_until_quiet("at first").await;
        let object = walker.read().await?;
        walker.good = object["spec"].clone();
        walker.over = is_over(&object);
        walker.state = walker.cluster.state();
        Ok(walker)
    }

    fn path(&self) -> String {
        let object = &self.subject.object;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        format!("{}/{name}", collection(object))
    }

    async fn read(&self) -> Result<Value, String> {
        let read = send(&self.cluster.user, "GET", &self.path(), &Value::Null).await;
        read.map_err(|error| error.to_string())
    }

    /// Updates the spec; the error is the server's status code.
    async fn declare(&self, spec: &Value) -> Result<(), u16> {
        let Ok(mut object) = self.read().await else {
            return Err(404);
        };
        object["spec"] = spec.clone();
        match send(&self.cluster.user, "PUT", &self.path(), &object).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) => Err(status.code),
            Err(_) => Err(0),
        }
    }

    /// Adds the violations recorded since the start.
    fn add_recorded_violations(&mut self) {
        for violation in self.cluster.recorded_violations() {
            self.add_violation(violation.oracle, violation.text);
        }
    }

    fn add_violation(&mut self, oracle: Oracle, text: String) {
        let kind = self.subject.object["kind"].as_str().unwrap_or_default();
        let violation = Violation::new(oracle, kind, text);
        self.walked.violations.push(violation);
    }

    /// Waits until everything is at rest, and adds violations.
    async fn wait_until_quiet(&mut self, when: &str) {
        let mut found: Vec<_> = self.cluster.wait_until_quiet().await.into_iter().collect();
        found.extend(self.cluster.orphans());
        found.extend(self.cluster.process_failures());
        for violation in found {
            self.add_violation(violation.oracle, format!("{when}: {}", violation.text));
        }
    }

    /// Gives one property all its values.
    async fn walk_property(&mut self, property: &Property) -> Result<(), String> {
        let candidates = candidates(&self.subject.schema, property);
        let (given, taken_before) = (candidates.len(), self.walked.taken_back);
        for candidate in candidates {
            let mut wanted = json!({"spec": self.good});
            put(
                &self.subject.schema,
                &mut wanted,
                &property.path,
                candidate.value.as_ref(),
            );
            // An absent property cannot be removed; reverting a change covers that.
            if wanted["spec"] != self.good {
                self.change(property, &candidate, &wanted["spec"]).await?;
            }
        }
        let taken = self.walked.taken_back > taken_before;
        self.walked.taken += usize::from(taken);
        self.walked.properties.push((property.to_string(), given));
        Ok(())
    }

    async fn change(
        &mut self,
        property: &Property,
        candidate: &Candidate,
        spec: &Value,
    ) -> Result<(), String> {
        self.walked.changes += 1;
        let what = match &candidate.value {
            Some(value) => format!("{property} = {}", short(value)),
            None => format!("without {property}"),
        };
        let revision = self.cluster.pocket.store().revision();
        if let Err(code) = self.declare(spec).await {
            self.walked.refused += 1;
            if !(400..500).contains(&code) {
                self.add_violation(Oracle::Panic, format!("{what}: answered with {code}"));
            }
            if self.cluster.pocket.store().revision() != revision {
                self.add_violation(
                    Oracle::EndState,
                    format!("{what}: refused, and yet something was written"),
                );
            }
            return Ok(());
        }
        if candidate.invalid {
            self.add_violation(
                Oracle::EndState,
                format!("{what}: taken, though it is of another type"),
            );
        }
        self.wait_until_quiet(&what).await;
        let object = self.read().await?;
        let well = !candidate.invalid && is_well(&object);
        self.walked.taken_back += 1;
        if is_over(&object) && !self.over {
            // A finished object stays finished.
            return self.recreate().await;
        }
        self.revert(&what).await?;
        // Some changes are kept, so that the next ones meet a different declaration.
        if well && self.rng.below(3) == 0 && self.declare(spec).await.is_ok() {
            self.wait_until_quiet(&format!("{what} again")).await;
            self.walked.kept += 1;
            self.good = self.read().await?["spec"].clone();
            self.state = self.cluster.state();
        }
        Ok(())
    }

    /// Creates the object again where the way back is impossible.
    async fn recreate(&mut self) -> Result<(), String> {
        self.add_recorded_violations();
        let mut walked = std::mem::take(&mut self.walked);
        let (subject, template) = (self.subject, self.template);
        let object = planted(&subject.object);
        *self = Self::begin(subject, &object["spec"], self.seed, template).await?;
        walked.remade += 1;
        // Violations of the new start count as well.
        walked.violations.append(&mut self.walked.violations);
        self.walked = walked;
        Ok(())
    }

    /// The objects, without those that may remain.
    fn now(&self) -> ClusterState {
        let mut now = self.cluster.state();
        if let Some(leaves) = self.subject.leaves {
            now.retain(|place, _| !place.starts_with(leaves) || self.state.contains_key(place));
        }
        now
    }

    async fn revert(&mut self, what: &str) -> Result<(), String> {
        let good = self.good.clone();
        if self.declare(&good).await.is_err() {
            // The server refuses the way back.
            return self.recreate().await;
        }
        let when = format!("{what} and back");
        self.wait_until_quiet(&when).await;
        let mut now = self.now();
        if now != self.state {
            // A controller that kept failing may wait for its next retry.
            self.cluster.let_time_pass().await;
            now = self.now();
        }
        if let Some(differs) = difference(&self.state, &now) {
            self.add_violation(Oracle::EndState, format!("{when}: {differs}"));
            self.state = now;
        }
        Ok(())
    }
}

/// Whether the object has finished, so that changes of its spec have no effect.
fn is_over(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|candidate| {
        matches!(candidate["type"].as_str(), Some("Complete" | "Failed"))
            && candidate["status"] == "True"
    })
}

/// Whether the declared state is reached.
fn is_well(object: &Value) -> bool {
    let (spec, status) = (&object["spec"], &object["status"]);
    let number = |value: &Value| value.as_i64().unwrap_or_default();
    let seen = status["observedGeneration"].as_i64();
    let seen = seen.is_none_or(|seen| seen == number(&object["metadata"]["generation"]));
    let counts = |wanted: &Value, found: [&str; 2]| {
        let found = found.map(|field| &status[field]);
        found.iter().all(|found| number(found) == number(wanted))
    };
    let ready = match object["kind"].as_str().unwrap_or_default() {
        "Deployment" | "StatefulSet" => {
            counts(&spec["replicas"], ["readyReplicas", "updatedReplicas"])
        }
        "DaemonSet" => counts(
            &status["desiredNumberScheduled"],
            ["numberReady", "updatedNumberScheduled"],
        ),
        _ => true,
    };
    seen && ready
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
