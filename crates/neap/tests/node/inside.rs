//! What a pod finds around it, and what is left of it.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use neap_world::node::trial;
use serde_json::json;
use tokio::net::TcpStream;

use crate::machine::{LIMIT, Machine};

#[tokio::test]
async fn a_pod_finds_the_api_and_the_services_of_its_namespace() {
    let machine = Machine::start().await;
    let service =
        json!({"metadata": {"name": "my-db"}, "spec": {"ports": [{"name": "sql", "port": 5432}]}});
    let service: Service = machine.create(service).await;
    let address = service.spec.unwrap().cluster_ip.unwrap();
    let script = "cd /var/run/secrets/kubernetes.io/serviceaccount; echo $(cat namespace); echo $(cat ca.crt); \
        test $(tr -cd . < token | wc -c) = 2 && echo signed; \
        echo $MY_DB_SERVICE_HOST $MY_DB_SERVICE_PORT_SQL; grep -c \"^$MY_DB_SERVICE_HOST.*my-db.default \" /etc/hosts; \
        echo ${KUBERNETES_SERVICE_HOST:-none}";
    machine.run("client", script, json!({})).await;
    let pod = machine.phase("client", "Succeeded").await;
    let api = machine.address_of("kubernetes").await;
    let expected = [
        "default".to_owned(),
        "none that is used here".to_owned(),
        "signed".to_owned(),
        format!("{address} 5432"),
        "1".to_owned(),
        api.unwrap_or_else(|| "none".to_owned()),
    ];
    assert_eq!(machine.printed(&pod), expected);
}

#[tokio::test]
async fn names_of_pods_behind_a_headless_service_appear_and_go_while_a_pod_runs() {
    let machine = Machine::start().await;
    let long = "web-0.web.default.svc.cluster.local";
    let script = format!(
        "until grep -qw {long} /etc/hosts; do sleep 0.02; done; \
         grep -w {long} /etc/hosts | tr '\\t' ' '; \
         while grep -qw {long} /etc/hosts; do sleep 0.02; done; echo gone"
    );
    let client = machine.run("client", &script, json!({})).await;
    machine.phase("client", "Running").await;
    let service = json!({"metadata": {"name": "web"}, "spec": {
        "clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}],
    }});
    machine.create::<Service>(service).await;
    let server = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"hostname": "web-0", "subdomain": "web"},
    });
    let script = "trap 'exit 0' TERM; hostname -f; while :; do sleep 0.05; done";
    machine.run("web-0", script, server).await;
    let server = machine.phase("web-0", "Running").await;
    let address = server.status.as_ref().unwrap().pod_ip.clone().unwrap();
    let names = "web.default.svc.cluster.local web.default.svc web.default web";
    let own =
        "web-0.web.default.svc.cluster.local web-0.web.default.svc web-0.web.default web-0.web";
    machine
        .prints(&client, &format!("{address} {names} {own}"))
        .await;
    machine.delete::<Pod>("web-0").await;
    machine.prints(&client, "gone").await;
}

