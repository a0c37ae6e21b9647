//! Simulates what a cluster does with a Deployment: pods come and go, and EndpointSlices follow.

use std::{cmp::Ordering, net::SocketAddr, ops::Range, sync::Arc, time::Duration};

use anyhow::Result;
use k8s_openapi::api::{apps::v1::Deployment, discovery::v1::EndpointSlice};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
};
use neap_kit::clock::Clock;
use neap_pocket::store::{Object, Store};
use serde_json::json;
use tokio::sync::watch;

use crate::pods::Pods;

/// Time until EndpointSlices no longer contain a terminating pod.
const ENDPOINT_DELAY: Duration = Duration::from_millis(50);

pub(crate) struct PodSimulator {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) pods: Arc<Pods>,
    pub(crate) wanted: watch::Receiver<i32>,
    /// The EndpointSlices of the pods.
    pub(crate) slices: [&'static str; 2],
    /// The start time of a pod, in milliseconds.
    pub(crate) start_millis: Range<u64>,
    pub(crate) rng: fastrand::Rng,
}

/// The wanted replicas of a Deployment, from now on.
pub(crate) fn wanted_replicas(
    store: &Store,
    name: &'static str,
    zero: impl Fn() + Send + Sync + 'static,
) -> watch::Receiver<i32> {
    let (send, receive) = watch::channel(0);
    let follow = move |_, object: &Object| {
        let Ok(found) = serde_json::from_slice::<Deployment>(object.json()) else {
            return;
        };
        let replicas = found
            .spec
            .as_ref()
            .and_then(|spec| spec.replicas)
            .unwrap_or(1);
        if found.name_any() == name && *send.borrow() != replicas {
            if replicas == 0 {
                zero();
            }
            send.send_replace(replicas);
        }
    };
    store.follow("apps/deployments", Box::new(follow));
    receive
}

impl PodSimulator {
    /// Runs the wanted number of pods, forever.
    pub(crate) async fn run(mut self) -> Result<()> {
        let mut ready: Vec<SocketAddr> = Vec::new();
        let mut number = 0;
        loop {
            let wanted = *self.wanted.borrow_and_update() as usize;
            match ready.len().cmp(&wanted) {
                Ordering::Less => {
                    let takes = self.rng.u64(self.start_millis.clone());
                    self.clock.sleep(Duration::from_millis(takes)).await;
                    ready.push(self.pods.start(number)?);
                    number += 1;
                    self.update_slices(&ready).await?;
                }
                Ordering::Greater => {
                    for pod in ready.drain(wanted..) {
                        self.pods.stop(pod);
                    }
                    self.clock.sleep(ENDPOINT_DELAY).await;
                    self.update_slices(&ready).await?;
                }
                Ordering::Equal => self.wanted.changed().await?,
            }
        }
    }

    async fn update_slices(&self, ready: &[SocketAddr]) -> Result<()> {
        let endpoints: Vec<_> = ready
            .iter()
            .map(|pod| json!({"addresses": [pod.ip()], "conditions": {"ready": true}}))
            .collect();
        let patch = Patch::Merge(json!({"endpoints": endpoints}));
        let slices: Api<EndpointSlice> = Api::default_namespaced(self.client.clone());
        for name in self.slices {
            slices.patch(name, &PatchParams::default(), &patch).await?;
        }
        Ok(())
    }
}
