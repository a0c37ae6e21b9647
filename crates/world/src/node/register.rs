//! The node in the API: what it is, and that it is still there.
//!
//! Its Lease is renewed every ten seconds, which is how others know that it lives; the Node itself
//! is written when something about it changes, and otherwise every five minutes.

mod machine;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        coordination::v1::{Lease, LeaseSpec},
        core::v1::{
            ContainerImage, DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints,
            NodeSpec, NodeStatus, NodeSystemInfo,
        },
    },
    apimachinery::pkg::{
        api::resource::Quantity,
        apis::meta::v1::{MicroTime, ObjectMeta, Time},
    },
};
use kube::{Api, Resource, ResourceExt};
use neap_kit::{
    apply::{Error, Hand},
    clock::Clock,
    manager::Service,
    site::Site,
    watch::{Cache, Ended},
};

pub use self::machine::Machine;
use super::Options;
use crate::workload::moment;

const NAME: &str = "node";
const LEASES: &str = "kube-node-lease";
/// How often the Lease is renewed.
const BEAT: Duration = Duration::from_secs(10);
/// How long others wait for that before they think the node gone.
const LEASE_SECONDS: i32 = 40;
/// How often the Node is written though nothing about it has changed.
const REPORT: Duration = Duration::from_mins(5);

/// Keeps the node in the API.
pub fn service(site: &Site, options: &Options, machine: &Machine) -> Result<Service, Ended> {
    let nodes = site.all::<Node>()?;
    let keeper = Keeper {
        hand: site.hand("kubelet"),
        // A sign of life is nothing to be looked up later: there are thousands every day.
        beats: Hand::new(
            site.client.clone(),
            "kubelet",
            site.leadership.clone(),
            site.clock,
        )
        .counted_by(site.watches.process().telemetry().clone()),
        leases: Api::namespaced(site.client.clone(), LEASES),
        clock: site.clock,
        wanted: describe(options, machine),
        nodes,
    };
    Ok(Service::new(NAME, move |stop| async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = keeper.run() => {}
        }
    }))
}

struct Keeper {
    hand: Hand,
    /// Writes signs of life, which are not noted.
    beats: Hand,
    nodes: Cache<Node>,
    leases: Api<Lease>,
    clock: Clock,
    wanted: Node,
}

impl Keeper {
    async fn run(&self) {
        self.nodes.synced().await;
        // As it was last written; asked for only when that is not known.
        let mut lease = None;
        loop {
            let last = lease.take();
            let done = async {
                let node = self.register().await?;
                self.renew(&node, last).await
            };
            match done.await {
                Ok(written) => lease = written,
                Err(error) => tracing::warn!(%error, "the node could not be reported"),
            }
            self.clock.sleep(BEAT).await;
        }
    }

    /// Makes the Node what it should be, and returns it.
    async fn register(&self) -> Result<Node, Error> {
        let key = neap_kit::key::Key::of(&self.wanted);
        let known = self.nodes.get(&key);
        let Some(known) = known else {
            // One that is there and not known yet comes by the watch.
            let made = self.hand.create(&self.wanted).await?;
            let mut node = made.unwrap_or_else(|| self.wanted.clone());
            if node.uid().is_some() {
                node.status = Some(status(&self.wanted, None, self.clock.now()));
                node = self.hand.replace_status(&node).await?;
            }
            return Ok(node);
        };
        let status = status(&self.wanted, known.status.as_ref(), self.clock.now());
        if known.status.as_ref() != Some(&status) {
            let mut node = (*known).clone();
            node.status = Some(status);
            return self.hand.replace_status(&node).await;
        }
        Ok((*known).clone())
    }

