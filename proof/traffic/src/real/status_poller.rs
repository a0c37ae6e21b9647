//! Polls the status of all services, and lets callers wait for a state.

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

use super::WAIT_TIMEOUT;

/// Interval of the polls.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The last observed states, by name.
#[derive(Debug, Default)]
pub(super) struct StatusPoller(watch::Sender<BTreeMap<String, ServiceState>>);

/// The observed state of a service.
#[derive(Debug, Clone, Default)]
pub(super) struct ServiceState {
    status: ElastiServiceStatus,
    ready_pods: i32,
}

impl StatusPoller {
    /// Polls forever; returns only on failure.
    pub(super) async fn follow(&self, client: &Client, clock: Clock) -> Result<Infallible> {
        let services: Api<ElastiService> = Api::namespaced(client.clone(), "default");
        let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
        let all = ListParams::default();
        loop {
            let (services, deployments) =
                tokio::try_join!(services.list(&all), deployments.list(&all))?;
            self.0.send_replace(states(services, deployments));
            clock.sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until the state of a service satisfies `is_so`.
    pub(super) async fn until(
        &self,
        name: &str,
        is_so: impl Fn(&ServiceState) -> bool,
    ) -> Result<()> {
        let mut seen = self.0.subscribe();
        let so = seen.wait_for(|all| all.get(name).is_some_and(&is_so));
        let so = Clock::system().within(WAIT_TIMEOUT, so).await.map(drop);
        so.with_context(|| format!("what was waited for never came: {:?}", self.state(name)))
    }

    fn state(&self, name: &str) -> Option<ServiceState> {
        self.0.borrow().get(name).cloned()
    }
}

fn states(
    services: ObjectList<ElastiService>,
    deployments: ObjectList<Deployment>,
) -> BTreeMap<String, ServiceState> {
    let ready: BTreeMap<String, i32> = deployments
        .into_iter()
        .map(|one| (one.name_any(), one.status))
        .map(|(name, status)| (name, status.and_then(|it| it.ready_replicas).unwrap_or(0)))
        .collect();
    let states = services.into_iter().map(|one| {
        let name = one.name_any();
        let ready_pods = ready.get(&name).copied().unwrap_or(0);
        let status = one.status.unwrap_or_default();
        (name, ServiceState { status, ready_pods })
    });
    states.collect()
}

impl ServiceState {
    /// Whether it is awake and no resolver is in the path.
    pub(super) fn serves(&self) -> bool {
        let status = &self.status;
        let awake = status.asleep_since.is_none() && self.ready_pods > 0;
        awake && status.mode == Some(Mode::Serve) && status.hand_off.is_none()
    }

    /// Whether it has been woken by a request since this time.
    pub(super) fn was_woken(&self, told: Timestamp) -> bool {
        let wake = self.status.last_wake.as_ref();
        wake.is_some_and(|wake| wake.time > told && wake.cause == "request")
    }
}
