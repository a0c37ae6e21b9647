//! A process that stands for election and writes while it leads, as any controller of ours would:
//! with kit's elector, and through kit's hand.

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
    apply::{Error, Hand},
    clock::Clock,
    lease::{Elector, Leadership, Options, Timings},
};
use tokio::{
    signal::unix::{SignalKind, signal},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    LEASE, LEDGER, NAMESPACE,
    history::{Attempt, Outcome, Stamp},
};

/// The time between two writes.
const PACE: Duration = Duration::from_millis(20);

/// Who stands, where, and by which times.
#[derive(Debug, Clone)]
pub struct Contestant {
    /// How to reach the server.
    pub kubeconfig: PathBuf,
    /// Unlike every other.
    pub identity: String,
    /// How long things last.
    pub timings: Timings,
}

impl Contestant {
    /// Stands until it is asked to end by SIGTERM. `tell` hears of every write that was begun.
    pub async fn stand(self, tell: impl Fn(&Attempt)) -> Result<()> {
        let mut ends = signal(SignalKind::terminate())?;
        let clock = Clock::system();
        let client = connect(&self.kubeconfig).await?;
        let options = Options {
            namespace: NAMESPACE.to_owned(),
            name: LEASE.to_owned(),
            identity: self.identity.clone(),
            timings: self.timings,
        };
        let (elector, leadership) = Elector::new(client.clone(), options, clock)?;
        let stop = CancellationToken::new();
        let mut election = JoinSet::new();
        election.spawn(elector.run(stop.clone()));
        let writer = Writer {
            identity: self.identity,
            ledger: Api::namespaced(client.clone(), NAMESPACE),
            hand: Hand::new(client, "contestant", leadership.clone(), clock),
            leadership,
            clock,
        };
        tokio::select! {
            () = writer.work(tell) => {}
            _ = ends.recv() => {}
            ended = election.join_next() => ended.context("no election")??,
        }
        // Whoever writes ends before the lease is let go of.
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

/// For a client that sends nothing twice.
pub(crate) async fn config(kubeconfig: &Path) -> Result<Config> {
    let file = Kubeconfig::read_from(kubeconfig)?;
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(config)
}

struct Writer {
    identity: String,
    ledger: Api<ConfigMap>,
    hand: Hand,
    leadership: Leadership,
    clock: Clock,
}

impl Writer {
    async fn work(mut self, tell: impl Fn(&Attempt)) {
        loop {
            self.lead(&tell).await;
        }
    }

    /// Writes from the beginning of a term until a write is held back. It does not ask whether it
    /// still leads: that the hand does so is what is tried here.
    async fn lead(&mut self, tell: &impl Fn(&Attempt)) {
        let mut term = self.leadership.gained().await;
        let mut last = None;
        loop {
            self.clock.sleep(PACE).await;
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
            let stamp = Stamp {
                who: self.identity.clone(),
                term: term.0.into(),
                begun: self.clock.now(),
            };
            let (outcome, written) = self.write(before, &stamp).await;
            tell(&Attempt { stamp, outcome });
            if outcome == Outcome::Fenced {
                return;
            }
            last = written;
        }
    }

    async fn write(
        &self,
        before: Option<ConfigMap>,
        stamp: &Stamp,
    ) -> (Outcome, Option<ConfigMap>) {
        let data = Some(BTreeMap::from(stamp.data()));
        let written = if let Some(before) = before {
            let after = ConfigMap { data, ..before };
            self.hand.replace(&after).await.map(Some)
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
            self.hand.create(&first).await
        };
        match written {
            Ok(Some(written)) => (Outcome::Written, Some(written)),
            Ok(None) | Err(Error::Replaced(_)) => (Outcome::Replaced, None),
            Err(Error::NotLeading(_)) => (Outcome::Fenced, None),
            Err(_) => (Outcome::Unknown, None),
        }
    }
}
