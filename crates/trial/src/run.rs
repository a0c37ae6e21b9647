//! Plays a workload while the faults of a plan strike.

use std::{sync::Arc, time::Duration};

use http::Request;
use kube::Client;
use neap_kit::clock::Clock;
use neap_pocket::{
    Pocket,
    store::{Event, Placed},
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::{
    Deed, Entry, Ground, Workload,
    canary::{self, Listener},
    canonical::collection,
    judge::{Oracle, Outcome, Reference, Violation, allowances::LEASES, secrets},
    outside::{Ledger, Row},
    panics, paused,
    plan::Plan,
    poison,
    rest::{self, LIMIT},
    scene::Scene,
    seam::Director,
};

/// When runs begin.
pub(crate) const START: &str = "2026-01-01T00:00:00Z";
/// So long nobody writes before a step has come to rest: longer than a watch that broke off takes
/// to be opened again.
const QUIET: Duration = Duration::from_secs(75);

/// What a run left behind.
#[derive(Debug, Default)]
pub struct Record {
    /// Everything that was new or changed at the end of each step.
    pub states: Vec<Vec<Placed>>,
    /// Every write, by everybody.
    pub history: Vec<Arc<Event>>,
    /// What passed the seam.
    pub entries: Vec<Entry>,
    /// A number that any difference in what passed changes.
    pub fingerprint: u64,
    /// What systems outside were asked and did.
    pub ledger: Vec<Row>,
    /// The rules that never struck.
    pub idle: Vec<usize>,
    /// How long each step took to come to rest.
    pub took: Vec<Duration>,
    /// The revision at the end of each step.
    pub ends: Vec<u64>,
    /// Whether there were poisoned objects, of which nothing is in this record.
    pub poisoned: bool,
    /// What was seen to go wrong while it went wrong.
    pub violations: Vec<Violation>,
}

/// Plays one plan, in this process.
pub fn run(workload: &Workload, plan: &Plan, ground: &Ground) -> Result<Record, String> {
    let play = Play {
        workload,
        seed: plan.seed,
        poisoned: poison::is_in(plan),
    };
    let (record, _) = on_stage(play, ground, Director::of(plan))?;
    Ok(record)
}

/// Plays all plans, each from where it strikes on in a process of its own; what came of each.
pub(crate) fn run_all(
    workload: &Workload,
    seed: u64,
    ground: &Ground,
    reference: &Reference,
    director: Director,
) -> Result<Vec<(usize, Outcome)>, String> {
    let play = Play {
        workload,
        seed,
        poisoned: false,
    };
    let (record, scene) = on_stage(play, ground, director)?;
    let told = scene
        .director
        .lock()
        .close(|| Outcome::of(&record, reference));
    Ok(told)
}

/// What is played, whatever goes wrong meanwhile.
#[derive(Clone, Copy)]
struct Play<'a> {
    workload: &'a Workload,
    seed: u64,
    /// Whether all that users do they do for poisoned objects too.
    poisoned: bool,
}

fn on_stage(
    show: Play<'_>,
    ground: &Ground,
    director: Director,
) -> Result<(Record, Arc<Scene>), String> {
    panics::listen();
    let listener = Listener::default();
    let played = tracing::subscriber::with_default(listener.clone(), || {
        paused(play(show, ground, director))
    });
    let panics = panics::take();
    let (mut record, scene) = played.map_err(|error| error.to_string())??;
    record.violations.extend(secrets::told("a panic", &panics));
    record
        .violations
        .extend(secrets::told("a log line", &listener.take()));
    for panic in panics {
        record
            .violations
            .push(Violation::new(Oracle::Panic, "panic", panic));
    }
    record.idle = scene.director.lock().idle();
    Ok((record, scene))
}

