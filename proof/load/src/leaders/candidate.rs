//! A process that takes part in an election and writes while it leads, as any controller of ours
//! would: with kit's elector and kit's writer.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use neap_kit::{
    apply::{Error, Writer},
    clock::Clock,
    lease::{ElectionOptions, Elector, Leadership, LeaseTimings},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    LEASE, LEDGER, NAMESPACE,
    history::{WriteAttempt, WriteOutcome, WriteStamp},
};

/// Interval between two writes.
const WRITE_INTERVAL: Duration = Duration::from_millis(20);

/// A candidate of an election.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub kubeconfig: PathBuf,
    /// Unique among the candidates.
    pub identity: String,
    pub timings: LeaseTimings,
}

impl Candidate {
    /// Takes part until SIGTERM. `report` receives every write that was begun.
    pub async fn stand(self, report: impl Fn(&WriteAttempt)) -> Result<()> {
        let mut ends = signal(SignalKind::terminate())?;
        let clock = Clock::system();
        let client = connect(&self.kubeconfig).await?;
        let options = ElectionOptions {
            namespace: NAMESPACE.to_owned(),
            name: LEASE.to_owned(),
            identity: self.identity.clone(),
            timings: self.timings,
        };
        let (elector, leadership) = Elector::new(client.clone(), options, clock)?;
        let stop = CancellationToken::new();
        let mut election = JoinSet::new();
        election.spawn(elector.run(stop.clone()));
        let writer = LedgerWriter {
            identity: self.identity,
            ledger: Api::namespaced(client.clone(), NAMESPACE),
            writer: Writer::new(client, "contestant", leadership.clone(), clock),
            leadership,
            clock,
        };
        tokio::select! {
            () = writer.work(report) => {}
            _ = ends.recv() => {}
            ended = election.join_next() => ended.context("no election")??,
        }
        // The writer stops before the Lease is released.
        stop.cancel();
        while let Some(ended) = election.join_next().await {
            ended?;
        }
        Ok(())
    }
}

async fn connect(kubeconfig: &Path) -> Result<Client> {
    Ok(Client::try_from(config(kubeconfig).await?)?)
}

/// A configuration without retries.
pub(crate) async fn config(kubeconfig: &Path) -> Result<Config> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(config)
}

struct LedgerWriter {
    identity: String,
    ledger: Api<ConfigMap>,
    writer: Writer,
    leadership: Leadership,
    clock: Clock,
}

impl LedgerWriter {
    async fn work(mut self, report: impl Fn(&WriteAttempt)) {
        loop {
            self.lead(&report).await;
        }
    }

    /// Writes from the start of a term until a write is refused locally. It does not check whether
    /// it still leads: that the writer does so is what is tested.
    async fn lead(&mut self, report: &impl Fn(&WriteAttempt)) {
        let mut term = self.leadership.gained().await;
        let mut last = None;
        loop {
            self.clock.sleep(WRITE_INTERVAL).await;
            let before = match last.take() {
                Some(before) => Some(before),
                None => match self.ledger.get_opt(LEDGER).await {
                    Ok(found) => found,
                    Err(_) => continue,
                },
            };
            if let Ok(now) = self.leadership.check() {
                term = now;
            }
            let stamp = WriteStamp {
                who: self.identity.clone(),
                term: term.0.into(),
                begun: self.clock.now(),
            };
            let (outcome, written) = self.write(before, &stamp).await;
            report(&WriteAttempt { stamp, outcome });
            if outcome == WriteOutcome::Fenced {
                return;
            }
            last = written;
        }
    }

    async fn write(
        &self,
        before: Option<ConfigMap>,
        stamp: &WriteStamp,
    ) -> (WriteOutcome, Option<ConfigMap>) {
        let data = Some(BTreeMap::from(stamp.data()));
        let written = if let Some(before) = before {
            let after = ConfigMap { data, ..before };
            self.writer.replace(&after).await.map(Some)
        } else {
            let metadata = ObjectMeta {
                name: Some(LEDGER.to_owned()),
                namespace: Some(NAMESPACE.to_owned()),
                ..ObjectMeta::default()
            };
            let first = ConfigMap {
                metadata,
                data,
                ..ConfigMap::default()
            };
            self.writer.create(&first).await
        };
        match written {
            Ok(Some(written)) => (WriteOutcome::Written, Some(written)),
            Ok(None) | Err(Error::Conflict(_)) => (WriteOutcome::Replaced, None),
            Err(Error::NotLeading(_)) => (WriteOutcome::Fenced, None),
            Err(_) => (WriteOutcome::Unknown, None),
        }
    }
}
