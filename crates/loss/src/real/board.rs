//! What the server says of all services, for everybody who waits for something there.

use std::{collections::BTreeMap, convert::Infallible, time::Duration};

use anyhow::{Context, Result};
use k8s_openapi::{api::apps::v1::Deployment, jiff::Timestamp};
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, ObjectList},
};
use neap_idle::api::{ElastiService, ElastiServiceStatus, Mode};
use neap_kit::clock::Clock;
use tokio::sync::watch;

use super::STUCK;

/// So often the server is asked.
const LOOK: Duration = Duration::from_millis(100);

/// What was last seen, by name.
#[derive(Debug, Default)]
pub(super) struct Board(watch::Sender<BTreeMap<String, Note>>);

/// What was seen of one of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Note {
    status: ElastiServiceStatus,
    ready_pods: i32,
}

impl Board {
    /// Looks again and again; ends only if that fails.
    pub(super) async fn follow(&self, client: &Client, clock: Clock) -> Result<Infallible> {
        let services: Api<ElastiService> = Api::namespaced(client.clone(), "default");
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
        let all = ListParams::default();
        loop {
            let (services, deployments) =
                tokio::try_join!(services.list(&all), deployments.list(&all))?;
            self.0.send_replace(notes(services, deployments));
            clock.sleep(LOOK).await;
        }
    }

    /// Returns once it is so.
    pub(super) async fn until(&self, name: &str, is_so: impl Fn(&Note) -> bool) -> Result<()> {
        let mut seen = self.0.subscribe();
        let so = seen.wait_for(|all| all.get(name).is_some_and(&is_so));
        let so = Clock::system().within(STUCK, so).await.map(drop);
        so.with_context(|| format!("what was waited for never came: {:?}", self.note(name)))
    }

    fn note(&self, name: &str) -> Option<Note> {
        self.0.borrow().get(name).cloned()
    }
}

fn notes(
    services: ObjectList<ElastiService>,
    deployments: ObjectList<Deployment>,
) -> BTreeMap<String, Note> {
    let ready: BTreeMap<String, i32> = deployments
        .into_iter()
        .map(|one| (one.name_any(), one.status))
        .map(|(name, status)| (name, status.and_then(|it| it.ready_replicas).unwrap_or(0)))
        .collect();
    let notes = services.into_iter().map(|one| {
        let name = one.name_any();
        let ready_pods = ready.get(&name).copied().unwrap_or(0);
        let status = one.status.unwrap_or_default();
        (name, Note { status, ready_pods })
    });
    notes.collect()
}

impl Note {
    /// Whether it is awake with nobody between.
    pub(super) fn serves(&self) -> bool {
        let status = &self.status;
        let awake = status.asleep_since.is_none() && self.ready_pods > 0;
        awake && status.mode == Some(Mode::Serve) && status.hand_off.is_none()
    }

    /// Whether it slept since it was told to, and was then woken by a request.
    pub(super) fn was_woken(&self, told: Timestamp) -> bool {
        let wake = self.status.last_wake.as_ref();
        wake.is_some_and(|wake| wake.time > told && wake.cause == "request")
    }
}
