//! Workloads of a `neap up` without root.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use crate::skip::skip;

use super::{
    kubectl_cluster::{KubectlCluster, program},
    workloads::responds_by_address_and_name,
};

#[test]
fn the_example_works_without_root() {
    let Some(cluster) = KubectlCluster::up_without_root("the_example_works_without_root") else {
        return;
    };
    responds_by_address_and_name(&cluster);
}

#[test]
fn the_example_works_with_the_program_in_tmp() {
    let test = "the_example_works_with_the_program_in_tmp";
    // Containers have a /tmp of their own.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let neap = folder.path().join("neap");
    fs::copy(program(), &neap).unwrap();
    let Some(cluster) = KubectlCluster::up_from(test, &neap) else {
        return;
    };
    responds_by_address_and_name(&cluster);
    let files = "exec deployment/web -- ls -A /tmp";
    let hidden = folder.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(cluster.ok(files).trim(), hidden, "and nothing else");
}

/// A service on a privileged port.
const LOW: &str = "
apiVersion: v1
kind: Service
metadata: {name: low}
spec:
  type: NodePort
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30080}]
";

#[test]
fn an_unserved_low_port_with_a_node_port_is_a_note() {
    let test = "an_unserved_low_port_with_a_node_port_is_a_note";
    let first = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    if first.trim().parse::<u16>().unwrap() <= 443 {
        skip(test, "port 80 needs no privileges here");
        return;
    }
    let Some(cluster) = KubectlCluster::up_without_root(test) else {
        return;
    };
    responds_by_address_and_name(&cluster);
    cluster.file("low.yaml", LOW);
    cluster.ok("apply -f low.yaml");
    let events = "get events --field-selector reason=AddressNotServed";
    let events_text = cluster.prints(events, &["service/low", "service/kubernetes"]);
    assert!(!events_text.contains("Warning"), "{events_text}");
    assert!(
        events_text.contains("use the node port 30080"),
        "{events_text}"
    );

    let status = cluster.neap("status").stdout;
    assert!(
        status.contains("ports below 1024 need root; use the node port 30080"),
        "{status}"
    );
    assert!(!status.contains(":443 is not served"), "{status}");
    let check = cluster.neap("check -o json");
    assert_eq!(check.code, Some(0), "{check:?}");
    assert!(
        check.stdout.contains("use the node port 30080"),
        "{check:?}"
    );

    // Without a node port the service is unreachable.
    cluster.ok("expose deployment web --name=lower --port=81 --target-port=8080");
    cluster.prints(events, &["service/lower", "Warning", "or type NodePort"]);
    assert_eq!(cluster.neap("check").code, Some(1));
}
