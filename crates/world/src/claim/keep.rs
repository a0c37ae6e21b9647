//! Says how volumes are, and ends those whose claims have ended.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::{Api, Client};
use neap_kit::{
    apply::Error,
    controller::{Options, Outcome},
    event::Note,
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended, Index},
    wiring::{Tools, Wiring},
};

use super::{
    NAME, claim_key,
    fit::uid,
    reclaim::{Fate, fate},
};
use crate::folder;

/// What could not be removed is tried again after this time.
const TRY_AGAIN: Duration = Duration::from_mins(1);

/// The controller of volumes, which removes folders below `folder`.
pub fn volumes(site: &Site, folder: &Path) -> Result<Service, Ended> {
    let mut wiring = Wiring::with(site, Options::new("persistentvolume-reclaimer"));
    let volumes = wiring.kept::<PersistentVolume>()?;
    let claims = wiring.read::<PersistentVolumeClaim>()?;
    let held = Index::new(&volumes, |volume: &PersistentVolume| {
        let key = claim_key(volume).map(|key| key.to_string());
        key.into_iter().collect()
    });
    wiring.follow(&claims, move |change, trigger| {
        for volume in held.get(&change.key().to_string()) {
            trigger.changed(Key::of(&*volume));
        }
    });
    let work = Work {
        tools: Tools::new(site, NAME),
        client: site.client.clone(),
        folder: folder.to_owned(),
        volumes,
        claims,
    };
    Ok(wiring.service(work, Work::reconcile))
}

struct Work {
    volumes: Cache<PersistentVolume>,
    claims: Cache<PersistentVolumeClaim>,
    tools: Tools,
    client: Client,
    folder: PathBuf,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(volume) = self.volumes.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let claim = match claim_key(&volume) {
            Some(key) => self.claim(&key, &volume).await?,
            None => None,
        };
        let hand = &self.tools.hand;
        match fate(&volume, claim.as_ref(), &self.folder) {
            Fate::Stays => {}
            Fate::Report(volume) => drop(hand.replace_status(&*volume).await?),
            Fate::Free(volume) => drop(hand.replace(&*volume).await?),
            Fate::Remove(folder) => {
                if let Err(error) = remove(folder).await {
                    let message = format!("the folder of this volume cannot be removed: {error}");
                    let note = Note::warning("VolumeFailedDelete", message);
                    self.tools.tell(&*volume, &note).await;
                    return Ok(Outcome::Again(TRY_AGAIN));
                }
                hand.remove(&*volume, None).await?;
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
        let is_it = |claim: &Arc<PersistentVolumeClaim>| claim.metadata.uid.as_deref() == uid;
        let known = self.claims.get(key).filter(is_it);
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

async fn remove(path: Option<PathBuf>) -> io::Result<()> {
    // A volume that nobody mounted has no folder; a look is cheaper than a thread.
    let Some(path) = path else {
        return Ok(());
    };
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let removing = tokio::task::spawn_blocking(move || folder::remove(&path));
    removing.await.map_err(io::Error::other)?
}
