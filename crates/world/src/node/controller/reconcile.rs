//! The reconcile of one pod: facts, decision, execution.

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
    apply::{Error, Writer},
    clock::Clock,
    controller::{Enqueuer, Outcome},
    event::EventRecorder,
    key::Key,
    watch::{Cache, Index},
};
use tokio::sync::mpsc;

use super::{
    DELETION_POLL_INTERVAL, NodeOptions, RETRY_DELAY,
    admit::was_rejected,
    mount::{PreparedPod, blocking},
    pod_state::{PodState, PodStates},
};
use crate::{
    folder as folders,
    node::{
        pod::{Decision, Facts, StopMode, decide, events},
        process::ProcessStarter,
        source_reader::SourceReader,
    },
    workload::has_ended,
};

pub(super) struct NodeReconciler {
    pub(super) options: NodeOptions,
    pub(super) pods: Cache<Pod>,
    pub(super) services: Cache<Service>,
    pub(super) slices: Index<EndpointSlice>,
    pub(super) source_reader: SourceReader,
    pub(super) starter: ProcessStarter,
    pub(super) writer: Writer,
    pub(super) recorder: EventRecorder,
    pub(super) clock: Clock,
    pub(super) pod_states: PodStates,
    pub(super) tasks: mpsc::Sender<BoxFuture<'static, ()>>,
    pub(super) enqueuer: Enqueuer<Key>,
}

