//! Reports the phase of volumes, and reclaims those whose claims have been deleted.

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
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::{ControllerOptions, Outcome},
    event::EventDraft,
    key::Key,
    manager::Component,
    watch::{Cache, Index, WatchesStopped},
};

use super::{
    CONTROLLER_NAME, claim_key,
    matching::uid,
    reclaim::{VolumeAction, volume_action},
};
use crate::folder;

/// The delay before another attempt to remove a folder.
const RETRY_DELAY: Duration = Duration::from_mins(1);

/// The volume controller, which removes folders below `folder`.
pub fn volume_component(context: &Context, folder: &Path) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::with(
        context,
        ControllerOptions::new("persistentvolume-reclaimer"),
    );
    let volumes = builder.primary::<PersistentVolume>()?;
    let claims = builder.cache::<PersistentVolumeClaim>()?;
    let binding = Index::new(&volumes, |volume: &PersistentVolume| {
        let key = claim_key(volume).map(|key| key.to_string());
        key.into_iter().collect()
    });
    builder.on_change(&claims, move |change, enqueuer| {
        for volume in binding.get(&change.key().to_string()) {
            enqueuer.enqueue(Key::of(&*volume));
        }
    });
    let reconciler = VolumeReconciler {
        tools: Tools::new(context, CONTROLLER_NAME),
        client: context.client.clone(),
        folder: folder.to_owned(),
        volumes,
        claims,
    };
    Ok(builder.build(reconciler, VolumeReconciler::reconcile))
}

struct VolumeReconciler {
    volumes: Cache<PersistentVolume>,
    claims: Cache<PersistentVolumeClaim>,
    tools: Tools,
    client: Client,
    folder: PathBuf,
}

impl VolumeReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(volume) = self.volumes.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let claim = match claim_key(&volume) {
            Some(key) => self.claim(&key, &volume).await?,
            None => None,
        };
        let writer = &self.tools.writer;
        match volume_action(&volume, claim.as_ref(), &self.folder) {
            VolumeAction::Nothing => {}
            VolumeAction::UpdateStatus(volume) => drop(writer.replace_status(&*volume).await?),
            VolumeAction::ClearReference(volume) => drop(writer.replace(&*volume).await?),
            VolumeAction::Delete(folder) => {
                if let Err(error) = remove(folder).await {
                    let message = format!("the folder of this volume cannot be removed: {error}");
                    let event = EventDraft::warning("VolumeFailedDelete", message);
                    self.tools.record(&*volume, &event).await;
                    return Ok(Outcome::RequeueAfter(RETRY_DELAY));
                }
                writer.remove(&*volume, None).await?;
            }
        }
        Ok(Outcome::Done)
    }

    /// The claim of a volume. Its absence, or another claim of its name, counts only if the API
    /// server itself reports it: a claim missing in the cache may be the one whose data is here.
    async fn claim(
        &self,
        key: &Key,
        volume: &PersistentVolume,
    ) -> Result<Option<PersistentVolumeClaim>, Error> {
        let spec = volume.spec.as_ref();
        let uid = spec.and_then(|spec| uid(spec.claim_ref.as_ref()?));
        let is_it = |claim: &Arc<PersistentVolumeClaim>| claim.metadata.uid.as_deref() == uid;
        let cached = self.claims.get(key).filter(is_it);
        if uid.is_none() || cached.is_some() {
            return Ok(cached.map(|claim| (*claim).clone()));
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
    // A volume that was never mounted has no folder; the check is cheaper than a thread.
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
