//! Asks containers how they are, for as long as they run.

use std::{net::IpAddr, path::PathBuf, sync::Weak};

use k8s_openapi::api::core::v1::{Container, Pod, Probe};
use neap_kit::{clock::Clock, event::Note, key::Key};

use super::Node;
use crate::node::{
    pod::Seen,
    probe::{Asked, Finding, Tally, check, delay, limit, period},
    process::{Running, Streams},
};

/// One container while one of its processes runs.
pub(super) struct Probing {
    pub(super) node: Weak<Node>,
    pub(super) key: Key,
    pub(super) pod: Pod,
    pub(super) container: Container,
    pub(super) turn: u64,
    pub(super) address: IpAddr,
    pub(super) running: Running,
    pub(super) folder: PathBuf,
    pub(super) clock: Clock,
}

impl Probing {
    /// Asks for ever; to be dropped when the process ends.
    pub(super) async fn run(self) {
        if !self.begin().await {
            return std::future::pending().await;
        }
        if let Some(probe) = &self.container.startup_probe {
            self.ask("Startup", probe, |seen, finding| match finding {
                Finding::Well => seen.started = true,
                Finding::Ill => seen.sick = Some("failed startup probe".to_owned()),
                Finding::Open => {}
            })
            .await;
        }
        tokio::join!(self.live(), self.serve());
        // Nothing more to ask; the process goes on.
        std::future::pending::<()>().await;
    }

    async fn live(&self) {
        if let Some(probe) = &self.container.liveness_probe {
            self.ask("Liveness", probe, |seen, finding| {
                if finding == Finding::Ill {
                    seen.sick = Some("failed liveness probe".to_owned());
                }
            })
            .await;
        }
    }

    async fn serve(&self) {
        if let Some(probe) = &self.container.readiness_probe {
            self.ask("Readiness", probe, |seen, finding| match finding {
                Finding::Well => seen.ready = true,
                Finding::Ill => seen.ready = false,
                Finding::Open => {}
            })
            .await;
        }
    }

    /// Asks again and again, and has `take` note what that comes to. A startup probe has done its
    /// work when it succeeds.
    async fn ask(&self, which: &str, probe: &Probe, take: impl Fn(&mut Seen, Finding)) {
        let mut tally = Tally::new(probe);
        self.clock.sleep(delay(probe)).await;
        loop {
            let answer = self.answer(probe).await;
            if let Err(words) = &answer {
                self.complain(which, words).await;
            }
            let finding = tally.note(answer.is_ok());
            self.note(|seen| take(seen, finding));
            if which == "Startup" && finding == Finding::Well {
                return;
            }
            self.clock.sleep(period(probe)).await;
        }
    }

    async fn answer(&self, probe: &Probe) -> Result<(), String> {
        let limit = limit(probe);
        let asked = async {
            match check(probe, &self.container, self.address).await {
                Asked::Answered(answer) => answer,
                Asked::Command(command) => self.command(command).await,
            }
        };
        let late = || Err(format!("no answer within {} s", limit.as_secs()));
        self.clock.within(limit, asked).await.unwrap_or_else(late)
    }

    /// Runs a command beside the container's own; a good one ends with 0. It ends when nobody waits
    /// for it any more.
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

    pub(super) fn note(&self, change: impl FnOnce(&mut Seen)) {
        if let Some(node) = self.node.upgrade()
            && node
                .locals
                .note(&self.key, &self.container.name, self.turn, change)
        {
            node.trigger.changed(self.key.clone());
        }
    }

    async fn complain(&self, which: &str, words: &str) {
        let message = format!("{which} probe failed: {words}");
        self.tell(&Note::warning("Unhealthy", message)).await;
    }

    pub(super) async fn tell(&self, note: &Note) {
        if let Some(node) = self.node.upgrade() {
            node.recorder.tell(&self.pod, note).await;
        }
    }
}
