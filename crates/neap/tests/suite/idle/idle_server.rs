//! A running server, and the `neap` command configured for it.

use std::{path::Path, process::Command, time::Duration};

use k8s_openapi::api::core::v1::Service;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, PostParams},
};
use neap_load::server::Server;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{command_output::CommandOutput, kube_client};

const NEAP: &str = env!("CARGO_BIN_EXE_neap");
const EXAMPLE: &str = include_str!("../../../../../examples/idle/hello.yaml");
/// Bounds every wait.
pub(crate) const WAIT_TIMEOUT: Duration = Duration::from_mins(3);
/// Attempts of a command that fails until the CRD is served; each takes tens of milliseconds.
const MAX_ATTEMPTS: usize = 3_000;
/// Pause between two polls.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A running server.
pub(crate) struct IdleServer(Server);

impl IdleServer {
    /// Starts `neap up` with node and controllers.
    pub(crate) fn up() -> Self {
        Self(Server::start_whole(Path::new(NEAP), None).unwrap())
    }

    /// Starts the API server only.
    pub(crate) fn bare() -> Self {
        Self(Server::start(Path::new(NEAP), None).unwrap())
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        self.0.kubeconfig()
    }

    pub(crate) fn stop(self) {
        self.0.stop().unwrap();
    }

    /// Runs `neap` with a line of arguments separated by spaces.
    pub(crate) fn neap(&self, line: &str) -> CommandOutput {
        let output = Command::new(NEAP)
            .args(line.split_whitespace())
            .env_clear()
            .env("KUBECONFIG", self.kubeconfig())
            .output();
        output.unwrap().into()
    }

    /// Runs `neap` until ElastiServices are served, which is shortly after the start.
    pub(crate) fn neap_once_served(&self, line: &str) -> CommandOutput {
        let is_served = |output: &CommandOutput| !output.stderr.contains("NT-IDLE-0006");
        let mut outputs = (0..MAX_ATTEMPTS).map(|_| self.neap(line));
        let served = outputs.find(is_served);
        served.unwrap_or_else(|| panic!("ElastiServices are never served: {line}"))
    }

    pub(crate) fn json(&self, line: &str) -> Value {
        let said = self.neap(&format!("{line} -o json"));
        assert_eq!(said.code, Some(0), "{line}: {said:?}");
        serde_json::from_str(&said.stdout).unwrap()
    }

    /// Waits until `neap idle show` of the example fulfils `is`; returns its JSON.
    pub(crate) async fn shows(&self, is: impl Fn(&Value) -> bool) -> Value {
        self.shows_of("hello", is).await
    }

    /// The same of another service.
    pub(crate) async fn shows_of(&self, name: &str, is: impl Fn(&Value) -> bool) -> Value {
        let line = format!("idle show {name}");
        let polling = async {
            loop {
                let show = self.json(&line);
                if is(&show) {
                    return show;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        let shown = tokio::time::timeout(WAIT_TIMEOUT, polling).await;
        shown.unwrap_or_else(|_| panic!("the state was never reached: {}", self.json(&line)))
    }

    /// Waits until the ElastiService exists, then as [`Self::shows`].
    pub(crate) async fn shows_once_created(&self, is: impl Fn(&Value) -> bool) -> Value {
        self.is_created("hello").await;
        self.shows(is).await
    }

    /// Waits until the ElastiService exists.
    pub(crate) async fn is_created(&self, name: &str) {
        let line = format!("idle show {name}");
        let made = async {
            while self.neap(&line).code != Some(0) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, made).await.unwrap();
    }

    pub(crate) async fn client(&self) -> Client {
        kube_client::connect(self.kubeconfig()).await
    }

    /// Creates the objects of examples/idle/hello.yaml and waits until the pod is ready.
    pub(crate) async fn apply_example(&self) {
        let client = self.client().await;
        for document in EXAMPLE.split("\n---\n") {
            let object: DynamicObject = serde_saphyr::from_str(document).unwrap();
            let types = object.types.clone().unwrap();
            let (group, version) = types
                .api_version
                .split_once('/')
                .unwrap_or(("", &types.api_version));
            let named = kube::api::GroupVersionKind::gvk(group, version, &types.kind);
            let api: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk(&named));
            // ElastiServices are served shortly after the start.
            let created = async {
                while let Err(error) = api.create(&PostParams::default(), &object).await {
                    assert!(
                        matches!(&error, kube::Error::Api(status) if status.code == 404),
                        "{error}"
                    );
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            };
            tokio::time::timeout(WAIT_TIMEOUT, created).await.unwrap();
        }
        self.responds().await;
    }

    /// Waits until the example responds and its ElastiService is awake.
    async fn responds(&self) {
        let answering = async {
            while !self.get("hello", 8080).await.starts_with("HTTP/1.1 200 ") {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::time::timeout(WAIT_TIMEOUT, answering).await.unwrap();
        self.shows(|show| show["state"] == "awake").await;
    }

    /// Sends a request to the cluster IP of a service; empty if the connection fails.
    pub(crate) async fn get(&self, service: &str, port: u16) -> String {
        let services: Api<Service> = Api::namespaced(self.client().await, "default");
        let service = services.get(service).await.unwrap();
        let address = service.spec.unwrap().cluster_ip.unwrap();
        let response = async {
            let mut stream = TcpStream::connect((&*address, port)).await.ok()?;
            let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.ok()?;
            Some(answer)
        };
        let answer = tokio::time::timeout(WAIT_TIMEOUT, response).await.unwrap();
        answer.unwrap_or_default()
    }
}
