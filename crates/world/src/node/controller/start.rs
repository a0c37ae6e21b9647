//! Starts a container, and waits for its end.

use std::{fs, panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;
use k8s_openapi::api::core::v1::{Container, Pod};
use neap_kit::{event::EventDraft, key::Key};

use super::{
    mount::{PreparedPod, blocking, io_message},
    prober::Prober,
    reconcile::NodeReconciler,
};
use crate::node::{
    container_launch::{ContainerInputs, ContainerLaunch, container_launch},
    pod::WaitingReason,
    process::{ContainerLog, RunningProcess, StartedProcess},
    service_env::service_variables,
    sources::PodSources,
    volume::SubPath,
};

/// The exit code of a killed process.
const KILLED: i32 = 137;

impl NodeReconciler {
    /// Starts a container, or records why that is not possible.
    pub(super) async fn start(self: &Arc<Self>, key: &Key, name: &str, prepared: &PreparedPod) {
        let sources = &prepared.sources;
        let Some(container) = container(&sources.pod, name) else {
            return;
        };
        // A process without a task would end unobserved. The channel is closed only when the node
        // has ended.
        let Ok(permit) = self.tasks.reserve().await else {
            return;
        };
        match self.launch(container, prepared).await {
            Ok(Err(why)) => {
                self.pod_states
                    .record_start_failure(key, container, &why, self.clock.now());
                let event = EventDraft::warning("Failed", format!("Error: {why}"));
                self.recorder.record(&sources.pod, &event).await;
            }
            Ok(Ok(started)) => {
                permit.send(self.process_task(key, container, sources, started));
                let event = EventDraft::normal("Started", format!("Started container {name}"));
                self.recorder.record(&sources.pod, &event).await;
            }
            Err(wait_reason) => self.pod_states.set_wait_reason(key, name, wait_reason),
        }
    }

    /// The started process, or why its command cannot be started, or why the container has to wait.
    async fn launch(
        &self,
        container: &Container,
        prepared: &PreparedPod,
    ) -> Result<Result<StartedProcess, String>, WaitingReason> {
        let sources = &prepared.sources;
        let volumes = prepared.volumes.as_ref().map_err(Clone::clone)?;
        let folder = self.folder(&sources.pod);
        let own = folder.join("containers").join(&container.name);
        let services = self.services.list("");
        let mut given = service_variables(&sources.pod, services.iter().map(|service| &**service));
        given.extend(self.options.environment.clone());
        let inputs = ContainerInputs {
            images: &self.options.images.current(),
            namespaces: self.options.namespaces,
            given: &given,
            volumes,
            own_proc: self.options.own_proc,
            as_root: self.options.as_root,
            restricted: self.options.restricted,
            hosts: &folder.join("hosts"),
            host_name: &folder.join("hostname"),
            folder: &own,
        };
        let ContainerLaunch { launch, folders } = container_launch(container, sources, &inputs)?;
        let place = own.clone();
        let started = async {
            blocking(move || {
                folders.iter().try_for_each(SubPath::create)?;
                fs::create_dir_all(&place)
            })
            .await?;
            self.starter
                .start(launch, &own, &ContainerLog::of(&own))
                .await
        };
        started.await.map_err(|error| WaitingReason {
            reason: "RunContainerError",
            message: io_message(&error),
        })
    }

    /// Records a process, and returns the task that runs its probes, logs its output and waits for
    /// its end.
    fn process_task(
        self: &Arc<Self>,
        key: &Key,
        container: &Container,
        sources: &PodSources,
        started: StartedProcess,
    ) -> futures::future::BoxFuture<'static, ()> {
        let name = container.name.clone();
        let running = started.running.clone();
        let turn = self
            .pod_states
            .record_start(key, container, running.clone(), self.clock.now());
        let prober = self.prober(key, &sources.pod, container, turn, running);
        let (node, key, of) = (Arc::downgrade(self), key.clone(), name);
        Box::pin(async move {
            let (clock, running) = (prober.clock, started.running.clone());
            let wait = async {
                tokio::select! {
                    code = started.run_to_end(clock) => code,
                    () = prober.run() => KILLED,
                }
            };
            let result = catch_panic(Box::pin(wait)).await;
            // After a panic no task waits for it, so it was killed.
            running.wait_ended().await;
            let Some(node) = node.upgrade() else {
                return;
            };
            let code = result.unwrap_or_else(|panic| {
                tracing::error!(pod = %key, container = of, panic, "the task of a container panicked");
                let message = format!("a defect of the node ended it: {panic}");
                node.pod_states.update_running(&key, &of, turn, |observed| observed.unhealthy = Some(message));
                KILLED
            });
            node.pod_states
                .record_end(&key, &of, turn, code, clock.now());
            node.enqueuer.enqueue(key);
        })
    }
}

impl NodeReconciler {
    /// The probes of a container for one of its processes.
    pub(super) fn prober(
        self: &Arc<Self>,
        key: &Key,
        pod: &Pod,
        container: &Container,
        turn: u64,
        running: RunningProcess,
    ) -> Prober {
        Prober {
            node: Arc::downgrade(self),
            key: key.clone(),
            pod: pod.clone(),
            container: container.clone(),
            turn,
            address: self.address(pod),
            running,
            folder: self.folder(pod).join("containers").join(&container.name),
            clock: self.clock,
        }
    }
}

/// The result of `life`, or its panic message.
async fn catch_panic<T>(life: impl Future<Output = T>) -> Result<T, String> {
    let result = AssertUnwindSafe(life).catch_unwind().await;
    result.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        text.unwrap_or_else(|| "no panic message".to_owned())
    })
}

pub(super) fn container<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers);
    all.find(|container| container.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_of_a_container_task_is_reported() {
        assert_eq!(catch_panic(async { 3 }).await, Ok(3));
        let defect = catch_panic(async { panic!("no such {}", "thing") });
        let caught: Result<(), String> = defect.await;
        assert_eq!(caught, Err("no such thing".to_owned()));
    }
}
