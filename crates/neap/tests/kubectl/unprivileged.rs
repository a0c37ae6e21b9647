//! The same for a user without privileges.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
};

use crate::{
    cluster::{Cluster, program, skip},
    workloads::answers_by_address_and_name,
};

#[test]
fn the_sample_answers_without_root() {
    let Some(cluster) = Cluster::up_without_root("the_sample_answers_without_root") else {
        return;
    };
    answers_by_address_and_name(&cluster);
}

#[test]
fn the_sample_answers_with_the_program_among_temporary_files() {
    let test = "the_sample_answers_with_the_program_among_temporary_files";
    // A container does not see these.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let neap = folder.path().join("neap");
    fs::copy(program(), &neap).unwrap();
    let Some(cluster) = Cluster::up_from(test, &neap) else {
        return;
    };
    answers_by_address_and_name(&cluster);
    let files = "exec deployment/web -- ls -A /tmp";
    let hidden = folder.path().file_name().unwrap().to_str().unwrap();
    assert_eq!(cluster.ok(files).trim(), hidden, "and nothing else");
}

/// A service on a port that only root may listen on.
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
fn a_low_port_with_a_way_round_is_noted_and_no_failure() {
    let test = "a_low_port_with_a_way_round_is_noted_and_no_failure";
    let first = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").unwrap();
    if first.trim().parse::<u16>().unwrap() <= 443 {
        skip(test, "everybody may listen on port 80 here");
        return;
    }
    let Some(cluster) = Cluster::up_without_root(test) else {
        return;
    };
    answers_by_address_and_name(&cluster);
    cluster.file("low.yaml", LOW);
    cluster.ok("apply -f low.yaml");
    let events = "get events --field-selector reason=AddressNotServed";
    let told = cluster.says(events, &["service/low", "service/kubernetes"]);
    assert!(!told.contains("Warning"), "{told}");
    assert!(told.contains("use the node port 30080"), "{told}");

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

    // Without a node port there is no way round.
    cluster.ok("expose deployment web --name=lower --port=81 --target-port=8080");
    cluster.says(events, &["service/lower", "Warning", "or type NodePort"]);
    assert_eq!(cluster.neap("check").code, Some(1));
}
