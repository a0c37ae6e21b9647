//! The objects of the server that the status report needs.

use std::sync::Arc;

use futures::{future::join_all, join};
use k8s_openapi::api::core::v1::Event;
use neap_kit::operation::Operation;
use serde_json::Value;

use crate::{
    areas,
    exit::Failure,
    inspect::{
        cluster::Cluster,
        explain::decode_valid,
        read::{
            self, CLAIM, CLASS, DAEMON_SET, DEPLOYMENT, EVENT, JOB, NODE, OPERATION, POD,
            REPLICA_SET, ResourceType, SERVICE, SLICE, STATEFUL_SET,
        },
    },
};

/// The kinds of every server whose objects are read.
const KINDS: [ResourceType; 11] = [
    NODE,
    DEPLOYMENT,
    STATEFUL_SET,
    DAEMON_SET,
    REPLICA_SET,
    JOB,
    POD,
    SERVICE,
    SLICE,
    CLAIM,
    CLASS,
];

/// Objects read from the server.
#[derive(Debug, Default)]
pub(crate) struct ClusterSnapshot {
    pub(crate) address: String,
    pub(crate) version: String,
    /// The namespace; `None` for all namespaces.
    pub(crate) namespace: Option<String>,
    /// Nodes, workloads, pods, services, claims and objects of areas, each with its kind.
    pub(crate) objects: Arc<[Value]>,
    /// Kinds that the user may not read.
    pub(crate) hidden: Vec<&'static str>,
    pub(crate) events: Arc<[Event]>,
    pub(crate) operations: Vec<Operation>,
}

impl ClusterSnapshot {
    /// Reads all lists concurrently.
    pub(crate) async fn read(cluster: &Cluster, namespace: Option<&str>) -> Result<Self, Failure> {
        let client = &cluster.client;
        let version = client.apiserver_version();
        let version = version
            .await
            .map_err(|error| cluster.failed("the version", &error))?;
        let lists = KINDS.map(|kind| read::list(client, kind, namespace, None));
        let notes = "type=Normal,reason=AddressNotServed";
        let area_kinds: Vec<_> = areas::kinds().map(|kind| kind.resource).collect();
        let of_areas = area_kinds
            .iter()
            .map(|kind| read::list(client, *kind, namespace, None));
        let (lists, of_areas, events, notes, operations) = join!(
            join_all(lists),
            join_all(of_areas),
            read::list(client, EVENT, namespace, Some("type=Warning")),
            read::list(client, EVENT, namespace, Some(notes)),
            read::list(client, OPERATION, namespace, None),
        );
        let failed = |error| cluster.failed("objects", &error);
        let (mut objects, mut hidden) = (Vec::new(), Vec::new());
        for (kind, found) in KINDS.iter().zip(lists) {
            let (found, may_see) = read::visible(found).map_err(failed)?;
            objects.extend(found);
            if !may_see {
                hidden.push(kind.name);
            }
        }
        let (mut events, may_see) = read::visible(events).map_err(failed)?;
        if !may_see {
            hidden.push(EVENT.name);
        }
        events.extend(read::visible(notes).map_err(failed)?.0);
        let (operations, _) = read::visible(operations).map_err(failed)?;
        for (kind, found) in area_kinds.into_iter().zip(of_areas) {
            let (found, may_see) = read::visible(found).map_err(failed)?;
            objects.extend(found);
            // Without permission the server responds with 403 even if it does not have the kind.
            if !may_see && is_served(cluster, kind).await {
                hidden.push(kind.name);
            }
        }
        Ok(Self {
            address: cluster.address.clone(),
            version: version.git_version,
            namespace: namespace.map(str::to_owned),
            objects: objects.into(),
            hidden,
            events: decode_valid(events).into(),
            operations: decode_valid(operations),
        })
    }
}

async fn is_served(cluster: &Cluster, kind: ResourceType) -> bool {
    let path = format!("/apis/{}", kind.api_version);
    matches!(read::find(&cluster.client, &path).await, Ok(Some(_)))
}
