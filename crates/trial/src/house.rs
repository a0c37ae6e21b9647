//! A cluster whose controllers are started, fed and looked at step by step, without a plan.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

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
    Ground, Workload,
    canary::Listener,
    judge::{Oracle, Violation, allowances::NOT_COMPARED, secrets, written},
    outside::Ledger,
    panics, paused,
    plan::Plan,
    rest::{self, LIMIT, REST},
    run::{START, perform},
    scene::Scene,
    seam::Director,
    settled,
};

/// So long nobody writes before all is at rest. No fault strikes here, so it is short; whoever
/// waits for longer is seen while nothing may be written.
const QUIET: Duration = Duration::from_secs(30);
/// Objects by place, without what no two runs share and what is kept as history.
pub(crate) type State = BTreeMap<String, Vec<Value>>;

pub(crate) struct House {
    pub(crate) user: Client,
    pub(crate) pocket: Pocket,
    clock: Clock,
    scene: Arc<Scene>,
    odd: Arc<Mutex<Vec<String>>>,
    tasks: JoinSet<()>,
    since: u64,
}

/// What `work` comes to on a runtime of its own under a paused clock, and what should not have been
/// heard meanwhile: panics, and secrets.
pub(crate) fn alone<T>(
    work: impl Future<Output = Result<T, String>>,
) -> Result<(T, Vec<Violation>), String> {
    panics::listen();
    let listener = Listener::default();
    let done = tracing::subscriber::with_default(listener.clone(), || paused(work));
    let panics = panics::take();
    let mut heard = secrets::told("a panic", &panics);
    heard.extend(secrets::told("a log line", &listener.take()));
    let panics = panics.into_iter();
    heard.extend(panics.map(|panic| Violation::new(Oracle::Panic, "panic", panic)));
    Ok((done.map_err(|error| error.to_string())??, heard))
}

impl House {
    /// The setting of `workload`, and nobody at work yet.
    pub(crate) async fn open(
        workload: &Workload,
        seed: u64,
        ground: &Ground,
    ) -> Result<Self, String> {
        let pocket = ground.copy(seed).await.map_err(|error| error.to_string())?;
        let clock = Clock::starting_at(START.parse().map_err(|_| "no such moment")?);
        let director = Director::of(&Plan::calm(workload.name, seed));
        let ledger = Ledger::of((workload.system)());
        let house = Self {
            user: Client::new(pocket.service(), "default"),
            scene: Arc::new(Scene::new(clock, director, ledger)),
            odd: Arc::default(),
            tasks: JoinSet::new(),
            since: ground.revision(),
            pocket,
            clock,
        };
        for deed in &workload.setting {
            perform(&house.user, deed, false).await?;
        }
        Ok(house)
    }

    /// Those of `workload` begin to work. What is there by now was there before them.
    pub(crate) fn start(&mut self, workload: &Workload) {
        for actor in workload.actors.clone() {
            let (scene, odd) = (self.scene.clone(), self.odd.clone());
            self.tasks
                .spawn(actor.keep(self.pocket.clone(), scene, odd));
        }
        if let Some(node) = workload.node.clone() {
            let (pocket, user) = (self.pocket.clone(), self.user.clone());
            self.tasks
                .spawn(node.since(self.since).run(pocket, user, self.clock));
        }
    }

    /// Waits until nobody writes any longer; a violation if that takes too long.
    pub(crate) async fn rest(&self) -> Option<Violation> {
        // Renewals and words are no sign of work.
        let store = self.pocket.store();
        let rests = rest::comes(store, &self.scene, QUIET, &NOT_COMPARED).await;
        (!rests).then(|| {
            let busy = format!("still busy after {LIMIT:?}");
            Violation::new(Oracle::Rest, "", busy)
        })
    }

    /// Lets ten minutes pass.
    pub(crate) async fn wait(&self) {
        self.clock.sleep(REST).await;
    }

    /// Nothing may be written now, for ten minutes.
    pub(crate) async fn stay(&self) -> Vec<Violation> {
        rest::lasts(self.pocket.store(), &self.scene).await
    }

    /// What is wrong with the way here, wherever it led: what was noted of those at work, what they
    /// wrote, and what they told.
    pub(crate) fn look_back(&self) -> Vec<Violation> {
        let history = self.history();
        let mut violations = self.scene.noted(&history);
        violations.extend(written(&history));
        violations.extend(self.oddities());
        violations
    }

    fn history(&self) -> Vec<Arc<Event>> {
        let mut history = self.pocket.store().export_history();
        history.retain(|event| event.revision() > self.since);
        history
    }

    /// What there is, as two runs can be compared by it.
    pub(crate) fn state(&self) -> State {
        settled::state(&self.there(), &self.history())
    }

    /// Objects that have lost their owners.
    pub(crate) fn orphans(&self) -> Vec<Violation> {
        let there = self.there();
        let alive: HashSet<&str> = there
            .iter()
            .map(|(.., object)| &*object.metadata().uid)
            .collect();
        let lost = there.iter().filter(|(.., object)| {
            let owners = &object.metadata().owner_references;
            !owners.is_empty() && owners.iter().all(|owner| !alive.contains(&*owner.uid))
        });
        let tell = |(resource, path, _): &Placed| {
            let text = format!("{resource}/{path} has lost its owner and is still there");
            Violation::new(Oracle::Orphan, resource, text)
        };
        lost.map(tell).collect()
    }

    fn there(&self) -> Vec<Placed> {
        let (_, all) = self.pocket.store().everything();
        let new = all.into_iter();
        new.filter(|(.., object)| object.revision() > self.since)
            .collect()
    }

    /// What should not have happened to those at work.
    pub(crate) fn oddities(&self) -> Vec<Violation> {
        let mut odd = self.odd.lock();
        let odd = odd.drain(..);
        odd.map(|oddity| Violation::new(Oracle::Panic, "process", oddity))
            .collect()
    }
}