    /// Renews the Lease of the node, which was `last` written so, and returns it.
    async fn renew(&self, node: &Node, last: Option<Lease>) -> Result<Option<Lease>, Error> {
        let name = node.name_any();
        let now = Some(MicroTime(self.clock.now()));
        let refused = |source| Error::Refused {
            key: neap_kit::key::Key::new(LEASES, &name),
            source: Box::new(source),
        };
        let known = match last {
            Some(lease) => Some(lease),
            None => self.leases.get_opt(&name).await.map_err(refused)?,
        };
        if let Some(mut lease) = known {
            lease.spec.get_or_insert_default().renew_time = now;
            return self.beats.replace(&lease).await.map(Some);
        }
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(LEASES.to_owned()),
                owner_references: node.owner_ref(&()).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(name),
                lease_duration_seconds: Some(LEASE_SECONDS),
                renew_time: now,
                ..LeaseSpec::default()
            }),
        };
        self.hand.create(&lease).await
    }
}

/// The node as this machine and these options make it.
fn describe(options: &Options, machine: &Machine) -> Node {
    let labels = [
        ("kubernetes.io/hostname", options.name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", machine.architecture.as_str()),
        ("beta.kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", machine.architecture.as_str()),
    ];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let address = |kind: &str, address: String| NodeAddress {
        type_: kind.to_owned(),
        address,
    };
    let capacity = BTreeMap::from([
        ("cpu".to_owned(), Quantity(machine.cores.to_string())),
        (
            "memory".to_owned(),
            Quantity(format!("{}Ki", machine.memory / 1024)),
        ),
        ("pods".to_owned(), Quantity("500".to_owned())),
        (
            "ephemeral-storage".to_owned(),
            Quantity(format!("{}Ki", machine.disk / 1024)),
        ),
    ]);
    Node {
        metadata: ObjectMeta {
            name: Some(options.name.clone()),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        },
        spec: Some(NodeSpec::default()),
        status: Some(NodeStatus {
            addresses: Some(vec![
                address("InternalIP", options.block.node().to_string()),
                address("Hostname", options.name.clone()),
            ]),
            allocatable: Some(capacity.clone()),
            capacity: Some(capacity),
            daemon_endpoints: Some(NodeDaemonEndpoints {
                kubelet_endpoint: Some(DaemonEndpoint { port: 10250 }),
            }),
            images: Some(images(options)),
            node_info: Some(NodeSystemInfo {
                architecture: machine.architecture.clone(),
                boot_id: machine.boot.clone(),
                container_runtime_version: "process://1".to_owned(),
                kernel_version: machine.kernel.clone(),
                kubelet_version: machine.version.clone(),
                machine_id: machine.id.clone(),
                operating_system: "linux".to_owned(),
                os_image: machine.system.clone(),
                system_uuid: machine.id.clone(),
                ..NodeSystemInfo::default()
            }),
            ..NodeStatus::default()
        }),
    }
}

fn images(options: &Options) -> Vec<ContainerImage> {
    let images = options.images.names().map(|name| ContainerImage {
        names: Some(vec![name.to_owned()]),
        size_bytes: None,
    });
    images.collect()
}

/// The status to show: what is wanted, with conditions whose times move only when they should.
fn status(wanted: &Node, former: Option<&NodeStatus>, now: Timestamp) -> NodeStatus {
    let said = [
        (
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        (
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure",
        ),
        (
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available",
        ),
        (
            "Ready",
            "True",
            "KubeletReady",
            "kubelet is posting ready status",
        ),
    ];
    let before = |kind: &str| {
        let conditions = former
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        conditions
            .into_iter()
            .find(|condition| condition.type_ == kind)
    };
    let conditions = said.map(|(kind, truth, reason, message)| {
        let before = before(kind).filter(|before| before.status == truth);
        let beat = before.and_then(|before| before.last_heartbeat_time.as_ref());
        let is_fresh = |beat: &&Time| now.duration_since(beat.0).unsigned_abs() < REPORT;
        let since = before.and_then(|before| before.last_transition_time.clone());
        NodeCondition {
            type_: kind.to_owned(),
            status: truth.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(beat.filter(is_fresh).cloned().unwrap_or(moment(now))),
            last_transition_time: Some(since.unwrap_or(moment(now))),
        }
    });
    NodeStatus {
        conditions: Some(conditions.into()),
        ..wanted.status.clone().unwrap_or_default()
    }
}
