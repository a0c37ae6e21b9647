//! Sends calls to both servers, one after the other.

mod deletion;
mod invisible_writes;
mod replay;
mod streams;

use std::{collections::HashSet, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use neap_load::client::Client;
use serde_json::{Value, json};

use crate::{
    call::{About, Body, Call},
    compare::{Difference, differences},
    generate::{CallGenerator, Schemas},
    kinds,
    permitted::{self, PermittedDifference},
    report::Report,
    schema::SentProperties,
    server_side::{Answer, Side},
    stream::Stream,
};

/// Calls between the openings of two watches.
const WATCH_INTERVAL: usize = 30;

/// Retries of a call whose response may come from a cache.
const CACHE_RETRIES: usize = 5;

/// Both servers, and the findings so far.
#[derive(Debug)]
pub struct Run {
    world: Arc<Schemas>,
    reference: Side,
    pocket: Side,
    entries: Vec<PermittedDifference>,
    number: usize,
    seed: u64,
    /// Added to names, so that a server can be used again.
    pub tag: String,
    pub report: Report,
    /// The properties that requests had.
    pub touched: SentProperties,
    /// The calls of this seed with their numbers, for a replay.
    calls: Vec<(usize, Call)>,
    streams: Vec<Stream>,
    /// Names of objects that were deleted because their states had diverged.
    retired: HashSet<String>,
}

/// The result of a call.
#[derive(Debug)]
pub struct Outcome {
    pub reference: Answer,
    pub pocket: Answer,
    /// Differences that are not permitted.
    pub differences: Vec<Difference>,
    /// Whether the states of the object diverged although neither server is wrong.
    pub diverged: bool,
}

impl Run {
    /// Starts with two servers without definitions.
    pub async fn begin(
        world: Arc<Schemas>,
        reference: Client,
        pocket: Client,
        entries: Vec<PermittedDifference>,
    ) -> Result<Self> {
        let mut run = Self {
            world,
            reference: Side::new(reference),
            pocket: Side::new(pocket),
            entries,
            number: 0,
            seed: 0,
            tag: String::new(),
            report: Report::default(),
            touched: SentProperties::default(),
            calls: Vec::new(),
            streams: Vec::new(),
            retired: HashSet::new(),
        };
        for definition in kinds::definitions()? {
            run.setup(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                definition,
            )
            .await?;
        }
        for kind in run.world.clone().kinds.iter().filter(|kind| kind.custom) {
            run.served(&kind.collection("default")).await?;
        }
        Ok(run)
    }

    /// Creates an object on both servers; it may exist already.
    async fn setup(&mut self, path: &str, value: Value) -> Result<usize> {
        let call = plain("POST", path, Body::Json(value));
        let (theirs, ours) = self.both(&call).await?;
        for answer in [&theirs, &ours] {
            ensure!(
                matches!(answer.code, 201 | 409),
                "setting up {path}: {}",
                answer.body
            );
        }
        let number = self.number;
        let (mut theirs, mut ours) = (theirs, ours);
        if theirs.code == 409 || ours.code == 409 {
            let name = fill_name(&call.body);
            (theirs, ours) = self
                .both(&plain("GET", &format!("{path}/{name}"), Body::None))
                .await?;
        }
        self.reference.captures.insert(number, theirs.body);
        self.pocket.captures.insert(number, ours.body);
        Ok(number)
    }

    async fn served(&mut self, path: &str) -> Result<()> {
        for _ in 0..200 {
            let (theirs, ours) = self.both(&plain("GET", path, Body::None)).await?;
            if theirs.code == 200 && ours.code == 200 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::bail!("{path} is not served")
    }

    async fn both(&mut self, call: &Call) -> Result<(Answer, Answer)> {
        self.number += 1;
        self.calls.push((self.number, call.clone()));
        let (mut theirs, ours) = tokio::join!(self.reference.send(call), self.pocket.send(call));
        if let Err(error) = &theirs
            && broke_off(error)
        {
            theirs = Ok(Answer::none());
        }
        let about = || format!("{} {}", call.method, call.path);
        Ok((
            theirs.with_context(|| format!("the reference, asked {}", about()))?,
            ours.with_context(|| format!("pocket, asked {}", about()))?,
        ))
    }

    /// Runs one seed.
    pub async fn seed(&mut self, seed: u64, requests: usize) -> Result<()> {
        self.seed = seed;
        self.calls.clear();
        let tag = self.tag.clone();
        let namespaces = ["a", "b"]
            .map(|suffix| format!("d{seed}{tag}-{suffix}"))
            .to_vec();
        let mut anchors = Vec::new();
        for namespace in &namespaces {
            self.setup(
                "/api/v1/namespaces",
                json!({"metadata": {"name": namespace}}),
            )
            .await?;
            self.served(&format!(
                "/api/v1/namespaces/{namespace}/serviceaccounts/default"
            ))
            .await?;
            self.served(&format!(
                "/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt"
            ))
            .await?;
            let path = format!("/api/v1/namespaces/{namespace}/configmaps");
            let anchor = json!({"metadata": {"name": "anchor"}});
            anchors.push(self.setup(&path, anchor).await?);
        }
        let mut generator =
            CallGenerator::new(self.world.clone(), seed, &tag, namespaces.clone(), anchors);
        for step in 0..requests {
            if step % WATCH_INTERVAL == WATCH_INTERVAL - 1
                && let Some((kind, namespace, path)) = generator.watch()
            {
                self.open(kind, namespace, path, step + WATCH_INTERVAL * 2)
                    .await?;
            }
            self.close_streams(step).await?;
            let call = generator.next(&self.reference.captures);
            self.step(&mut generator, &call, step).await?;
        }
        self.close_streams(usize::MAX).await?;
        self.clear(&namespaces).await
    }

    async fn step(
        &mut self,
        generator: &mut CallGenerator,
        call: &Call,
        step: usize,
    ) -> Result<()> {
        let mut outcome = self.send_and_compare(call).await?;
        for _ in 0..CACHE_RETRIES {
            if outcome.differences.is_empty() || !may_lag(call) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
            outcome = self.send_and_compare(call).await?;
        }
        let code = outcome.reference.code;
        self.report.count(call, code, &outcome.reference.body);
        self.record_properties(call, code);
        let number = self.number;
        let keep = code < 300 && outcome.reference.body.is_object();
        if keep {
            self.reference
                .captures
                .insert(number, outcome.reference.body.clone());
            self.pocket
                .captures
                .insert(number, outcome.pocket.body.clone());
        }
        generator.learn(number, call, code, &outcome.reference.body);
        if step.is_multiple_of(200) {
            let needed: HashSet<_> = generator.needed().into_iter().collect();
            self.reference
                .captures
                .retain(|number, _| needed.contains(number));
            self.pocket
                .captures
                .retain(|number, _| needed.contains(number));
        }
        let differs =
            !outcome.differences.is_empty() || outcome.reference.is_none() || outcome.diverged;
        for difference in outcome.differences {
            self.report.record(call, (self.seed, step), difference);
        }
        let ending = deletion::is_ending(call, &[&outcome.reference, &outcome.pocket]);
        if (differs || ending) && !call.about.verb.starts_with("list") {
            self.retire(generator, call, number).await?;
        }
        Ok(())
    }

    fn not_allowed(&mut self, call: &Call, mut found: Vec<Difference>) -> Vec<Difference> {
        found.retain(|difference| {
            match permitted::allowing(&self.entries, &call.about.kind, difference) {
                Some(entry) => {
                    *self.report.allowed.entry(entry).or_default() += 1;
                    false
                }
                None => true,
            }
        });
        found
    }

    /// Sends a call to both and compares the responses.
    pub async fn send_and_compare(&mut self, call: &Call) -> Result<Outcome> {
        let (reference, pocket) = self.both(call).await?;
        let number = self.number;
        for (side, answer) in [
            (&mut self.reference, &reference),
            (&mut self.pocket, &pocket),
        ] {
            side.labels.begin(number);
            side.labels.learn_name(call, &answer.body);
        }
        let (mut reference_shown, mut pocket_shown) = (reference.clone(), pocket.clone());
        for answer in [&mut reference_shown, &mut pocket_shown] {
            self.remove_retired(call, &mut answer.body);
            deletion::order_finalizers(call, &mut answer.body);
        }
        let masked = |side: &mut Side, answer: &Answer| Answer {
            body: side.labels.mask(&answer.body),
            warnings: answer
                .warnings
                .iter()
                .map(|text| side.labels.plain_text(text))
                .collect(),
            ..answer.clone()
        };
        if reference.is_none() {
            return Ok(Outcome {
                reference,
                pocket,
                differences: Vec::new(),
                diverged: false,
            });
        }
        let theirs = masked(&mut self.reference, &reference_shown);
        let ours = masked(&mut self.pocket, &pocket_shown);
        let mut found = differences(&theirs, &ours);
        found.extend(self.order(call, &reference, &pocket));
        let mut found = self.not_allowed(call, found);
        let diverged = invisible_writes::is_invisible_write(&found, &reference.body, &pocket.body);
        if diverged {
            found.clear();
        }
        self.report.leaves = (self.reference.labels.compared, self.reference.labels.masked);
        Ok(Outcome {
            reference,
            pocket,
            differences: found,
            diverged,
        })
    }

    /// A write gets a revision higher than all before, or keeps the one that the object had.
    fn order(&mut self, call: &Call, reference: &Answer, pocket: &Answer) -> Option<Difference> {
        let writes = matches!(call.method.as_str(), "POST" | "PUT" | "PATCH")
            && !call.path.contains("dryRun");
        if !writes || reference.code >= 300 || pocket.code >= 300 {
            return None;
        }
        let theirs = self.reference.moved(&reference.body);
        let ours = self.pocket.moved(&pocket.body);
        (theirs != ours).then(|| Difference {
            field: "revisions".into(),
            rule: format!("{theirs} not {ours}"),
            reference: theirs.into(),
            pocket: ours.into(),
        })
    }

    fn record_properties(&mut self, call: &Call, code: u16) {
        let Body::Json(body) = &call.body else {
            return;
        };
        let kind = self
            .world
            .kinds
            .iter()
            .find(|kind| kind.name == call.about.kind);
        if let Some(kind) =
            kind.filter(|_| !call.about.verb.contains("json") && !call.about.verb.contains("scale"))
        {
            self.touched
                .record(&self.world.types, &kind.root, body, code < 300);
        }
    }

    /// Deletes an object whose states may have diverged, for good: one defect is reported once.
    async fn retire(
        &mut self,
        generator: &mut CallGenerator,
        call: &Call,
        number: usize,
    ) -> Result<()> {
        let Some((namespace, name)) = call.about.object.clone() else {
            return Ok(());
        };
        generator.forget(&namespace, &name);
        for side in [&self.reference, &self.pocket] {
            let name = if name.is_empty() {
                crate::call::capture(number, "/metadata/name")
            } else {
                name.clone()
            };
            self.retired
                .insert(crate::call::fill_text(&name, &side.captures));
        }
        let name = if name.is_empty() {
            crate::call::capture(number, "/metadata/name")
        } else {
            name
        };
        let kind = self
            .world
            .kinds
            .iter()
            .find(|kind| kind.name == call.about.kind);
        let Some(kind) = kind
            .filter(|kind| kind.name != "CustomResourceDefinition")
            .cloned()
        else {
            return Ok(());
        };
        let path = format!("{}/{name}", kind.collection(&namespace));
        self.remove(&path).await
    }
}

/// Whether the reference may answer from a cache without the last write.
fn may_lag(call: &Call) -> bool {
    call.method == "GET" && call.path.contains("resourceVersion=") && !call.path.contains("Exact")
}

fn fill_name(body: &Body) -> String {
    match body {
        Body::Json(value) => value["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        _ => String::new(),
    }
}

fn plain(method: &str, path: &str, body: Body) -> Call {
    Call {
        method: method.into(),
        path: path.into(),
        accept: "application/json".into(),
        content_type: "application/json".into(),
        body,
        about: About::default(),
    }
}

/// Whether a server closed the connection during a call. Some bodies make the reference do so: it
/// panics, sends nothing and goes on, and there is nothing to compare.
fn broke_off(error: &anyhow::Error) -> bool {
    const INCOMPLETE: &str = "connection closed before message completed";
    error.chain().any(|cause| cause.to_string() == INCOMPLETE)
}
