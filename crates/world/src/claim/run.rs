//! Reads the facts of a claim, and does one step after another.

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
    controller::{Outcome, Trigger},
    event::Note,
    key::Key,
    manager::Service,
    planted,
    site::Site,
    watch::{Cache, Ended, Index},
    wiring::{ECHO, Tools, Wiring},
};
use parking_lot::Mutex;

use super::{
    NAME, claim_key,
    class::usual,
    decide::{Facts, Step, decide},
};
use crate::workload::{claim_names, echoed};

/// A claim is bound in fewer steps than this; more would go round in a circle.
const STEPS: usize = 8;
/// A class that could not be made is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The controller of claims, whose volumes are folders below `folder`.
pub fn service(site: &Site, folder: &Path) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, NAME);
    let claims = wiring.kept::<PersistentVolumeClaim>()?;
    let volumes = wiring.read::<PersistentVolume>()?;
    let classes = wiring.read::<StorageClass>()?;
    let pods = wiring.read::<Pod>()?;
    wiring.once(furnish(classes.clone(), wiring.tools()));
    let unbound = Index::new(&claims, unbound);
    let used = Index::new(&pods, used);
    let waiting = unbound.clone();
    wiring.follow(&volumes, move |change, trigger| {
        match claim_key(change.object()) {
            Some(claim) => trigger.changed(claim),
            // Whoever waits may have it.
            None => look_at_all(&waiting, trigger),
        }
    });
    wiring.follow(&classes, move |_, trigger| look_at_all(&unbound, trigger));
    wiring.follow(&pods, |change, trigger| {
        let pod = change.object();
        let namespace = pod.namespace().unwrap_or_default();
        for claim in claim_names(pod) {
            trigger.changed(Key::new(&namespace, &claim));
        }
    });
    let work = Work {
        tools: wiring.tools(),
        folder: folder.to_owned(),
        told: Mutex::default(),
        claims,
        volumes,
        classes,
        used,
    };
    Ok(wiring.service(work, Work::reconcile))
}

/// Makes the usual class if there is none at all.
async fn furnish(classes: Cache<StorageClass>, tools: Tools) {
    classes.synced().await;
    while classes.is_empty() {
        match tools.hand.create(&usual()).await {
            Ok(Some(made)) => return echoed(&classes, made.resource_version()).await,
            // It is there, or so the server said: then the watch will say so.
            Ok(None) => tools.clock.sleep(TRY_AGAIN).await,
            Err(error) => {
                tracing::warn!(%error, "the usual StorageClass could not be made");
                tools.clock.sleep(TRY_AGAIN).await;
            }
        }
    }
}

fn look_at_all(waiting: &Index<PersistentVolumeClaim>, trigger: &Trigger<Key>) {
    for claim in waiting.get("") {
        trigger.changed(Key::of(&*claim));
    }
}

/// All claims that have no volume are found under nothing.
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

/// What follows a step.
enum Then {
    GoOn,
    Rest,
    LookAgain,
}

struct Work {
    claims: Cache<PersistentVolumeClaim>,
    volumes: Cache<PersistentVolume>,
    classes: Cache<StorageClass>,
    used: Index<Pod>,
    tools: Tools,
    folder: PathBuf,
    /// What claims wait for, as it was told.
    told: Mutex<HashMap<Key, (Option<String>, Note)>>,
}

impl Work {
    /// Goes on with a claim for as long as there is something to do.
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(claim) = self.claims.get(&key) else {
            self.told.lock().remove(&key);
            return Ok(Outcome::Gone);
        };
        let (mut claim, mut volumes) = ((*claim).clone(), self.volumes.list(""));
        for _ in 0..STEPS {
            let step = decide(&Facts {
                claim: &claim,
                volumes: &volumes,
                classes: &self.classes.list(""),
                is_used: !self.used.get(&key.to_string()).is_empty(),
                folder: &self.folder,
            });
            match self.take(&key, step, &mut claim, &mut volumes).await? {
                Then::GoOn => {}
                Then::Rest => break,
                Then::LookAgain => return Ok(Outcome::Again(ECHO)),
            }
        }
        Ok(Outcome::Settled)
    }

    /// Does one step, and puts what came of it in the place of what was known.
    async fn take(
        &self,
        key: &Key,
        step: Step,
        claim: &mut PersistentVolumeClaim,
        volumes: &mut Vec<Arc<PersistentVolume>>,
    ) -> Result<Then, Error> {
        let hand = &self.tools.hand;
        let written = match step {
            Step::Nothing => {
                self.told.lock().remove(key);
                return Ok(Then::Rest);
            }
            Step::Wait(note) => {
                self.tell(key, claim, note).await;
                return Ok(Then::Rest);
            }
            Step::Make(volume) => self.make(claim, &volume).await?,
            Step::Change(volume) => Some(hand.replace(&*volume).await?),
            Step::Write(changed) => {
                *claim = hand.replace(&*changed).await?;
                return Ok(Then::GoOn);
            }
            Step::Report(said) => {
                *claim = hand.replace_status(&*said).await?;
                return Ok(Then::GoOn);
            }
        };
        let Some(volume) = written else {
            planted!(VolumeTaken => return Ok(Then::Rest));
            // It was there and is not known yet, or so the server said.
            return Ok(Then::LookAgain);
        };
        volumes.retain(|known| known.metadata.name != volume.metadata.name);
        volumes.push(Arc::new(volume));
        Ok(Then::GoOn)
    }

    async fn make(
        &self,
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
    ) -> Result<Option<PersistentVolume>, Error> {
        let made = self.tools.hand.create(volume).await?;
        if let Some(volume) = &made {
            let message = format!("Successfully provisioned volume {}", volume.name_any());
            let note = Note::normal("ProvisioningSucceeded", message);
            self.tools.tell(claim, &note).await;
        }
        Ok(made)
    }

    /// Says why a claim waits, unless that was said.
    async fn tell(&self, key: &Key, claim: &PersistentVolumeClaim, note: Note) {
        let said = (claim.uid(), note);
        let before = self.told.lock().insert(key.clone(), said.clone());
        if before.as_ref() != Some(&said) {
            self.tools.tell(claim, &said.1).await;
        }
    }
}
