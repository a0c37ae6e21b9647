//! One chain of changes.

use serde_json::{Value, json};

use super::{
    Property, Subject, Walked,
    values::{Try, put, tries},
};
use crate::{
    Ground,
    canary::planted,
    canonical::collection,
    generate::Chance,
    house::{House, State, alone},
    judge::{Oracle, Violation},
    run::send,
    settled::difference,
};

pub(super) fn walk(
    subject: &Subject,
    properties: &[Property],
    seed: u64,
    ground: &Ground,
) -> Result<Walked, String> {
    let ((mut walked, good, state), heard) = alone(async {
        // Only at first: what a walk has taken away stays away in a fresh start.
        let object = planted(&subject.object);
        let mut walker = Walker::begin(subject, &object["spec"], seed, ground).await?;
        for property in properties {
            walker.property(property).await?;
        }
        walker.look_back();
        Ok((walker.walked, walker.good, walker.state))
    })?;
    walked.violations.extend(heard);
    if subject.afresh && walked.kept > 0 && walked.violations.is_empty() {
        let fresh = async {
            let mut fresh = Walker::begin(subject, &good, seed, ground).await?;
            fresh.look_back();
            Ok((fresh.state, fresh.walked.violations))
        };
        let ((fresh, wrong), heard) = alone(fresh)?;
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

/// Where a walk is.
struct Walker<'a> {
    subject: &'a Subject,
    ground: &'a Ground,
    seed: u64,
    chance: Chance,
    house: House,
    /// The spec with which all was well, and what there was then.
    good: Value,
    state: State,
    /// Whether it had ended before anything was changed.
    over: bool,
    walked: Walked,
}

impl<'a> Walker<'a> {
    async fn begin(
        subject: &'a Subject,
        spec: &Value,
        seed: u64,
        ground: &'a Ground,
    ) -> Result<Self, String> {
        let mut house = House::open(&subject.workload, seed, ground).await?;
        house.start(&subject.workload);
        let mut object = subject.object.clone();
        object["spec"] = spec.clone();
        let made = send(&house.user, "POST", &collection(&object), &object).await;
        made.map_err(|error| error.to_string())?;
        let mut walker = Self {
            subject,
            ground,
            seed,
            chance: Chance::new(seed),
            good: Value::Null,
            over: false,
            state: State::new(),
            walked: Walked::default(),
            house,
        };
        walker.settle("at first").await;
        let object = walker.read().await?;
        walker.good = object["spec"].clone();
        walker.over = is_over(&object);
        walker.state = walker.house.state();
        Ok(walker)
    }

    fn path(&self) -> String {
        let object = &self.subject.object;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        format!("{}/{name}", collection(object))
    }

    async fn read(&self) -> Result<Value, String> {
        let read = send(&self.house.user, "GET", &self.path(), &Value::Null).await;
        read.map_err(|error| error.to_string())
    }

    /// Declares this spec; the server's code if it does not want it.
    async fn declare(&self, spec: &Value) -> Result<(), u16> {
        let Ok(mut object) = self.read().await else {
            return Err(404);
        };
        object["spec"] = spec.clone();
        match send(&self.house.user, "PUT", &self.path(), &object).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) => Err(status.code),
            Err(_) => Err(0),
        }
    }

    /// What is wrong with all that was done since it began.
    fn look_back(&mut self) {
        for violation in self.house.look_back() {
            self.tell(violation.oracle, violation.text);
        }
    }

    fn tell(&mut self, oracle: Oracle, text: String) {
        let kind = self.subject.object["kind"].as_str().unwrap_or_default();
        let violation = Violation::new(oracle, kind, text);
        self.walked.violations.push(violation);
    }

    /// Waits until all is at rest, and sees that nothing is broken.
    async fn settle(&mut self, when: &str) {
        let mut found: Vec<_> = self.house.rest().await.into_iter().collect();
        found.extend(self.house.orphans());
        found.extend(self.house.oddities());
        for violation in found {
            self.tell(violation.oracle, format!("{when}: {}", violation.text));
        }
    }

    /// Gives one property all its values.
    async fn property(&mut self, property: &Property) -> Result<(), String> {
        let tries = tries(&self.subject.schema, property);
        let (given, taken_before) = (tries.len(), self.walked.taken_back);
        for one in tries {
            let mut wanted = json!({"spec": self.good});
            put(
                &self.subject.schema,
                &mut wanted,
                &property.path,
                one.value.as_ref(),
            );
            // What is not there cannot be taken away; it is whenever a change is taken back.
            if wanted["spec"] != self.good {
                self.change(property, &one, &wanted["spec"]).await?;
            }
        }
        let taken = self.walked.taken_back > taken_before;
        self.walked.taken += usize::from(taken);
        self.walked.properties.push((property.to_string(), given));
        Ok(())
    }

    async fn change(&mut self, property: &Property, one: &Try, spec: &Value) -> Result<(), String> {
        self.walked.changes += 1;
        let what = match &one.value {
            Some(value) => format!("{property} = {}", short(value)),
            None => format!("without {property}"),
        };
        let revision = self.house.pocket.store().revision();
        if let Err(code) = self.declare(spec).await {
            self.walked.refused += 1;
            if !(400..500).contains(&code) {
                self.tell(Oracle::Panic, format!("{what}: answered with {code}"));
            }
            if self.house.pocket.store().revision() != revision {
                self.tell(
                    Oracle::EndState,
                    format!("{what}: refused, and yet something was written"),
                );
            }
            return Ok(());
        }
        if one.absurd {
            self.tell(
                Oracle::EndState,
                format!("{what}: taken, though it is of another type"),
            );
        }
        self.settle(&what).await;
        let object = self.read().await?;
        let well = !one.absurd && is_well(&object);
        self.walked.taken_back += 1;
        if is_over(&object) && !self.over {
            // What has ended stays so.
            return self.begin_anew().await;
        }
        self.take_back(&what).await?;
        // Some changes stay, so that the next meet another declaration.
        if well && self.chance.below(3) == 0 && self.declare(spec).await.is_ok() {
            self.settle(&format!("{what} again")).await;
            self.walked.kept += 1;
            self.good = self.read().await?["spec"].clone();
            self.state = self.house.state();
        }
        Ok(())
    }

    /// Whoever wants to go back and cannot makes the object anew.
    async fn begin_anew(&mut self) -> Result<(), String> {
        self.look_back();
        let mut walked = std::mem::take(&mut self.walked);
        let (subject, ground) = (self.subject, self.ground);
        let object = planted(&subject.object);
        *self = Self::begin(subject, &object["spec"], self.seed, ground).await?;
        walked.remade += 1;
        // What goes wrong in a new beginning goes wrong as well.
        walked.violations.append(&mut self.walked.violations);
        self.walked = walked;
        Ok(())
    }

    /// What there is, without what may be left behind.
    fn now(&self) -> State {
        let mut now = self.house.state();
        if let Some(leaves) = self.subject.leaves {
            now.retain(|place, _| !place.starts_with(leaves) || self.state.contains_key(place));
        }
        now
    }

    async fn take_back(&mut self, what: &str) -> Result<(), String> {
        let good = self.good.clone();
        if self.declare(&good).await.is_err() {
            // The server allows no way back.
            return self.begin_anew().await;
        }
        let when = format!("{what} and back");
        self.settle(&when).await;
        let mut now = self.now();
        if now != self.state {
            // Whoever failed until now may wait a while before the next try.
            self.house.wait().await;
            now = self.now();
        }
        if let Some(differs) = difference(&self.state, &now) {
            self.tell(Oracle::EndState, format!("{when}: {differs}"));
            self.state = now;
        }
        Ok(())
    }
}

/// Whether it has ended, so that no declaration makes a difference any longer.
fn is_over(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|one| {
        matches!(one["type"].as_str(), Some("Complete" | "Failed")) && one["status"] == "True"
    })
}

/// Whether what was declared is there.
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
