//! One pod: what is known of it, what was decided, and what comes of that.

use std::{
    collections::HashSet,
    fs, io,
    net::{IpAddr, Ipv4Addr},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use k8s_openapi::api::{
    core::v1::{Pod, Service},
    discovery::v1::EndpointSlice,
};
use kube::ResourceExt;
use neap_kit::{
    apply::{Error, Hand},
    clock::Clock,
    controller::{Outcome, Trigger},
    event::Recorder,
    key::Key,
    watch::{Cache, Index},
};
use tokio::sync::mpsc;

use super::{
    LOOK_AGAIN, Options, TRY_AGAIN,
    accept::was_refused,
    local::{Local, Locals},
    mount::{Parts, blocking},
};
use crate::{
    folder as folders,
    node::{
        gather::Gatherer,
        pod::{Decision, Facts, Stop, decide, news},
        process::Starter,
    },
    workload::has_ended,
};

pub(super) struct Node {
    pub(super) options: Options,
    pub(super) pods: Cache<Pod>,
    pub(super) services: Cache<Service>,
    pub(super) slices: Index<EndpointSlice>,
    pub(super) gatherer: Gatherer,
    pub(super) starter: Starter,
    pub(super) hand: Hand,
    pub(super) recorder: Recorder,
    pub(super) clock: Clock,
    pub(super) locals: Locals,
    pub(super) lives: mpsc::Sender<BoxFuture<'static, ()>>,
    pub(super) trigger: Trigger<Key>,
}

impl Node {
    pub(super) async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let found = self.pods.get(&key).filter(|pod| self.has(pod));
        let stays = found
            .as_ref()
            .is_some_and(|pod| !self.locals.is_of_another(&key, pod));
        if !stays && !self.leave(&key).await {
            // The end of its last process asks for another look.
            return Ok(Outcome::Again(TRY_AGAIN));
        }
        let Some(pod) = found else {
            return Ok(Outcome::Gone);
        };
        if was_refused(&pod) {
            return self.let_go(&pod).await;
        }
        let pod = match self.accept(&key, &pod) {
            Ok(pod) => pod,
            // What never came in needs no place to go from.
            Err(_) if pod.metadata.deletion_timestamp.is_some() => return self.let_go(&pod).await,
            Err(refusal) => return self.refuse(&pod, refusal).await,
        };
        // What ends needs nothing any more, least of all what cannot be had.
        let is_over = pod.metadata.deletion_timestamp.is_some() || has_ended(&pod);
        let parts = if is_over {
            None
        } else {
            Some(self.assemble(&key, &pod).await)
        };
        let decision = self.bring_about(&key, &pod, parts.as_ref()).await;
        let told = self.tell(&pod, &decision).await;
        if decision.gone {
            return self.see_off(&pod, told).await;
        }
        told?;
        Ok(self.when_again(&key, &decision, parts.as_ref()))
    }

    /// Lets the server forget a pod of which nothing is left, also if it would not hear how the pod
    /// ended: no pod stays because of its last words.
    pub(super) async fn see_off(
        &self,
        pod: &Pod,
        told: Result<(), Error>,
    ) -> Result<Outcome, Error> {
        let metadata = &pod.metadata;
        let is_kept = metadata
            .finalizers
            .as_ref()
            .is_some_and(|all| !all.is_empty());
        if is_kept && metadata.deletion_grace_period_seconds == Some(0) {
            // The server knows, and others have something to do first.
            return told.map(|()| Outcome::Settled);
        }
        self.hand.remove(pod, Some(0)).await?;
        told?;
        // It is looked at once more when it is seen to be gone. A server may say that it was
        // somebody else's turn.
        Ok(Outcome::Again(LOOK_AGAIN))
    }

    fn has(&self, pod: &Pod) -> bool {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        node == Some(&self.options.name)
    }

    fn when_again(&self, key: &Key, decision: &Decision, parts: Option<&Parts>) -> Outcome {
        let obstructed =
            parts.is_some_and(|parts| parts.places.is_err() || self.locals.is_obstructed(key));
        let renewal = parts.and_then(|parts| parts.renew);
        let moments = [decision.again, renewal, obstructed.then_some(TRY_AGAIN)];
        let soonest: Option<Duration> = moments.into_iter().flatten().min();
        soonest.map_or(Outcome::Settled, Outcome::Again)
    }

    /// Starts and stops until nothing is left to do, and returns the last decision.
    async fn bring_about(
        self: &Arc<Self>,
        key: &Key,
        pod: &Pod,
        parts: Option<&Parts>,
    ) -> Decision {
        self.locals.try_again(key);
        loop {
            let decision = decide(&self.facts(key, pod));
            for name in &decision.start {
                if let Some(parts) = parts {
                    self.start(key, name, parts).await;
                }
            }
            for (name, how) in &decision.stop {
                match how {
                    Stop::Ask => self.ask_to_end(key, pod, name).await,
                    Stop::Kill => self.locals.kill(key, name, self.clock.now()),
                }
            }
            if decision.start.is_empty() || parts.is_none() {
                return decision;
            }
        }
    }

    pub(super) fn facts(&self, key: &Key, pod: &Pod) -> Facts {
        let now = self.clock.now();
        let local = self.locals.get(key, pod, now);
        Facts {
            pod: pod.clone(),
            containers: local.containers,
            address: IpAddr::V4(local.address),
            node_address: IpAddr::V4(self.options.block.node()),
            accepted: local.accepted,
            volumes: local.volumes,
            ending_since: local.ending_since,
            now,
        }
    }

    pub(super) fn address(&self, pod: &Pod) -> IpAddr {
        IpAddr::V4(own_address(pod).unwrap_or(self.options.block.node()))
    }

    pub(super) fn folder(&self, pod: &Pod) -> PathBuf {
        self.pods_folder().join(pod.uid().unwrap_or_default())
    }

    fn pods_folder(&self) -> PathBuf {
        self.options.folder.join("pods")
    }

    /// As [`Self::say`]; it is no error if the pod has changed since, because it is looked at again
    /// then.
    async fn tell(&self, pod: &Pod, decision: &Decision) -> Result<(), Error> {
        match self.say(pod, decision).await {
            Err(Error::Replaced(_)) => Ok(()),
            said => said,
        }
    }

    /// One write, and only if it says something new; then what is new is told.
    pub(super) async fn say(&self, pod: &Pod, decision: &Decision) -> Result<(), Error> {
        let known = self.pods.get(&Key::of(pod));
        let known = known.filter(|known| known.uid() == pod.uid());
        let known = known.as_ref().and_then(|pod| pod.status.as_ref());
        if known == Some(&decision.status) {
            return Ok(());
        }
        let mut pod = pod.clone();
        pod.status = Some(decision.status.clone());
        self.hand.replace_status(&pod).await?;
        for note in news(&pod, known, &decision.status) {
            self.recorder.tell(&pod, &note).await;
        }
        Ok(())
    }

    /// Ends what is left of a pod that is no longer there; whether nothing of it is.
    async fn leave(&self, key: &Key) -> bool {
        let Some(Local { uid, .. }) = self.locals.leave(key) else {
            return !self.locals.has(key);
        };
        self.gatherer.forget(&uid);
        let folder = self.pods_folder().join(&uid);
        let removed = blocking(move || folders::remove(&folder)).await;
        if let Err(error) = removed {
            tracing::warn!(pod = %key, %error, "the folder of a pod could not be removed");
        }
        true
    }

    /// Removes the folders of pods that went while no node ran.
    pub(super) async fn clear_out(&self) {
        let (folder, pods) = (self.pods_folder(), self.pods.list(""));
        let ours = pods.iter().filter(|pod| self.has(pod));
        let known: HashSet<_> = ours.filter_map(|pod| pod.uid()).collect();
        let cleared = blocking(move || {
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                entries => entries?,
            };
            for entry in entries.flatten() {
                if !known.contains(&*entry.file_name().to_string_lossy()) {
                    folders::remove(&entry.path())?;
                }
            }
            Ok(())
        });
        if let Err(error) = cleared.await {
            tracing::warn!(%error, "folders of former pods could not be removed");
        }
    }
}

pub(super) fn own_address(pod: &Pod) -> Option<Ipv4Addr> {
    let status = pod.status.as_ref()?;
    status.pod_ip.as_ref()?.parse().ok()
}
