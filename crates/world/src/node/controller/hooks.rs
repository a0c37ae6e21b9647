//! Lifecycle hooks: postStart and preStop.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod, Probe};
use neap_kit::{event::EventDraft, key::Key};
use nix::sys::signal::Signal;

use super::{NodeReconciler, prober::Prober, start::container};
use crate::node::probe::{ProbeCheck, check};

pub(super) fn post_start(container: &Container) -> Option<&LifecycleHandler> {
    container.lifecycle.as_ref()?.post_start.as_ref()
}

fn pre_stop(container: &Container) -> Option<&LifecycleHandler> {
    container.lifecycle.as_ref()?.pre_stop.as_ref()
}

impl NodeReconciler {
    /// Terminates a container, after its preStop hook. The hook takes part of the grace period:
    /// when that is over the container is killed.
    pub(super) async fn terminate(self: &Arc<Self>, key: &Key, pod: &Pod, name: &str) {
        let Some((turn, running)) = self.pod_states.request_stop(key, name, self.clock.now())
        else {
            return;
        };
        let event = EventDraft::normal("Killing", format!("Stopping container {name}"));
        let with_hook = container(pod, name).filter(|container| pre_stop(container).is_some());
        let Some(container) = with_hook else {
            running.signal(Signal::SIGTERM);
            return self.recorder.record(pod, &event).await;
        };
        let prober = self.prober(key, pod, container, turn, running);
        // The channel is closed only when the node has ended, and that terminates all containers
        // itself.
        if let Ok(permit) = self.tasks.reserve().await {
            permit.send(Box::pin(prober.pre_stop_and_terminate()));
        }
        self.recorder.record(pod, &event).await;
    }
}

impl Prober {
    /// Runs the postStart hook. The container counts as started only after it, and is stopped if it
    /// fails; then false is returned and no probe runs.
    pub(super) async fn post_start_hook(&self) -> bool {
        let Some(hook) = post_start(&self.container) else {
            return true;
        };
        let done = self.run_hook(hook).await;
        if let Err(error) = &done {
            let message = format!("PostStartHook failed: {error}");
            self.record_event(&EventDraft::warning("FailedPostStartHook", message))
                .await;
        }
        let (succeeded, has_started) = (done.is_ok(), self.container.startup_probe.is_none());
        self.record(|observed| {
            if succeeded {
                observed.started = has_started;
            } else {
                observed.unhealthy = Some("failed postStart hook".to_owned());
            }
        });
        succeeded
    }

    /// Runs the preStop hook, and then terminates the container.
    async fn pre_stop_and_terminate(self) {
        if let Some(hook) = pre_stop(&self.container) {
            let done = tokio::select! {
                done = self.run_hook(hook) => done,
                () = self.running.wait_ended() => return,
            };
            if let Err(error) = done {
                let message = format!("PreStopHook failed: {error}");
                self.record_event(&EventDraft::warning("FailedPreStopHook", message))
                    .await;
            }
        }
        self.running.signal(Signal::SIGTERM);
    }

    async fn run_hook(&self, hook: &LifecycleHandler) -> Result<(), String> {
        if let Some(sleep) = &hook.sleep {
            let seconds = sleep.seconds.max(0).unsigned_abs();
            self.clock.sleep(Duration::from_secs(seconds)).await;
            return Ok(());
        }
        let probe = Probe {
            exec: hook.exec.clone(),
            http_get: hook.http_get.clone(),
            tcp_socket: hook.tcp_socket.clone(),
            ..Probe::default()
        };
        match check(&probe, &self.container, self.address).await {
            ProbeCheck::Answered(answer) => answer,
            ProbeCheck::Command(command) => self.command(command).await,
        }
    }
}
