//! Reads the facts, and does one step after another.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim, Pod},
    storage::v1::StorageClass,
};
use kube::{Api, Client, ResourceExt};
use neap_kit::{
    apply::{Error, Hand},
    clock::Clock,
    controller::{Options, Outcome, Trigger},
    event::{Note, Recorder},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended, Index},
};
use parking_lot::Mutex;

use super::{
    class::usual,
    decide::{Facts, Step, decide},
    fit::uid,
    reclaim::{Fate, fate},
};
use crate::workload::{claim_names, echoed, report, unless_replaced};

const NAME: &str = "persistentvolume-controller";
/// What could not be removed is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_mins(1);
/// A claim is bound in fewer steps than this; more would go round in a circle.
const STEPS: usize = 8;

/// The controller of claims and volumes, which makes folders below `folder`.
pub fn service(site: &Site, folder: &Path) -> Result<Service, Ended> {
    let (claims, pods) = (site.all::<PersistentVolumeClaim>()?, site.all::<Pod>()?);
    let (volumes, classes) = (site.all::<PersistentVolume>()?, site.all::<StorageClass>()?);
    let binder = site.controller(Options::new(NAME));
    let keeper = site.controller(Options::new("persistentvolume-keeper"));
    let unbound = Index::new(&claims, unbound);
    let used = Index::new(&pods, used);
    let held = Index::new(&volumes, |volume: &PersistentVolume| {
        claim_key(volume)
            .map(|key| key.to_string())
            .into_iter()
            .collect()
    });
    let work = Arc::new(Work {
        claims: claims.clone(),
        volumes: volumes.clone(),
        classes: classes.clone(),
        used,
        hand: site.hand(NAME),
        recorder: site.recorder(NAME),
        client: site.client.clone(),
        clock: site.clock,
        folder: folder.to_owned(),
        told: Mutex::default(),
    });
    let (bind, keep) = (binder.trigger(), keeper.trigger());
    follow_claims(&claims, held, &bind, &keep);
    follow_volumes(&volumes, unbound.clone(), &bind, &keep);
    let (waiting, again) = (unbound, bind.clone());
    classes.follow(move |_| look_at_all(&waiting, &again));
    pods.follow(move |change| {
        let pod = change.object();
        let namespace = pod.namespace().unwrap_or_default();
        for claim in claim_names(pod) {
            bind.changed(Key::new(&namespace, &claim));
        }
    });
    Ok(Service::new(NAME, move |stop| async move {
        let known = async || {
            tokio::join!(claims.synced(), volumes.synced());
            tokio::join!(classes.synced(), pods.synced());
        };
        let (one, other, first) = (work.clone(), work.clone(), work);
        let begin = async {
            known().await;
            first.furnish().await;
        };
        let binding = binder.run_once_known(begin, move |key| one.clone().bind(key), stop.clone());
        let keeping = keeper.run_once_known(known(), move |key| other.clone().keep(key), stop);
        tokio::join!(binding, keeping);
    }))
}

fn follow_claims(
    claims: &Cache<PersistentVolumeClaim>,
    held: Index<PersistentVolume>,
    bind: &Trigger<Key>,
    keep: &Trigger<Key>,
) {
    let (bind, keep) = (bind.clone(), keep.clone());
    claims.follow(move |change| {
        bind.changed(change.key());
        for volume in held.get(&change.key().to_string()) {
            keep.changed(Key::of(&*volume));
        }
    });
}

fn follow_volumes(
    volumes: &Cache<PersistentVolume>,
    unbound: Index<PersistentVolumeClaim>,
    bind: &Trigger<Key>,
    keep: &Trigger<Key>,
) {
    let (bind, keep) = (bind.clone(), keep.clone());
    volumes.follow(move |change| {
        keep.changed(change.key());
        match claim_key(change.object()) {
            Some(claim) => bind.changed(claim),
            // Whoever waits may have it.
            None => look_at_all(&unbound, &bind),
        }
    });
}

