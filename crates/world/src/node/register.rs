//! The Node object: its status and its heartbeat.
//!
//! Its Lease is renewed every ten seconds as a heartbeat; the Node itself is written when its
//! status changes, and otherwise every five minutes.

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
    apply::{Error, Writer},
    clock::Clock,
    context::Context,
    manager::Component,
    watch::{Cache, WatchesStopped},
};

pub use self::machine::Machine;
use super::NodeOptions;
use crate::workload::api_time;

const NAME: &str = "node";
const LEASE_NAMESPACE: &str = "kube-node-lease";
/// The interval at which the Lease is renewed.
const LEASE_RENEW_INTERVAL: Duration = Duration::from_secs(10);
/// The lease duration, after which the node counts as gone.
const LEASE_SECONDS: i32 = 40;
/// The interval at which an unchanged Node is written.
const STATUS_REPORT_INTERVAL: Duration = Duration::from_mins(5);

/// Keeps the Node object and its Lease up to date.
pub fn component(
    context: &Context,
    options: &NodeOptions,
    machine: &Machine,
) -> Result<Component, WatchesStopped> {
    let nodes = context.cache::<Node>()?;
    let reporter = NodeReporter {
        writer: context.writer("kubelet"),
        // Heartbeats are not recorded for later inspection: there are thousands every day.
        heartbeats: Writer::new(
            context.client.clone(),
            "kubelet",
            context.leadership.clone(),
            context.clock,
        )
        .with_telemetry(context.watches.process().telemetry().clone()),
        leases: Api::namespaced(context.client.clone(), LEASE_NAMESPACE),
        clock: context.clock,
        wanted: node_object(options, machine),
        nodes,
    };
    Ok(Component::new(NAME, move |stop| async move {
        tokio::select! {
            () = stop.cancelled() => {}
            () = reporter.run() => {}
        }
    }))
}

struct NodeReporter {
    writer: Writer,
    /// Writes heartbeats, which are not recorded.
    heartbeats: Writer,
    nodes: Cache<Node>,
    leases: Api<Lease>,
    clock: Clock,
    wanted: Node,
}

impl NodeReporter {
    async fn run(&self) {
        self.nodes.synced().await;
        // The Lease as it was last written; read only when that is unknown.
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
            self.clock.sleep(LEASE_RENEW_INTERVAL).await;
        }
    }

    /// Creates or updates the Node, and returns it.
    async fn register(&self) -> Result<Node, Error> {
        let key = neap_kit::key::Key::of(&self.wanted);
        let cached = self.nodes.get(&key);
        let Some(cached) = cached else {
            // If it exists and is not in the cache yet, the watch delivers it.
            let made = self.writer.create(&self.wanted).await?;
            let mut node = made.unwrap_or_else(|| self.wanted.clone());
            if node.uid().is_some() {
                node.status = Some(status(&self.wanted, None, self.clock.now()));
                node = self.writer.replace_status(&node).await?;
            }
            return Ok(node);
        };
        let status = status(&self.wanted, cached.status.as_ref(), self.clock.now());
        if cached.status.as_ref() != Some(&status) {
            let mut node = (*cached).clone();
            node.status = Some(status);
            return self.writer.replace_status(&node).await;
        }
        Ok((*cached).clone())
    }

    /// Renews the Lease of the node, last written as `last`, and returns it.
    async fn renew(&self, node: &Node, last: Option<Lease>) -> Result<Option<Lease>, Error> {
        let name = node.name_any();
        let now = Some(MicroTime(self.clock.now()));
        let refused = |source| Error::Refused {
            key: neap_kit::key::Key::new(LEASE_NAMESPACE, &name),
            source: Box::new(source),
        };
        let known = match last {
            Some(lease) => Some(lease),
            None => self.leases.get_opt(&name).await.map_err(refused)?,
        };
        if let Some(mut lease) = known {
            lease.spec.get_or_insert_default().renew_time = now;
            return self.heartbeats.replace(&lease).await.map(Some);
        }
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(LEASE_NAMESPACE.to_owned()),
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
        self.writer.create(&lease).await
    }
}

/// The Node object for this machine and these options.
fn node_object(options: &NodeOptions, machine: &Machine) -> Node {
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

fn images(options: &NodeOptions) -> Vec<ContainerImage> {
    let table = options.images.current();
    let images = table.names().map(|name| ContainerImage {
        names: Some(vec![name.to_owned()]),
        size_bytes: None,
    });
    images.collect()
}

/// The wanted status, with conditions whose times change only when they must.
fn status(wanted: &Node, former: Option<&NodeStatus>, now: Timestamp) -> NodeStatus {
    let wanted_conditions = [
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
    let conditions = wanted_conditions.map(|(kind, value, reason, message)| {
        let before = before(kind).filter(|before| before.status == value);
        let beat = before.and_then(|before| before.last_heartbeat_time.as_ref());
        let is_fresh =
            |beat: &&Time| now.duration_since(beat.0).unsigned_abs() < STATUS_REPORT_INTERVAL;
        let since = before.and_then(|before| before.last_transition_time.clone());
        NodeCondition {
            type_: kind.to_owned(),
            status: value.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(beat.filter(is_fresh).cloned().unwrap_or(api_time(now))),
            last_transition_time: Some(since.unwrap_or(api_time(now))),
        }
    });
    NodeStatus {
        conditions: Some(conditions.into()),
        ..wanted.status.clone().unwrap_or_default()
    }
}
