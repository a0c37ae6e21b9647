//! Runs the probes of a container while it runs.

use std::{net::IpAddr, path::PathBuf, sync::Weak};

use k8s_openapi::api::core::v1::{Container, Pod, Probe};
use neap_kit::{clock::Clock, event::EventDraft, key::Key};

use super::NodeReconciler;
use crate::node::{
    pod::ContainerFacts,
    probe::{ProbeCheck, ProbeCounter, ProbeOutcome, check, initial_delay, period, timeout},
    process::{RunningProcess, Streams},
};

/// The probes of one container while one of its processes runs.
pub(super) struct Prober {
    pub(super) node: Weak<NodeReconciler>,
    pub(super) key: Key,
    pub(super) pod: Pod,
    pub(super) container: Container,
    pub(super) turn: u64,
    pub(super) address: IpAddr,
    pub(super) running: RunningProcess,
    pub(super) folder: PathBuf,
    pub(super) clock: Clock,
}

impl Prober {
    /// Probes forever; to be dropped when the process ends.
    pub(super) async fn run(self) {
        if !self.post_start_hook().await {
            return std::future::pending().await;
        }
        if let Some(probe) = &self.container.startup_probe {
            self.repeat("Startup", probe, |observed, outcome| match outcome {
                ProbeOutcome::Success => observed.started = true,
                ProbeOutcome::Failure => {
                    observed.unhealthy = Some("failed startup probe".to_owned());
                }
                ProbeOutcome::Undecided => {}
            })
            .await;
        }
        tokio::join!(self.probe_liveness(), self.probe_readiness());
        // No probes are left; the process continues.
        std::future::pending::<()>().await;
    }

    async fn probe_liveness(&self) {
        if let Some(probe) = &self.container.liveness_probe {
            self.repeat("Liveness", probe, |observed, outcome| {
                if outcome == ProbeOutcome::Failure {
                    observed.unhealthy = Some("failed liveness probe".to_owned());
                }
            })
            .await;
        }
    }

    async fn probe_readiness(&self) {
        if let Some(probe) = &self.container.readiness_probe {
            self.repeat("Readiness", probe, |observed, outcome| match outcome {
                ProbeOutcome::Success => observed.ready = true,
                ProbeOutcome::Failure => observed.ready = false,
                ProbeOutcome::Undecided => {}
            })
            .await;
        }
    }

    /// Repeats a probe, and passes each outcome to `take`. A startup probe ends when it succeeds.
    async fn repeat(
        &self,
        which: &str,
        probe: &Probe,
        take: impl Fn(&mut ContainerFacts, ProbeOutcome),
    ) {
        let mut counter = ProbeCounter::new(probe);
        self.clock.sleep(initial_delay(probe)).await;
        loop {
            let answer = self.answer(probe).await;
            if let Err(error) = &answer {
                self.record_failure(which, error).await;
            }
            let outcome = counter.record(answer.is_ok());
            self.record(|observed| take(observed, outcome));
            if which == "Startup" && outcome == ProbeOutcome::Success {
                return;
            }
            self.clock.sleep(period(probe)).await;
        }
    }

    async fn answer(&self, probe: &Probe) -> Result<(), String> {
        let timeout = timeout(probe);
        let answer = async {
            match check(probe, &self.container, self.address).await {
                ProbeCheck::Answered(answer) => answer,
                ProbeCheck::Command(command) => self.command(command).await,
            }
        };
        let late = || Err(format!("no answer within {} s", timeout.as_secs()));
        self.clock
            .within(timeout, answer)
            .await
            .unwrap_or_else(late)
    }

    /// Runs a command in the container; it succeeds with exit code 0. It is killed when the caller
    /// drops the future.
    pub(super) async fn command(&self, command: &[String]) -> Result<(), String> {
        let Some(node) = self.node.upgrade() else {
            return Ok(());
        };
        let nothing = Streams::default();
        let started = node.starter.command(
            &self.running,
            command.to_vec(),
            &self.folder,
            nothing,
            false,
        );
        let started = started.await.map_err(|error| error.to_string())?;
        let started = started.ok_or_else(|| "the container has ended".to_owned())?;
        match started.exit.code().await {
            0 => Ok(()),
            code => Err(format!("command ended with exit code {code}")),
        }
    }

    pub(super) fn record(&self, change: impl FnOnce(&mut ContainerFacts)) {
        if let Some(node) = self.node.upgrade()
            && node
                .pod_states
                .update_running(&self.key, &self.container.name, self.turn, change)
        {
            node.enqueuer.enqueue(self.key.clone());
        }
    }

    async fn record_failure(&self, which: &str, error: &str) {
        let message = format!("{which} probe failed: {error}");
        self.record_event(&EventDraft::warning("Unhealthy", message))
            .await;
    }

    pub(super) async fn record_event(&self, event: &EventDraft) {
        if let Some(node) = self.node.upgrade() {
            node.recorder.record(&self.pod, event).await;
        }
    }
}
