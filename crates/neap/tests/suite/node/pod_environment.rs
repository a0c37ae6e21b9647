//! The environment of a pod: API access, names, volumes; and its end with the node.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use neap_world::node::namespace_support;
use serde_json::json;
use tokio::net::TcpStream;

use super::test_node::{TestNode, WAIT_TIMEOUT};

#[tokio::test]
async fn a_pod_finds_the_api_server_and_the_services_of_its_namespace() {
    let node = TestNode::start().await;
    let service =
        json!({"metadata": {"name": "my-db"}, "spec": {"ports": [{"name": "sql", "port": 5432}]}});
    let service: Service = node.create(service).await;
    let address = service.spec.unwrap().cluster_ip.unwrap();
    let script = "cd /var/run/secrets/kubernetes.io/serviceaccount; echo $(cat namespace); echo $(cat ca.crt); \
        test $(tr -cd . < token | wc -c) = 2 && echo signed; \
        echo $MY_DB_SERVICE_HOST $MY_DB_SERVICE_PORT_SQL; grep -c \"^$MY_DB_SERVICE_HOST.*my-db.default \" /etc/hosts; \
        echo ${KUBERNETES_SERVICE_HOST:-none}";
    node.run("client", script, json!({})).await;
    let pod = node.phase("client", "Succeeded").await;
    let api = node.address_of("kubernetes").await;
    let expected = [
        "default".to_owned(),
        "none that is used here".to_owned(),
        "signed".to_owned(),
        format!("{address} 5432"),
        "1".to_owned(),
        api.unwrap_or_else(|| "none".to_owned()),
    ];
    assert_eq!(node.printed(&pod), expected);
}

#[tokio::test]
async fn host_names_of_a_headless_service_are_updated_while_a_pod_runs() {
    let node = TestNode::start().await;
    let long = "web-0.web.default.svc.cluster.local";
    let script = format!(
        "until grep -qw {long} /etc/hosts; do sleep 0.02; done; \
         grep -w {long} /etc/hosts | tr '\\t' ' '; \
         while grep -qw {long} /etc/hosts; do sleep 0.02; done; echo gone"
    );
    let client = node.run("client", &script, json!({})).await;
    node.phase("client", "Running").await;
    let service = json!({"metadata": {"name": "web"}, "spec": {
        "clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}],
    }});
    node.create::<Service>(service).await;
    let server = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"hostname": "web-0", "subdomain": "web"},
    });
    let script = "trap 'exit 0' TERM; hostname -f; while :; do sleep 0.05; done";
    node.run("web-0", script, server).await;
    let server = node.phase("web-0", "Running").await;
    let address = server.status.as_ref().unwrap().pod_ip.clone().unwrap();
    let names = "web.default.svc.cluster.local web.default.svc web.default web";
    let own =
        "web-0.web.default.svc.cluster.local web-0.web.default.svc web-0.web.default web-0.web";
    node.prints(&client, &format!("{address} {names} {own}"))
        .await;
    node.delete::<Pod>("web-0").await;
    node.prints(&client, "gone").await;
}