async fn play(
    show: Play<'_>,
    ground: &Ground,
    director: Director,
) -> Result<(Record, Arc<Scene>), String> {
    let Play {
        workload, poisoned, ..
    } = show;
    let pocket = ground
        .copy(show.seed)
        .await
        .map_err(|error| error.to_string())?;
    let clock = Clock::starting_at(START.parse().map_err(|_| "no such moment")?);
    let scene = Arc::new(Scene::new(clock, director, Ledger::of((workload.system)())));
    let odd = Arc::new(Mutex::new(Vec::new()));
    let user = Client::new(pocket.service(), "default");
    for deed in &workload.setting {
        perform(&user, deed, poisoned).await?;
    }
    let mut tasks = JoinSet::new();
    for actor in workload.actors.clone() {
        tasks.spawn(actor.keep(pocket.clone(), scene.clone(), odd.clone()));
    }
    if let Some(node) = workload.node.clone() {
        tasks.spawn(node.run(pocket.clone(), user.clone(), clock));
    }
    let mut stage = Stage {
        pocket: &pocket,
        scene: &scene,
        since: ground.revision(),
        record: Record::default(),
    };
    stage.rest("start").await;
    for step in &workload.steps {
        for deed in &step.deeds {
            if let Err(refused) = perform(&user, deed, poisoned).await {
                // What the step is about is not as it should be by now.
                let violation = Violation::new(Oracle::EndState, "", refused);
                stage.record.violations.push(violation);
            }
        }
        stage.reach(step.until).await;
        stage.rest(&step.name).await;
    }
    stage.stay().await;
    let mut record = stage.record;
    for oddity in odd.lock().drain(..) {
        let violation = Violation::new(Oracle::Panic, "process", oddity);
        record.violations.push(violation);
    }
    let history = pocket.store().export_history().into_iter();
    let new = history.filter(|event| event.revision() > ground.revision());
    record.history = new.collect();
    look_back(&mut record, &scene);
    if poisoned {
        poison::strip(&mut record);
    }
    Ok((record, scene))
}

/// What was noted while it was played.
fn look_back(record: &mut Record, scene: &Scene) {
    record.violations.extend(scene.noted(&record.history));
    record.ledger = scene.ledger.lock().rows();
    (record.entries, record.fingerprint) = scene.trace.lock().take();
}

struct Stage<'a> {
    pocket: &'a Pocket,
    scene: &'a Scene,
    since: u64,
    record: Record,
}

impl Stage<'_> {
    /// Lets the time come until which a step goes on.
    async fn reach(&self, moment: Option<Duration>) {
        let clock = self.scene.clock;
        if let Some(moment) = moment {
            let left = moment.saturating_sub(clock.uptime());
            clock.sleep(left).await;
        }
    }

    /// Waits until nobody writes any longer, and keeps what there is then.
    async fn rest(&mut self, step: &str) {
        let clock = self.scene.clock;
        let begun = clock.uptime();
        let quiet = rest::comes(self.pocket.store(), self.scene, QUIET, &[LEASES]).await;
        if !quiet {
            let busy = format!("{step}: still busy after {LIMIT:?}");
            self.record
                .violations
                .push(Violation::new(Oracle::Rest, "", busy));
        }
        let (_, all) = self.pocket.store().everything();
        let since = self.since;
        let new = all.into_iter();
        let new = new.filter(|(_, _, object)| object.revision() > since);
        self.record.states.push(new.collect());
        self.record.ends.push(self.pocket.store().revision());
        let took = clock.uptime().saturating_sub(begun + QUIET);
        self.record.took.push(took);
    }

    /// Nothing may be written once all has come to rest.
    async fn stay(&mut self) {
        let restless = rest::lasts(self.pocket.store(), self.scene).await;
        self.record.violations.extend(restless);
    }
}

/// Does what a user does, and the same for the poisoned twin of what it is done to.
pub(crate) async fn perform(user: &Client, deed: &Deed, poisoned: bool) -> Result<(), String> {
    let (method, path, body) = match deed {
        Deed::Create(object) => ("POST", collection(object), canary::planted(object)),
        Deed::Patch(path, patch) => ("PATCH", (*path).to_owned(), canary::planted(patch)),
        // As kubectl does it; left to the server, the pods of a Job would stay.
        Deed::Delete(path) => {
            let options = serde_json::json!({"propagationPolicy": "Background"});
            ("DELETE", (*path).to_owned(), options)
        }
    };
    if poisoned
        && method != "DELETE"
        && let Some((path, body)) = poison::twin(&path, &body)
    {
        // First, so that it is the first that somebody tries to help. Not all can be done twice.
        let _ = send(user, method, &path, &body).await;
    }
    let done = send(user, method, &path, &body).await;
    done.map(drop).map_err(|error| format!("{deed:?}: {error}"))
}

/// A request of somebody who is not under trial.
pub(crate) async fn send(
    client: &Client,
    method: &str,
    path: &str,
    body: &Value,
) -> Result<Value, kube::Error> {
    let kind = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(body.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    canary::by_a_user(client.request(request)).await
}