fn look_at_all(waiting: &Index<PersistentVolumeClaim>, bind: &Trigger<Key>) {
    for claim in waiting.get("") {
        bind.changed(Key::of(&*claim));
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

/// The claim that a volume is for.
fn claim_key(volume: &PersistentVolume) -> Option<Key> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(Key::new(
        claim.namespace.as_deref()?,
        claim.name.as_deref()?,
    ))
}

struct Work {
    claims: Cache<PersistentVolumeClaim>,
    volumes: Cache<PersistentVolume>,
    classes: Cache<StorageClass>,
    used: Index<Pod>,
    hand: Hand,
    recorder: Recorder,
    client: Client,
    clock: Clock,
    folder: PathBuf,
    /// What claims wait for, as it was told.
    told: Mutex<HashMap<Key, (Option<String>, Note)>>,
}

impl Work {
    /// Makes the usual class if there is none at all.
    async fn furnish(&self) {
        while self.classes.is_empty() {
            match self.hand.create(&usual()).await {
                Ok(made) => {
                    echoed(
                        &self.classes,
                        made.and_then(|class| class.resource_version()),
                    )
                    .await;
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "the usual StorageClass could not be made");
                    self.clock.sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }

    /// Goes on with a claim for as long as there is something to do.
    async fn bind(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
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
            match unless_replaced(self.take(&key, step, &mut claim, &mut volumes).await)? {
                Some(true) => {}
                Some(false) | None => break,
            }
        }
        Ok(Outcome::Settled)
    }

    /// Does one step, and puts what came of it in the place of what was known; whether to go on.
    async fn take(
        &self,
        key: &Key,
        step: Step,
        claim: &mut PersistentVolumeClaim,
        volumes: &mut Vec<Arc<PersistentVolume>>,
    ) -> Result<bool, Error> {
        let written = match step {
            Step::Nothing => {
                self.told.lock().remove(key);
                return Ok(false);
            }
            Step::Wait(note) => {
                self.tell(key, claim, note).await;
                return Ok(false);
            }
            Step::Make(volume) => self.make(claim, &volume).await?,
            Step::Change(volume) => Some(self.hand.replace(&*volume).await?),
            Step::Write(changed) => {
                *claim = self.hand.replace(&*changed).await?;
                return Ok(true);
            }
            Step::Report(said) => {
                *claim = self.hand.replace_status(&*said).await?;
                return Ok(true);
            }
        };
        let Some(volume) = written else {
            // It was there and not known yet; it asks for another look when it is.
            return Ok(false);
        };
        volumes.retain(|known| known.metadata.name != volume.metadata.name);
        volumes.push(Arc::new(volume));
        Ok(true)
    }

    async fn make(
        &self,
        claim: &PersistentVolumeClaim,
        volume: &PersistentVolume,
    ) -> Result<Option<PersistentVolume>, Error> {
        let made = self.hand.create(volume).await?;
        if let Some(volume) = &made {
            let message = format!("Successfully provisioned volume {}", volume.name_any());
            let note = Note::normal("ProvisioningSucceeded", message);
            self.recorder.tell(claim, &note).await;
        }
        Ok(made)
    }

    /// Says why a claim waits, unless that was said.
    async fn tell(&self, key: &Key, claim: &PersistentVolumeClaim, note: Note) {
        let said = (claim.uid(), note);
        let before = self.told.lock().insert(key.clone(), said.clone());
        if before.as_ref() != Some(&said) {
            self.recorder.tell(claim, &said.1).await;
        }
    }

    /// Says how a volume is, and ends it when its claim has ended.
    async fn keep(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(volume) = self.volumes.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let claim = match claim_key(&volume) {
            Some(key) => self.claim(&key, &volume).await?,
            None => None,
        };
        match fate(&volume, claim.as_ref(), &self.folder) {
            Fate::Stays => {}
            Fate::Report(volume) => report(&self.hand, &*volume).await?,
            Fate::Free(volume) => drop(unless_replaced(self.hand.replace(&*volume).await)?),
            Fate::Remove(folder) => {
                if let Err(error) = remove(folder).await {
                    let message =
                        format!("the folder of this volume could not be removed: {error}");
                    let note = Note::warning("VolumeFailedDelete", message);
                    self.recorder.tell(&*volume, &note).await;
                    return Ok(Outcome::Again(TRY_AGAIN));
                }
                self.hand.remove(&*volume, None).await?;
            }
        }
        Ok(Outcome::Settled)
    }

    /// The claim of a volume. That it is gone, or another one of its name, is believed only of
    /// the server itself: what is not known yet may be the one whose data is here.
    async fn claim(
        &self,
        key: &Key,
        volume: &PersistentVolume,
    ) -> Result<Option<PersistentVolumeClaim>, Error> {
        let spec = volume.spec.as_ref();
        let uid = spec.and_then(|spec| uid(spec.claim_ref.as_ref()?));
        let known = self
            .claims
            .get(key)
            .filter(|claim| claim.metadata.uid.as_deref() == uid);
        if uid.is_none() || known.is_some() {
            return Ok(known.map(|claim| (*claim).clone()));
        }
        let api: Api<PersistentVolumeClaim> = Api::namespaced(self.client.clone(), key.namespace());
        let found = api.get_opt(key.name()).await;
        found.map_err(|source| Error::Refused {
            key: key.clone(),
            source: Box::new(source),
        })
    }
}

async fn remove(folder: Option<PathBuf>) -> io::Result<()> {
    let Some(folder) = folder else {
        return Ok(());
    };
    let removing = tokio::task::spawn_blocking(move || match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    });
    removing.await.map_err(io::Error::other)?
}