#[tokio::test]
async fn data_of_a_claim_is_visible_to_the_next_pod() {
    let node = TestNode::start().await;
    let claim = json!({"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    }});
    node.create::<PersistentVolumeClaim>(claim).await;
    let spec = json!({"spec": {
        "containers": [{"volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }});
    let writer = node
        .run("writer", "echo kept > /data/file", spec.clone())
        .await;
    node.phase("writer", "Succeeded").await;
    node.delete::<Pod>("writer").await;
    node.gone(&writer).await;
    node.run("reader", "cat /data/file", spec).await;
    let reader = node.phase("reader", "Succeeded").await;
    assert_eq!(node.printed(&reader), ["kept"]);
}

#[tokio::test]
async fn sub_paths_are_created_and_host_path_files_are_mounted_as_files() {
    let node = TestNode::start().await;
    let file = node.folder.path().join("file");
    fs::write(&file, "of the machine\n").unwrap();
    let mounts = json!([
        {"name": "file", "mountPath": "/etc/thing"},
        {"name": "room", "mountPath": "/part", "subPathExpr": "$(HOSTNAME)/deep"},
        {"name": "room", "mountPath": "/whole"},
    ]);
    let spec = json!({"spec": {
        "containers": [{"volumeMounts": mounts}],
        "volumes": [{"name": "file", "hostPath": {"path": file, "type": "File"}}, {"name": "room", "emptyDir": {}}],
    }});
    let script = "cat /etc/thing; touch /part/made; find /whole -type f";
    node.run("parts", script, spec).await;
    let pod = node.phase("parts", "Succeeded").await;
    assert_eq!(
        node.printed(&pod),
        ["of the machine", "/whole/parts/deep/made"]
    );
}

#[tokio::test]
async fn a_stopping_node_terminates_its_pods_and_their_folders_are_private() {
    let mut node = TestNode::start().await;
    let files = node.folder.path().join("files");
    fs::create_dir(&files).unwrap();
    let spec = json!({"spec": {
        "containers": [{"volumeMounts": [{"name": "files", "mountPath": "/files"}]}],
        "volumes": [{"name": "files", "hostPath": {"path": files}}],
    }});
    let script = "trap 'echo bye > /files/bye; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    let pod = node.run("server", script, spec).await;
    node.prints(&pod, "up").await;
    let pods = node.folder.path().join("pods");
    let names: Vec<_> = fs::read_dir(&pods)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    let uid = pod.metadata.uid.unwrap();
    assert_eq!(names, [uid.as_str()], "folders of former pods are removed");
    let mode = fs::metadata(pods.join(uid)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    node.end().await;
    assert_eq!(fs::read_to_string(files.join("bye")).unwrap(), "bye\n");
}

#[tokio::test]
async fn a_stopping_node_writes_the_final_status_of_its_pods() {
    let mut node = TestNode::start().await;
    let orderly = "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done";
    for (name, script, policy) in [
        ("orderly", orderly, "Never"),
        ("abrupt", "echo up; exec sleep 1000", "Never"),
        ("server", "echo up; exec sleep 1000", "Always"),
    ] {
        let policy = json!({"spec": {"restartPolicy": policy}});
        let pod = node.run(name, script, policy).await;
        node.prints(&pod, "up").await;
        node.phase(name, "Running").await;
    }
    node.end().await;
    for (name, phase, code, message) in [
        ("orderly", "Succeeded", 0, None),
        ("abrupt", "Failed", 143, Some("the node was stopped")),
        ("server", "Running", 143, Some("the node was stopped")),
    ] {
        let status = node.pods.get(name).await.unwrap().status.unwrap();
        assert_eq!(status.phase.as_deref(), Some(phase), "{name}");
        let container = &status.container_statuses.unwrap()[0];
        assert!(!container.ready, "{name}");
        let state = container.state.clone().unwrap();
        let end = state.terminated.unwrap();
        assert_eq!((end.exit_code, end.message.as_deref()), (code, message));
    }
}

#[tokio::test]
async fn a_root_pod_can_use_any_port_and_switch_users() {
    let node = TestNode::start().await;
    let folder = tempfile::tempdir().unwrap();
    let neap = Path::new(env!("CARGO_BIN_EXE_neap"));
    let as_root = namespace_support::as_root(neap, folder.path());
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(as_root.is_ok(), is_root, "{as_root:?}");
    let spec = json!({"spec": {"containers": [{
        "image": "neaptide/neap", "command": [], "args": ["sample", "serve", "--port", "81"],
    }]}});
    node.run("low", "", spec).await;
    if !is_root {
        let failed = node.phase("low", "Failed").await;
        let said = node.printed(&failed).join(" ");
        assert!(said.contains("denied"), "{said}");
        return;
    }
    let low = node.phase("low", "Running").await;
    let address = low.status.unwrap().pod_ip.unwrap();
    let mut polls = tokio::time::interval(Duration::from_millis(10));
    let reached = async {
        while TcpStream::connect((&*address, 81)).await.is_err() {
            polls.tick().await;
        }
    };
    tokio::time::timeout(WAIT_TIMEOUT, reached).await.unwrap();
    let other = json!({"spec": {
        "containers": [{"volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }});
    let script =
        "setpriv --reuid=65534 --clear-groups sh -c 'touch /v/of-mine && stat -c %u /v/of-mine'";
    node.run("other", script, other).await;
    let done = node.phase("other", "Succeeded").await;
    assert_eq!(node.printed(&done), ["65534"]);
}