#[tokio::test]
async fn what_is_written_to_a_claim_is_there_for_the_next_pod() {
    let machine = Machine::start().await;
    let claim = json!({"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    }});
    machine.create::<PersistentVolumeClaim>(claim).await;
    let spec = json!({"spec": {
        "containers": [{"volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
    }});
    let writer = machine
        .run("writer", "echo kept > /data/file", spec.clone())
        .await;
    machine.phase("writer", "Succeeded").await;
    machine.delete::<Pod>("writer").await;
    machine.gone(&writer).await;
    machine.run("reader", "cat /data/file", spec).await;
    let reader = machine.phase("reader", "Succeeded").await;
    assert_eq!(machine.printed(&reader), ["kept"]);
}

#[tokio::test]
async fn parts_of_volumes_are_made_and_a_file_of_the_machine_is_a_file() {
    let machine = Machine::start().await;
    let file = machine.folder.path().join("file");
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
    machine.run("parts", script, spec).await;
    let pod = machine.phase("parts", "Succeeded").await;
    assert_eq!(
        machine.printed(&pod),
        ["of the machine", "/whole/parts/deep/made"]
    );
}

#[tokio::test]
async fn when_the_node_ends_its_processes_are_asked_to_and_their_folders_are_nobody_elses() {
    let mut machine = Machine::start().await;
    let signs = machine.folder.path().join("signs");
    fs::create_dir(&signs).unwrap();
    let spec = json!({"spec": {
        "containers": [{"volumeMounts": [{"name": "signs", "mountPath": "/signs"}]}],
        "volumes": [{"name": "signs", "hostPath": {"path": signs}}],
    }});
    let script = "trap 'echo bye > /signs/bye; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    let pod = machine.run("server", script, spec).await;
    machine.prints(&pod, "up").await;
    let pods = machine.folder.path().join("pods");
    let names: Vec<_> = fs::read_dir(&pods)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    let uid = pod.metadata.uid.unwrap();
    assert_eq!(
        names,
        [uid.as_str()],
        "what was left of former pods is gone"
    );
    let mode = fs::metadata(pods.join(uid)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    machine.end().await;
    assert_eq!(fs::read_to_string(signs.join("bye")).unwrap(), "bye\n");
}

#[tokio::test]
async fn how_pods_ended_with_their_node_is_said_before_it_goes() {
    let mut machine = Machine::start().await;
    let orderly = "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done";
    for (name, script, policy) in [
        ("orderly", orderly, "Never"),
        ("abrupt", "echo up; exec sleep 1000", "Never"),
        ("server", "echo up; exec sleep 1000", "Always"),
    ] {
        let policy = json!({"spec": {"restartPolicy": policy}});
        let pod = machine.run(name, script, policy).await;
        machine.prints(&pod, "up").await;
        machine.phase(name, "Running").await;
    }
    machine.end().await;
    for (name, phase, code, message) in [
        ("orderly", "Succeeded", 0, None),
        ("abrupt", "Failed", 143, Some("the node was stopped")),
        ("server", "Running", 143, Some("the node was stopped")),
    ] {
        let status = machine.pods.get(name).await.unwrap().status.unwrap();
        assert_eq!(status.phase.as_deref(), Some(phase), "{name}");
        let container = &status.container_statuses.unwrap()[0];
        assert!(!container.ready, "{name}");
        let state = container.state.clone().unwrap();
        let end = state.terminated.unwrap();
        assert_eq!((end.exit_code, end.message.as_deref()), (code, message));
    }
}

#[tokio::test]
async fn a_pod_of_root_may_listen_on_any_port_and_its_processes_become_others() {
    let machine = Machine::start().await;
    let folder = tempfile::tempdir().unwrap();
    let neap = Path::new(env!("CARGO_BIN_EXE_neap"));
    let as_root = trial::as_root(neap, folder.path());
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(as_root.is_ok(), is_root, "{as_root:?}");
    let spec = json!({"spec": {"containers": [{
        "image": "neaptide/neap", "command": [], "args": ["sample", "serve", "--port", "81"],
    }]}});
    machine.run("low", "", spec).await;
    if !is_root {
        let failed = machine.phase("low", "Failed").await;
        let said = machine.printed(&failed).join(" ");
        assert!(said.contains("denied"), "{said}");
        return;
    }
    let low = machine.phase("low", "Running").await;
    let address = low.status.unwrap().pod_ip.unwrap();
    let mut looks = tokio::time::interval(Duration::from_millis(10));
    let reached = async {
        while TcpStream::connect((&*address, 81)).await.is_err() {
            looks.tick().await;
        }
    };
    tokio::time::timeout(LIMIT, reached).await.unwrap();
    let other = json!({"spec": {
        "containers": [{"volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }});
    let script =
        "setpriv --reuid=65534 --clear-groups sh -c 'touch /v/of-mine && stat -c %u /v/of-mine'";
    machine.run("other", script, other).await;
    let done = machine.phase("other", "Succeeded").await;
    assert_eq!(machine.printed(&done), ["65534"]);
}
