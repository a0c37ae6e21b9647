//! Takes pods in, or says why not.

use std::{collections::HashMap, net::Ipv4Addr};

use k8s_openapi::api::core::v1::Pod;
use neap_kit::{apply::Error, controller::Outcome, event::Note, key::Key};

use super::{
    TRY_AGAIN,
    local::Local,
    node::{Node, own_address},
};
use crate::{scheduler::taken_port, workload::has_ended};

/// The reason of a pod that was never taken in.
const REASON: &str = "NodePorts";

/// Why a pod is not taken in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// All addresses are given away; one may come back.
    NoAddress,
    /// Another pod has this port of the node. Whoever bound the pod did not ask the scheduler, so
    /// it fails, as on any node.
    PortTaken(i32),
}

impl Node {
    /// The pod with the address that it has, or is given now.
    pub(super) fn accept(&self, key: &Key, pod: &Pod) -> Result<Pod, Refusal> {
        let block = self.options.block;
        let on_host = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        let address = self.locals.accept(key, pod, self.clock.now(), |others| {
            self.mind_ports(pod, others)?;
            if on_host {
                return Ok(block.node());
            }
            let is_taken =
                |address: Ipv4Addr| others.values().any(|other| other.address == address);
            let kept = own_address(pod);
            let kept = kept.filter(|&address| block.has_pod(address) && !is_taken(address));
            kept.or_else(|| block.free(is_taken))
                .ok_or(Refusal::NoAddress)
        })?;
        let mut pod = pod.clone();
        let status = pod.status.get_or_insert_default();
        status.pod_ip = Some(address.to_string());
        status.host_ip = Some(block.node().to_string());
        Ok(pod)
    }

    /// What has ended needs no ports, and what is not here yet has none.
    fn mind_ports(&self, pod: &Pod, others: &HashMap<Key, Local>) -> Result<(), Refusal> {
        if has_ended(pod) || pod.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let others: Vec<_> = others.keys().filter_map(|key| self.pods.get(key)).collect();
        let others = others.iter().filter(|other| !has_ended(other));
        let others: Vec<&Pod> = others.map(|other| &**other).collect();
        taken_port(pod, &others).map_or(Ok(()), |port| Err(Refusal::PortTaken(port)))
    }

    /// Tells of a pod that was not taken in, and when to look at it again.
    pub(super) async fn refuse(&self, pod: &Pod, refusal: Refusal) -> Result<Outcome, Error> {
        let port = match refusal {
            Refusal::NoAddress => {
                let message = "this node has no address left for the pod";
                let note = Note::warning("FailedCreatePodSandBox", message);
                self.recorder.tell(pod, &note).await;
                return Ok(Outcome::Again(TRY_AGAIN));
            }
            Refusal::PortTaken(port) => port,
        };
        let message = format!(
            "Pod was rejected: another pod of this node has its port {port}. Give it another hostPort, or leave nodeName to the scheduler"
        );
        let mut failed = pod.clone();
        let status = failed.status.get_or_insert_default();
        status.phase = Some("Failed".to_owned());
        status.reason = Some(REASON.to_owned());
        status.message = Some(message.clone());
        match self.hand.replace_status(&failed).await {
            // It has changed since, and is looked at again because of that.
            Err(Error::Replaced(_)) => return Ok(Outcome::Settled),
            written => written?,
        };
        self.recorder
            .tell(pod, &Note::warning(REASON, message))
            .await;
        Ok(Outcome::Settled)
    }

    /// A pod that was refused has nothing here that would have to end first.
    pub(super) async fn let_go(&self, pod: &Pod) -> Result<Outcome, Error> {
        if pod.metadata.deletion_timestamp.is_some() {
            return self.see_off(pod, Ok(())).await;
        }
        Ok(Outcome::Settled)
    }
}

/// Whether a node has said of the pod that it does not take it in.
pub(super) fn was_refused(pod: &Pod) -> bool {
    let reason = pod
        .status
        .as_ref()
        .and_then(|status| status.reason.as_deref());
    reason == Some(REASON) && has_ended(pod)
}
