use std::path::Path;

use super::*;
use crate::{
    node::{address::Block, image::Images},
    stage::TestCluster,
};

fn options() -> NodeOptions {
    NodeOptions {
        name: "here".into(),
        folder: "/nowhere".into(),
        launcher: "/bin/neap".into(),
        images: Images::builtin(Path::new("/bin/neap")).into(),
        block: Block::new(3).unwrap(),
        environment: BTreeMap::new(),
        namespaces: true,
        own_proc: true,
        restricted: false,
        as_root: false,
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_is_ready_and_its_lease_is_renewed() {
    let machine = Machine::this(Path::new("/"), "v1.36.3");
    let cluster =
        TestCluster::start(|context| Ok(vec![component(context, &options(), &machine)?])).await;
    cluster.advance(Duration::from_secs(1)).await;
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let leases: Api<Lease> = Api::namespaced(cluster.client.clone(), LEASE_NAMESPACE);
    let node = nodes.get("here").await.unwrap();
    let status = node.status.clone().unwrap();
    let ready = |node: &Node| {
        let conditions = node.status.clone().unwrap().conditions.unwrap();
        conditions
            .into_iter()
            .find(|condition| condition.type_ == "Ready")
            .unwrap()
    };
    assert_eq!(ready(&node).status, "True");
    assert_eq!(status.addresses.unwrap()[0].address, "127.3.0.1");
    let renewed = async || {
        leases
            .get("here")
            .await
            .unwrap()
            .spec
            .unwrap()
            .renew_time
            .unwrap()
    };
    let first = renewed().await;
    cluster.advance(Duration::from_mins(1)).await;
    let quiet = nodes.get("here").await.unwrap();
    assert_eq!(
        quiet.resource_version(),
        node.resource_version(),
        "an unchanged status is not written"
    );
    assert!(renewed().await.0.duration_since(first.0).as_secs() >= 50);
    cluster.advance(Duration::from_mins(5)).await;
    let later = nodes.get("here").await.unwrap();
    assert_ne!(
        later.resource_version(),
        node.resource_version(),
        "but every five minutes"
    );
    assert_eq!(
        ready(&later).last_transition_time,
        ready(&node).last_transition_time
    );
}
