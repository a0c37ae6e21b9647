//! Pods as processes: a node at work on an API server in this process.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    runtime::wait::{await_condition, conditions},
};
use neap_kit::{clock::Clock, lease::Leadership, site::Site, watch::Watches};
use neap_pocket::{Options, Pocket, environment::Environment};
use neap_world::node::{self, address::Block, image::Images};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const LIMIT: Duration = Duration::from_secs(30);

struct Machine {
    pods: Api<Pod>,
    maps: Api<ConfigMap>,
    folder: TempDir,
    stop: CancellationToken,
    _tasks: JoinSet<()>,
    _pocket: Pocket,
}

impl Machine {
    async fn start() -> Self {
        let mut options = Options::new(Environment::rehearsal(7));
        options.root_ca = Some("none that is used here".into());
        let pocket = Pocket::open(options).await.unwrap();
        let client = Client::new(pocket.service(), "default");
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::system();
        let (watches, watching) = Watches::new(clock);
        let site = Site {
            client: client.clone(),
            watches,
            leadership: Leadership::alone(clock),
            clock,
        };
        let neap = Path::new(env!("CARGO_BIN_EXE_neap"));
        let options = node::Options {
            name: "here".into(),
            folder: folder.path().to_owned(),
            launcher: neap.to_owned(),
            images: Images::usual(neap),
            block: Block::new(77).unwrap(),
            environment: BTreeMap::new(),
            rooms: true,
        };
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let service = node::service(&site, options).unwrap();
        tasks.spawn(service.run(stop.clone()));
        tasks.spawn(watching.run(stop.clone()));
        Self {
            pods: Api::default_namespaced(client.clone()),
            maps: Api::default_namespaced(client),
            folder,
            stop,
            _tasks: tasks,
            _pocket: pocket,
        }
    }

    /// A pod with one container that runs `script`.
    async fn run(&self, name: &str, script: &str, more: Value) -> Pod {
        let container =
            json!({"name": "main", "image": "busybox", "command": ["sh", "-c", script]});
        let mut pod = json!({
            "metadata": {"name": name},
            "spec": {"nodeName": "here", "restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "containers": [container]},
        });
        merge(&mut pod, more);
        let pod = serde_json::from_value(pod).unwrap();
        self.pods
            .create(&PostParams::default(), &pod)
            .await
            .unwrap()
    }

    /// The pod once `is_so` is true of it.
    async fn when(&self, name: &str, is_so: impl Fn(&Pod) -> bool) -> Pod {
        let condition = |pod: Option<&Pod>| pod.is_some_and(&is_so);
        let waited = await_condition(self.pods.clone(), name, condition);
        let Ok(found) = tokio::time::timeout(LIMIT, waited).await else {
            let pod = self.pods.get(name).await.unwrap();
            panic!("not so: {:#?}", pod.status);
        };
        found.unwrap().unwrap()
    }

    async fn phase(&self, name: &str, phase: &str) -> Pod {
        let is_in = |pod: &Pod| {
            pod.status
                .as_ref()
                .and_then(|status| status.phase.as_deref())
                == Some(phase)
        };
        self.when(name, is_in).await
    }

    /// Resolves once the container has printed a line.
    async fn prints(&self, pod: &Pod, line: &str) {
        let mut looks = tokio::time::interval(Duration::from_millis(10));
        let printed = async {
            while !self.printed(pod).iter().any(|printed| printed == line) {
                looks.tick().await;
            }
        };
        let waited = tokio::time::timeout(LIMIT, printed).await;
        assert!(waited.is_ok(), "{line} is not in {:?}", self.printed(pod));
    }

    /// What the container printed.
    fn printed(&self, pod: &Pod) -> Vec<String> {
        let uid = pod.metadata.uid.as_deref().unwrap();
        let log = self
            .folder
            .path()
            .join("pods")
            .join(uid)
            .join("containers/main/log");
        let text = fs::read(log).unwrap_or_default();
        let lines = text.split(|&byte| byte == b'\n');
        let lines = lines.filter_map(node::process::Line::read);
        lines
            .map(|line| String::from_utf8_lossy(line.text).into_owned())
            .collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn merge(into: &mut Value, more: Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(more)) if into.len() == more.len() => {
            into.iter_mut()
                .zip(more)
                .for_each(|(into, more)| merge(into, more));
        }
        (into, more) => *into = more,
    }
}

fn exit_code(pod: &Pod) -> Option<i32> {
    let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
    Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)
}

