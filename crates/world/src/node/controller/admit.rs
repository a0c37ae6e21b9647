//! Admits pods to the node, or rejects them.

use std::{collections::HashMap, net::Ipv4Addr};

use k8s_openapi::api::core::v1::Pod;
use neap_kit::{apply::Error, controller::Outcome, event::EventDraft, key::Key};

use super::{
    RETRY_DELAY,
    pod_state::PodState,
    reconcile::{NodeReconciler, own_address},
};
use crate::{scheduler::conflicting_host_port, workload::has_ended};

/// The reason of a rejected pod.
const REASON: &str = "NodePorts";

/// Why a pod is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Rejection {
    /// No address is free; one may become free.
    NoAddress,
    /// Another pod uses this host port. The pod was not bound by the scheduler, so it fails, as on
    /// any node.
    PortTaken(i32),
}

impl NodeReconciler {
    /// The pod with its address, assigned now if it has none.
    pub(super) fn admit(&self, key: &Key, pod: &Pod) -> Result<Pod, Rejection> {
        let block = self.options.block;
        let on_host = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        let address = self
            .pod_states
            .admit(key, pod, self.clock.now(), |others| {
                self.check_ports(pod, others)?;
                if on_host {
                    return Ok(block.node());
                }
                let is_taken =
                    |address: Ipv4Addr| others.values().any(|other| other.address == address);
                let former = own_address(pod);
                let former = former.filter(|&address| block.has_pod(address) && !is_taken(address));
                former
                    .or_else(|| block.free(is_taken))
                    .ok_or(Rejection::NoAddress)
            })?;
        let mut pod = pod.clone();
        let status = pod.status.get_or_insert_default();
        status.pod_ip = Some(address.to_string());
        status.host_ip = Some(block.node().to_string());
        Ok(pod)
    }

    /// Checks the host ports. A pod that has ended needs none, and one that is not admitted yet has
    /// none.
    fn check_ports(&self, pod: &Pod, others: &HashMap<Key, PodState>) -> Result<(), Rejection> {
        if has_ended(pod) || pod.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let others: Vec<_> = others.keys().filter_map(|key| self.pods.get(key)).collect();
        let others = others.iter().filter(|other| !has_ended(other));
        let others: Vec<&Pod> = others.map(|other| &**other).collect();
        conflicting_host_port(pod, &others).map_or(Ok(()), |port| Err(Rejection::PortTaken(port)))
    }

    /// Reports a rejected pod, and returns when to reconcile it again.
    pub(super) async fn reject(&self, pod: &Pod, rejection: Rejection) -> Result<Outcome, Error> {
        let port = match rejection {
            Rejection::NoAddress => {
                let message = "this node has no address left for the pod";
                let event = EventDraft::warning("FailedCreatePodSandBox", message);
                self.recorder.record(pod, &event).await;
                return Ok(Outcome::RequeueAfter(RETRY_DELAY));
            }
            Rejection::PortTaken(port) => port,
        };
        let message = format!(
            "Pod was rejected: another pod of this node has its port {port}. Give it another hostPort, or leave nodeName to the scheduler"
        );
        let mut failed = pod.clone();
        let status = failed.status.get_or_insert_default();
        status.phase = Some("Failed".to_owned());
        status.reason = Some(REASON.to_owned());
        status.message = Some(message.clone());
        match self.writer.replace_status(&failed).await {
            // The pod has changed since, which enqueues it again.
            Err(Error::Conflict(_)) => return Ok(Outcome::Done),
            written => written?,
        };
        self.recorder
            .record(pod, &EventDraft::warning(REASON, message))
            .await;
        Ok(Outcome::Done)
    }

    /// Removes a rejected pod once it is deleted; it has no processes to wait for.
    pub(super) async fn remove_rejected(&self, pod: &Pod) -> Result<Outcome, Error> {
        if pod.metadata.deletion_timestamp.is_some() {
            return self.remove_pod(pod, Ok(())).await;
        }
        Ok(Outcome::Done)
    }
}

/// Whether a node has rejected the pod.
pub(super) fn was_rejected(pod: &Pod) -> bool {
    let reason = pod
        .status
        .as_ref()
        .and_then(|status| status.reason.as_deref());
    reason == Some(REASON) && has_ended(pod)
}
