//! What a container wants done after its start and before its end.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod, Probe};
use neap_kit::{event::Note, key::Key};
use nix::sys::signal::Signal;

use super::{Node, probing::Probing, start::container};
use crate::node::probe::{Asked, check};

pub(super) fn post_start(container: &Container) -> Option<&LifecycleHandler> {
    container.lifecycle.as_ref()?.post_start.as_ref()
}

fn pre_stop(container: &Container) -> Option<&LifecycleHandler> {
    container.lifecycle.as_ref()?.pre_stop.as_ref()
}

impl Node {
    /// Asks a container to end, after what it wants done before. That takes of the time it has: when
    /// this is over it is killed, whatever it was asked.
    pub(super) async fn ask_to_end(self: &Arc<Self>, key: &Key, pod: &Pod, name: &str) {
        let Some((turn, running)) = self.locals.ask_to_end(key, name, self.clock.now()) else {
            return;
        };
        let note = Note::normal("Killing", format!("Stopping container {name}"));
        let wants = container(pod, name).filter(|container| pre_stop(container).is_some());
        let Some(container) = wants else {
            running.signal(Signal::SIGTERM);
            return self.recorder.tell(pod, &note).await;
        };
        let probing = self.probing(key, pod, container, turn, running);
        // Only a node that has ended takes nothing any more, and it asks everybody itself.
        if let Ok(company) = self.lives.reserve().await {
            company.send(Box::pin(probing.end()));
        }
        self.recorder.tell(pod, &note).await;
    }
}

impl Probing {
    /// What the container wants done right after its start. It has not started before that is done,
    /// and is stopped if it fails: then nothing more is to be asked.
    pub(super) async fn begin(&self) -> bool {
        let Some(hook) = post_start(&self.container) else {
            return true;
        };
        let done = self.carry_out(hook).await;
        if let Err(words) = &done {
            let message = format!("PostStartHook failed: {words}");
            self.tell(&Note::warning("FailedPostStartHook", message))
                .await;
        }
        let (is_well, has_started) = (done.is_ok(), self.container.startup_probe.is_none());
        self.note(|seen| {
            if is_well {
                seen.started = has_started;
            } else {
                seen.sick = Some("failed postStart hook".to_owned());
            }
        });
        is_well
    }

    /// What it wants done before its end, and then the end.
    async fn end(self) {
        if let Some(hook) = pre_stop(&self.container) {
            let done = tokio::select! {
                done = self.carry_out(hook) => done,
                () = self.running.over() => return,
            };
            if let Err(words) = done {
                let message = format!("PreStopHook failed: {words}");
                self.tell(&Note::warning("FailedPreStopHook", message))
                    .await;
            }
        }
        self.running.signal(Signal::SIGTERM);
    }

    async fn carry_out(&self, hook: &LifecycleHandler) -> Result<(), String> {
        if let Some(sleep) = &hook.sleep {
            let seconds = sleep.seconds.max(0).unsigned_abs();
            self.clock.sleep(Duration::from_secs(seconds)).await;
            return Ok(());
        }
        let question = Probe {
            exec: hook.exec.clone(),
            http_get: hook.http_get.clone(),
            tcp_socket: hook.tcp_socket.clone(),
            ..Probe::default()
        };
        match check(&question, &self.container, self.address).await {
            Asked::Answered(answer) => answer,
            Asked::Command(command) => self.command(command).await,
        }
    }
}
