//! Operator and resolver processes with the arguments and variables of the manifests.

use std::{
    path::Path,
    process::{self, Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1::Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, Client, api::PostParams};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::idle_server::{IdleServer, POLL_INTERVAL, WAIT_TIMEOUT};

/// A loopback address that neither a `neap up` nor another test uses.
pub(crate) fn address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let [.., high, low] = process::id()
        .wrapping_mul(16)
        .wrapping_add(number)
        .to_be_bytes();
    format!("127.255.{high}.{low}")
}

/// A process that is killed on drop.
pub(crate) struct ChildProcess(Child);

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl ChildProcess {
    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.0.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits for the end; returns the exit code, or `None` if a signal ended it.
    pub(crate) async fn ended(mut self) -> Option<i32> {
        let ending = async {
            loop {
                if let Some(status) = self.0.try_wait().unwrap() {
                    return status.code();
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, ending).await.unwrap()
    }

    /// Sends SIGTERM, as a kubelet does; returns the exit code.
    async fn terminate(self) -> Option<i32> {
        self.signal("TERM");
        self.ended().await
    }
}

fn manifest(name: &str) -> Vec<Value> {
    let file = format!("../../deploy/idle/kustomize/{name}.yaml");
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    let documents = text.split("\n---\n");
    documents
        .map(|one| serde_saphyr::from_str(one).unwrap())
        .collect()
}

/// Arguments and variables of the first container of a manifest, and the container.
fn started(name: &str) -> (Vec<String>, Vec<(String, String)>, Value) {
    let container = &manifest(name)[0]["spec"]["template"]["spec"]["containers"][0];
    let words = |field: &str| {
        let words = container[field].as_array().cloned().unwrap_or_default();
        words
            .into_iter()
            .map(|word| word.as_str().unwrap().to_owned())
    };
    // The first word is the program.
    let arguments = words("command").skip(1).chain(words("args")).collect();
    let places = manifest("places")[0]["data"].as_object().unwrap().clone();
    let places = places
        .into_iter()
        .map(|(name, value)| (name, value.as_str().unwrap().to_owned()));
    let own = container["env"].as_array().unwrap().iter();
    let own = own.map(|one| {
        let text = |field: &str| one[field].as_str().unwrap().to_owned();
        (text("name"), text("value"))
    });
    (arguments, places.chain(own).collect(), container.clone())
}

/// Starts the process of a manifest at `address`, with additional variables.
pub(crate) fn start(
    server: &IdleServer,
    name: &str,
    address: &str,
    more: &[(&str, String)],
) -> (ChildProcess, Value) {
    let (arguments, variables, container) = started(name);
    let child = Command::new(env!("CARGO_BIN_EXE_neap"))
        .args(arguments)
        .env_clear()
        .envs(variables)
        .env("KUBECONFIG", server.kubeconfig())
        .env("ELASTI_LISTEN_ADDRESS", address)
        .envs(more.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    (ChildProcess(child.unwrap()), container)
}

/// Status and text of a response; `None` if the connection fails.
pub(crate) async fn get(address: &str, port: u64, path: &str) -> Option<(u16, String)> {
    let server = format!("{address}:{port}");
    let mut stream = TcpStream::connect(&server).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    let status = answer.split(' ').nth(1)?.parse().ok()?;
    Some((status, answer))
}

pub(crate) async fn until<F: Future<Output = bool>>(what: &str, is: impl Fn() -> F) {
    let looking = async {
        while !is().await {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let so = tokio::time::timeout(WAIT_TIMEOUT, looking).await;
    assert!(so.is_ok(), "never reached: {what}");
}

/// The container port of that name.
fn port(container: &Value, name: &str) -> u64 {
    let ports = container["ports"].as_array().unwrap();
    let found = ports.iter().find(|port| port["name"] == name);
    found.unwrap()["containerPort"].as_u64().unwrap()
}

/// Waits until both probes of a container succeed.
pub(crate) async fn probed(container: &Value, address: &str) {
    for probe in ["livenessProbe", "readinessProbe"] {
        let probe = &container[probe]["httpGet"];
        let port = port(container, probe["port"].as_str().unwrap());
        let path = probe["path"].as_str().unwrap();
        until(path, async || {
            matches!(get(address, port, path).await, Some((200, _)))
        })
        .await;
    }
}

pub(crate) async fn prepare(client: Client) {
    let create = PostParams::default();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = json!({"metadata": {"name": "elasti"}});
    let namespace = serde_json::from_value(namespace).unwrap();
    namespaces.create(&create, &namespace).await.unwrap();
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    let definition = serde_json::from_value(manifest("crd").remove(0)).unwrap();
    definitions.create(&create, &definition).await.unwrap();
}

#[tokio::test]
async fn the_processes_of_the_manifests_become_ready() {
    let server = IdleServer::bare();
    let client = server.client().await;
    prepare(client.clone()).await;
    let (here, there) = (&address(), &address());
    let more = [
        ("ELASTI_OPERATOR_ADDRESS", format!("{there}:8013")),
        ("ELASTI_DRAIN_SECONDS", "1".to_owned()),
    ];
    let (resolver, its) = start(&server, "resolver", here, &more);
    let (operator, theirs) = start(&server, "operator", there, &[]);
    probed(&its, here).await;
    probed(&theirs, there).await;
    // The internal endpoints need a token; /metrics does not.
    let internal = port(&its, "http-resolver");
    assert_eq!(get(here, internal, "/activity").await.unwrap().0, 401);
    let asked = port(&theirs, "custom-port");
    assert_eq!(get(there, asked, "/crd-cache").await.unwrap().0, 401);
    for (address, port) in [(here, internal), (there, port(&theirs, "http"))] {
        let (status, numbers) = get(address, port, "/metrics").await.unwrap();
        let calls = "\nneaptide_api_calls_total{verb=\"list\",code=\"200\"} ";
        assert!(status == 200 && numbers.contains(calls), "{numbers}");
    }
    let shared = port(&its, "reverse-proxy");
    assert_eq!(get(here, shared, "/").await.unwrap().0, 404);
    let leases: Api<Lease> = Api::namespaced(client, "elasti");
    until("led", async || {
        leases
            .get_opt("acf50383.truefoundry.io")
            .await
            .unwrap()
            .is_some()
    })
    .await;
    assert_eq!(operator.terminate().await, Some(0));
    assert_eq!(resolver.terminate().await, Some(0));
    server.stop();
}