#[tokio::test]
async fn a_pod_runs_to_its_end_and_what_it_printed_is_kept() {
    let machine = Machine::start().await;
    machine
        .run("good", "echo from $POD_IP; hostname; exit 0", json!({}))
        .await;
    machine
        .run("bad", "echo to be lost >&2; exit 3", json!({}))
        .await;
    let good = machine.phase("good", "Succeeded").await;
    let bad = machine.phase("bad", "Failed").await;
    assert_eq!((exit_code(&good), exit_code(&bad)), (Some(0), Some(3)));
    let address = good.status.as_ref().unwrap().pod_ip.clone().unwrap();
    assert!(address.starts_with("127.77.1."), "{address}");
    assert_eq!(
        machine.printed(&good),
        [format!("from {address}"), "good".to_owned()]
    );
    assert_eq!(machine.printed(&bad), ["to be lost"]);
}

#[tokio::test]
async fn volumes_follow_their_config_map() {
    let machine = Machine::start().await;
    let spec = json!({"spec": {
        "containers": [{"volumeMounts": [{"name": "config", "mountPath": "/etc/shop/config"}]}],
        "volumes": [{"name": "config", "configMap": {"name": "colours"}}],
    }});
    let script = "cat /etc/shop/config/wall; until grep -q red /etc/shop/config/wall; do sleep 0.02; done; echo seen";
    machine.run("painter", script, spec).await;
    let waits = |pod: &Pod| {
        let text = serde_json::to_string(&pod.status).unwrap();
        text.contains("configmap \\\"colours\\\" not found")
    };
    machine.when("painter", waits).await;
    let map = |colour: &str| -> ConfigMap {
        serde_json::from_value(
            json!({"metadata": {"name": "colours"}, "data": {"wall": format!("{colour}\n")}}),
        )
        .unwrap()
    };
    machine
        .maps
        .create(&PostParams::default(), &map("blue"))
        .await
        .unwrap();
    let running = machine.phase("painter", "Running").await;
    machine.prints(&running, "blue").await;
    let patch = Patch::Merge(json!({"data": {"wall": "red\n"}}));
    machine
        .maps
        .patch("colours", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let done = machine.phase("painter", "Succeeded").await;
    assert_eq!(machine.printed(&done), ["blue", "seen"]);
}

#[tokio::test]
async fn a_pod_that_is_deleted_is_asked_to_end_and_then_gone() {
    let machine = Machine::start().await;
    let script = "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let pod = machine
        .run(
            "server",
            script,
            json!({"spec": {"restartPolicy": "Always"}}),
        )
        .await;
    machine.phase("server", "Running").await;
    machine
        .pods
        .delete("server", &DeleteParams::default())
        .await
        .unwrap();
    let uid = pod.metadata.uid.clone().unwrap();
    let gone = await_condition(machine.pods.clone(), "server", conditions::is_deleted(&uid));
    tokio::time::timeout(LIMIT, gone).await.unwrap().unwrap();
    assert!(
        machine
            .pods
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn an_image_that_is_not_in_the_table_is_waited_for_in_plain_words() {
    let machine = Machine::start().await;
    let image = json!({"spec": {"containers": [{"image": "shop/cart:3"}]}});
    machine.run("cart", "true", image).await;
    let waits = |pod: &Pod| {
        let text = serde_json::to_string(&pod.status).unwrap();
        text.contains("ErrImageNeverPull") && text.contains("name = \\\"shop/cart\\\"")
    };
    machine.when("cart", waits).await;
}

#[tokio::test]
async fn probes_say_when_a_container_is_ready_and_when_it_is_sick() {
    let machine = Machine::start().await;
    let probes = json!({"spec": {"restartPolicy": "Always", "containers": [{
        "startupProbe": {"exec": {"command": ["test", "-f", "/tmp/up"]}, "periodSeconds": 1},
        "readinessProbe": {"exec": {"command": ["test", "-f", "/tmp/ready"]}, "periodSeconds": 1},
        "livenessProbe": {"exec": {"command": ["test", "!", "-f", "/tmp/sick"]}, "periodSeconds": 1, "failureThreshold": 1},
    }]}});
    let script = "trap 'exit 0' TERM; touch /tmp/up /tmp/ready; sleep 2; touch /tmp/sick; while :; do sleep 0.05; done";
    machine.run("patient", script, probes).await;
    let status = |pod: &Pod| {
        let status = pod.status.as_ref()?.container_statuses.as_ref()?.first()?;
        Some((status.ready, status.restart_count))
    };
    machine
        .when("patient", |pod| status(pod) == Some((false, 0)))
        .await;
    machine
        .when("patient", |pod| status(pod) == Some((true, 0)))
        .await;
    let restarted = machine
        .when("patient", |pod| {
            status(pod).is_some_and(|(_, count)| count == 1)
        })
        .await;
    let text = serde_json::to_string(&restarted.status).unwrap();
    assert!(text.contains("failed liveness probe"), "{text}");
}
