//! `get -w` and `wait`.

use serde_json::Value;

use super::kubectl_cluster::KubectlCluster;

#[test]
fn watch_prints_a_line_per_change() {
    let Some(cluster) = KubectlCluster::start("watch_prints_a_line_per_change") else {
        return;
    };
    cluster.ok("create ns n");
    cluster.ok("create cm first -n n");
    let table = cluster.follow("get cm -n n -w --field-selector=metadata.name!=kube-root-ca.crt");
    let json = cluster.follow("get cm first -n n -w --output-watch-events -o json");
    assert_eq!(table.line(), "NAME DATA AGE");
    assert!(table.line().starts_with("first 0 "));
    let mut json = std::iter::from_fn(|| Some(document(&json)));
    assert_eq!(json.next().unwrap()["type"], "ADDED");

    cluster.ok("create cm second --from-literal=a=1 --from-literal=b=2 -n n");
    cluster.ok(r#"patch cm first -n n --type=merge -p '{"data":{"k":"v"}}'"#);
    cluster.ok("delete cm first -n n");
    for start in ["second 2 ", "first 1 ", "first 1 "] {
        let line = table.line();
        assert!(line.starts_with(start), "{line}");
    }
    let modified = json.next().unwrap();
    assert_eq!(modified["type"], "MODIFIED");
    assert_eq!(modified["object"]["data"]["k"], "v");
    assert_eq!(json.next().unwrap()["type"], "DELETED");
}

/// The next JSON document, on one or several lines.
fn document(follow: &super::kubectl_cluster::FollowedCommand) -> Value {
    let mut text = String::new();
    loop {
        text += &follow.line();
        if let Ok(value) = serde_json::from_str(&text) {
            return value;
        }
    }
}

#[test]
fn wait_ends_when_the_condition_is_met() {
    let Some(cluster) = KubectlCluster::start("wait_ends_when_the_condition_is_met") else {
        return;
    };
    let created = cluster.follow("wait --for=create cm/x --timeout=60s");
    cluster.ok("create cm x");
    assert_eq!(created.line(), "configmap/x condition met");
    assert_eq!(created.end(), Some(0));

    let set = cluster.follow("wait --for=jsonpath={.data.a}=1 cm/x --timeout=60s");
    cluster.ok(r#"patch cm x -p '{"data":{"a":"1"}}'"#);
    assert_eq!(set.line(), "configmap/x condition met");
    assert_eq!(set.end(), Some(0));

    let gone = cluster.follow("wait --for=delete cm/x --timeout=60s");
    cluster.ok("delete cm x");
    assert_eq!(gone.end(), Some(0));

    cluster.ok("run p --image=nginx");
    assert_eq!(
        cluster
            .refused("wait pod/p --for=condition=Ready --timeout=200ms")
            .trim_end(),
        "error: timed out waiting for the condition on pods/p"
    );
}