impl NodeReconciler {
    pub(super) async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let found = self.pods.get(&key).filter(|pod| self.has(pod));
        let stays = found
            .as_ref()
            .is_some_and(|pod| !self.pod_states.belongs_to_another(&key, pod));
        if !stays && !self.clean_up(&key).await {
            // The end of its last process enqueues it again.
            return Ok(Outcome::RequeueAfter(RETRY_DELAY));
        }
        let Some(pod) = found else {
            return Ok(Outcome::Gone);
        };
        if was_rejected(&pod) {
            return self.remove_rejected(&pod).await;
        }
        let pod = match self.admit(&key, &pod) {
            Ok(pod) => pod,
            // A pod that was never admitted needs no cleanup.
            Err(_) if pod.metadata.deletion_timestamp.is_some() => {
                return self.remove_rejected(&pod).await;
            }
            Err(rejection) => return self.reject(&pod, rejection).await,
        };
        // A pod that ends needs no files, least of all missing ones.
        let is_over = pod.metadata.deletion_timestamp.is_some() || has_ended(&pod);
        let prepared = if is_over {
            None
        } else {
            Some(self.prepare(&key, &pod).await)
        };
        let decision = self.execute(&key, &pod, prepared.as_ref()).await;
        let reported = self.report_status(&pod, &decision).await;
        if decision.gone {
            return self.remove_pod(&pod, reported).await;
        }
        reported?;
        Ok(self.requeue(&key, &decision, prepared.as_ref()))
    }

    /// Removes a pod without remaining processes from the API server, even if its last status could
    /// not be written: no pod stays because of that.
    pub(super) async fn remove_pod(
        &self,
        pod: &Pod,
        reported: Result<(), Error>,
    ) -> Result<Outcome, Error> {
        let metadata = &pod.metadata;
        let is_kept = metadata
            .finalizers
            .as_ref()
            .is_some_and(|all| !all.is_empty());
        if is_kept && metadata.deletion_grace_period_seconds == Some(0) {
            // The API server knows, and finalizers are still pending.
            return reported.map(|()| Outcome::Done);
        }
        self.writer.remove(pod, Some(0)).await?;
        reported?;
        // The watch enqueues it once it is gone; until then it is checked again, since the API
        // server may leave the removal to another client.
        Ok(Outcome::RequeueAfter(DELETION_POLL_INTERVAL))
    }

    fn has(&self, pod: &Pod) -> bool {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        node == Some(&self.options.name)
    }

    fn requeue(&self, key: &Key, decision: &Decision, prepared: Option<&PreparedPod>) -> Outcome {
        let is_blocked = prepared.is_some_and(|prepared| {
            prepared.volumes.is_err() || self.pod_states.has_wait_reason(key)
        });
        let renewal = prepared.and_then(|prepared| prepared.renew);
        let delays = [
            decision.requeue_after,
            renewal,
            is_blocked.then_some(RETRY_DELAY),
        ];
        let soonest: Option<Duration> = delays.into_iter().flatten().min();
        soonest.map_or(Outcome::Done, Outcome::RequeueAfter)
    }

    /// Starts and stops containers until nothing is left to do, and returns the last decision.
    async fn execute(
        self: &Arc<Self>,
        key: &Key,
        pod: &Pod,
        prepared: Option<&PreparedPod>,
    ) -> Decision {
        self.pod_states.clear_wait_reasons(key);
        loop {
            let decision = decide(&self.facts(key, pod));
            for name in &decision.start {
                if let Some(prepared) = prepared {
                    self.start(key, name, prepared).await;
                }
            }
            for (name, how) in &decision.stop {
                match how {
                    StopMode::Terminate => self.terminate(key, pod, name).await,
                    StopMode::Kill => self.pod_states.kill(key, name, self.clock.now()),
                }
            }
            if decision.start.is_empty() || prepared.is_none() {
                return decision;
            }
        }
    }

    pub(super) fn facts(&self, key: &Key, pod: &Pod) -> Facts {
        let now = self.clock.now();
        let state = self.pod_states.get(key, pod, now);
        Facts {
            pod: pod.clone(),
            containers: state.containers,
            address: IpAddr::V4(state.address),
            node_address: IpAddr::V4(self.options.block.node()),
            accepted: state.accepted,
            volumes: state.volumes,
            ending_since: state.ending_since,
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

    /// As [`Self::write_status`]; a conflict is no error, because the change enqueues the pod
    /// again.
    async fn report_status(&self, pod: &Pod, decision: &Decision) -> Result<(), Error> {
        match self.write_status(pod, decision).await {
            Err(Error::Conflict(_)) => Ok(()),
            written => written,
        }
    }

    /// Writes the status if it changed, and records the Events of the change.
    pub(super) async fn write_status(&self, pod: &Pod, decision: &Decision) -> Result<(), Error> {
        let cached = self.pods.get(&Key::of(pod));
        let cached = cached.filter(|cached| cached.uid() == pod.uid());
        let cached = cached.as_ref().and_then(|pod| pod.status.as_ref());
        if cached == Some(&decision.status) {
            return Ok(());
        }
        let mut pod = pod.clone();
        pod.status = Some(decision.status.clone());
        self.writer.replace_status(&pod).await?;
        for event in events(&pod, cached, &decision.status) {
            self.recorder.record(&pod, &event).await;
        }
        Ok(())
    }

    /// Ends what is left of a pod that no longer exists; true once nothing is left.
    async fn clean_up(&self, key: &Key) -> bool {
        let Some(PodState { uid, .. }) = self.pod_states.remove(key) else {
            return !self.pod_states.has(key);
        };
        self.source_reader.forget(&uid);
        let folder = self.pods_folder().join(&uid);
        let removed = blocking(move || folders::remove(&folder)).await;
        if let Err(error) = removed {
            tracing::warn!(pod = %key, %error, "the folder of a pod could not be removed");
        }
        true
    }

    /// Removes the folders of pods that were deleted while no node ran.
    pub(super) async fn remove_stale_folders(&self) {
        let (folder, pods) = (self.pods_folder(), self.pods.list(""));
        let ours = pods.iter().filter(|pod| self.has(pod));
        let uids: HashSet<_> = ours.filter_map(|pod| pod.uid()).collect();
        let cleared = blocking(move || {
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                entries => entries?,
            };
            for entry in entries.flatten() {
                let path = entry.path();
                // One that cannot be removed is left, and the others are not left with it.
                if !uids.contains(&*entry.file_name().to_string_lossy())
                    && let Err(error) = folders::remove(&path)
                {
                    let path = path.display();
                    tracing::warn!(%path, %error, "the folder of a former pod could not be removed");
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
