//! Reads the facts of a claim and executes one step after another.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};
use kube::ResourceExt;
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, OWN_WRITE_TIMEOUT, Tools},
    context::Context,
    controller::{Enqueuer, Outcome},
    event::EventDraft,
    key::Key,
    manager::Component,
    planted,
    watch::{Cache, Index, WatchesStopped},
};
use parking_lot::Mutex;

use super::{
    CONTROLLER_NAME, claim_key,
    decide::{ClaimStep, Facts, decide},
    storage_class::standard_class,
};
use crate::workload::{claim_names, wait_for_own_write};

/// The maximum number of steps in one reconcile; binding takes fewer, so more would be a cycle.
const MAX_STEPS: usize = 8;
/// The delay before another attempt to create the default class.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The claim controller, whose volumes are folders below `folder`.
pub fn component(context: &Context, folder: &Path) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, CONTROLLER_NAME);
    let claims = builder.primary::<PersistentVolumeClaim>()?;
    let volumes = builder.cache::<PersistentVolume>()?;
    let classes = builder.cache::<StorageClass>()?;
    let pods = builder.cache::<Pod>()?;
    builder.wait_for(ensure_default_class(classes.clone(), builder.tools()));
    let unbound = Index::new(&claims, unbound);
    let used = Index::new(&pods, used);
    let waiting = unbound.clone();
    builder.on_change(&volumes, move |change, enqueuer| {
        match claim_key(change.object()) {
            Some(claim) => enqueuer.enqueue(claim),
            // Any waiting claim may match it.
            None => enqueue_all(&waiting, enqueuer),
        }
    });
    builder.on_change(&classes, move |_, enqueuer| enqueue_all(&unbound, enqueuer));
    builder.on_change(&pods, |change, enqueuer| {
        let pod = change.object();
        let namespace = pod.namespace().unwrap_or_default();
        for claim in claim_names(pod) {
            enqueuer.enqueue(Key::new(&namespace, &claim));
        }
    });
    let reconciler = ClaimReconciler {
        tools: builder.tools(),
        folder: folder.to_owned(),
        recorded: Mutex::default(),
        claims,
        volumes,
        classes,
        used,
    };
    Ok(builder.build(reconciler, ClaimReconciler::reconcile))
}

/// Creates the standard class if there is no class at all.
async fn ensure_default_class(classes: Cache<StorageClass>, tools: Tools) {
    classes.synced().await;
    while classes.is_empty() {
        match tools.writer.create(&standard_class()).await {
            Ok(Some(made)) => return wait_for_own_write(&classes, made.resource_version()).await,
            // It exists already; the watch will deliver it.
            Ok(None) => tools.clock.sleep(RETRY_DELAY).await,
            Err(error) => {
                tracing::warn!(%error, "the default StorageClass could not be created");
                tools.clock.sleep(RETRY_DELAY).await;
            }
        }
    }
}

fn enqueue_all(waiting: &Index<PersistentVolumeClaim>, enqueuer: &Enqueuer<Key>) {
    for claim in waiting.get("") {
        enqueuer.enqueue(Key::of(&*claim));
    }
}

/// The index key of all claims without a volume is the empty string.
fn unbound(claim: &PersistentVolumeClaim) -> Vec<String> {
    let status = claim.status.as_ref();
    let is_bound = status.and_then(|status| status.phase.as_deref()) == Some("Bound");
    (!is_bound).then(String::new).into_iter().collect()
}

fn used(pod: &Pod) -> Vec<String> {
    let namespace = pod.namespace().unwrap_or_default();
    let names = claim_names(pod).into_iter();
    names
        .map(|name| Key::new(&namespace, &name).to_string())
        .collect()
}

/// What the reconcile does after a step.
enum NextAction {
    Continue,
    Finish,
    Requeue,
}

struct ClaimReconciler {
    claims: Cache<PersistentVolumeClaim>,
    volumes: Cache<PersistentVolume>,
    classes: Cache<StorageClass>,
    used: Index<Pod>,
    tools: Tools,
    folder: PathBuf,
    /// The last recorded Event of each waiting claim.
    recorded: Mutex<HashMap<Key, (Option<String>, EventDraft)>>,
}

impl ClaimReconciler {
    /// Executes the steps of a claim until nothing is left to do.
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(claim) = self.claims.get(&key) else {
            self.recorded.lock().remove(&key);
            return Ok(Outcome::Gone);
        };
        let (mut claim, mut volumes) = ((*claim).clone(), self.volumes.list(""));
        for _ in 0..MAX_STEPS {
            let step = decide(&Facts {
                claim: &claim,
                volumes: &volumes,
                classes: &self.classes.list(""),
                is_used: !self.used.get(&key.to_string()).is_empty(),
                folder: &self.folder,
            });
            match self
                .execute_step(&key, step, &mut claim, &mut volumes)
                .await?
            {
                NextAction::Continue => {}
                NextAction::Finish => break,
                NextAction::Requeue => return Ok(Outcome::RequeueAfter(OWN_WRITE_TIMEOUT)),
            }
        }
        Ok(Outcome::Done)
    }

    /// Executes one step, and updates the facts with its result.
    async fn execute_step(
        &self,
        key: &Key,
        step: ClaimStep,
        claim: &mut PersistentVolumeClaim,
        volumes: &mut Vec<Arc<PersistentVolume>>,
    ) -> Result<NextAction, Error> {
        let writer = &self.tools.writer;
        let written = match step {
            ClaimStep::Nothing => {
                self.recorded.lock().remove(key);
                return Ok(NextAction::Finish);
            }
            ClaimStep::Wait(event) => {
                self.record_once(key, claim, event).await;
                return Ok(NextAction::Finish);
            }
            ClaimStep::CreateVolume(volume) => self.create_volume(claim, &volume).await?,
            ClaimStep::UpdateVolume(volume) => Some(writer.replace(&*volume).await?),
            ClaimStep::UpdateClaim(changed) => {
                *claim = writer.replace(&*changed).await?;
                return Ok(NextAction::Continue);
            }
            ClaimStep::UpdateStatus(updated) => {
                *claim = writer.replace_status(&*updated).await?;
                return Ok(NextAction::Continue);
            }
        };
        let Some(volume) = written else {
            planted!(VolumeTaken => return Ok(NextAction::Finish));
            // It exists already and is not in the cache yet.
            return Ok(NextAction::Requeue);
        };
        volumes.retain(|known| known.metadata.name != volume.metadata.name);
        volumes.push(Arc::new(volume));
        Ok(NextAction::Continue)
    }

    async fn create_volume(
        &self,
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
    ) -> Result<Option<PersistentVolume>, Error> {
        let made = self.tools.writer.create(volume).await?;
        if let Some(volume) = &made {
            let message = format!("Successfully provisioned volume {}", volume.name_any());
            let event = EventDraft::normal("ProvisioningSucceeded", message);
            self.tools.record(claim, &event).await;
        }
        Ok(made)
    }

    /// Records why a claim waits, unless that was recorded already.
    async fn record_once(&self, key: &Key, claim: &PersistentVolumeClaim, event: EventDraft) {
        let current = (claim.uid(), event);
        let before = self.recorded.lock().insert(key.clone(), current.clone());
        if before.as_ref() != Some(&current) {
            self.tools.record(claim, &current.1).await;
        }
    }
}
