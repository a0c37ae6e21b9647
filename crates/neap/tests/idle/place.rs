//! A `neap up`, and `neap` beside it.

use std::{path::Path, process::Command, time::Duration};

use k8s_openapi::api::core::v1::Service;
use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use neap_load::server::Server;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const NEAP: &str = env!("CARGO_BIN_EXE_neap");
const EXAMPLE: &str = include_str!("../../../../examples/idle/hello.yaml");
/// Nothing here takes longer unless it is stuck.
pub(crate) const STUCK: Duration = Duration::from_mins(3);
/// So often a command is tried that may come too early; each takes tens of milliseconds.
const TRIES: usize = 3_000;
/// One looks again after this time.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// A running server.
pub(crate) struct Place(Server);

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Place {
    /// All of `neap up`.
    pub(crate) fn up() -> Self {
        Self(Server::start_whole(Path::new(NEAP), None).unwrap())
    }

    /// Its API alone.
    pub(crate) fn bare() -> Self {
        Self(Server::start(Path::new(NEAP), None).unwrap())
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        self.0.kubeconfig()
    }

    pub(crate) fn stop(self) {
        self.0.stop().unwrap();
    }

    /// A command line of `neap`, whose words are parted by spaces.
    pub(crate) fn neap(&self, line: &str) -> Said {
        let output = Command::new(NEAP)
            .args(line.split_whitespace())
            .env_clear()
            .env("KUBECONFIG", self.kubeconfig())
            .output()
            .unwrap();
        Said {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The same once the kind is served, which it is a moment after the start.
    pub(crate) fn neap_once_served(&self, line: &str) -> Said {
        let is_served = |said: &Said| !said.stderr.contains("NT-IDLE-0006");
        let mut said = (0..TRIES).map(|_| self.neap(line));
        let served = said.find(is_served);
        served.unwrap_or_else(|| panic!("it is never served: {line}"))
    }

    pub(crate) fn json(&self, line: &str) -> Value {
        let said = self.neap(&format!("{line} -o json"));
        assert_eq!(said.code, Some(0), "{line}: {said:?}");
        serde_json::from_str(&said.stdout).unwrap()
    }

    /// What is shown of the sample once it is so.
    pub(crate) async fn shows(&self, is: impl Fn(&Value) -> bool) -> Value {
        let looking = async {
            loop {
                let show = self.json("idle show hello");
                if is(&show) {
                    return show;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        let shown = tokio::time::timeout(STUCK, looking).await;
        shown.unwrap_or_else(|_| panic!("it never was so: {}", self.json("idle show hello")))
    }

    /// The same of one that somebody is about to make.
    pub(crate) async fn shows_once_made(&self, is: impl Fn(&Value) -> bool) -> Value {
        let made = async {
            while self.neap("idle show hello").code != Some(0) {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(STUCK, made).await.unwrap();
        self.shows(is).await
    }

    pub(crate) async fn client(&self) -> Client {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let file = Kubeconfig::read_from(self.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(file, &options).await;
        Client::try_from(config.unwrap()).unwrap()
    }

    /// Does what `kubectl apply -f examples/idle/hello.yaml` does, and waits until its pod is ready.
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
            // The kind of the last one is served a moment after the start.
            let created = async {
                while let Err(error) = api.create(&PostParams::default(), &object).await {
                    assert!(
                        matches!(&error, kube::Error::Api(status) if status.code == 404),
                        "{error}"
                    );
                    tokio::time::sleep(LOOK).await;
                }
            };
            tokio::time::timeout(STUCK, created).await.unwrap();
        }
        self.answers().await;
    }

    /// Waits until the sample is looked after and answers.
    async fn answers(&self) {
        let answering = async {
            while !self.get("hello", 8080).await.starts_with("HTTP/1.1 200 ") {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(STUCK, answering).await.unwrap();
        self.shows(|show| show["state"] == "awake").await;
    }

    /// What a request through the address of a service is answered; nothing if nobody is there.
    pub(crate) async fn get(&self, service: &str, port: u16) -> String {
        let services: Api<Service> = Api::namespaced(self.client().await, "default");
        let service = services.get(service).await.unwrap();
        let address = service.spec.unwrap().cluster_ip.unwrap();
        let asked = async {
            let mut stream = TcpStream::connect((&*address, port)).await.ok()?;
            let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.ok()?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.ok()?;
            Some(answer)
        };
        let answer = tokio::time::timeout(STUCK, asked).await.unwrap();
        answer.unwrap_or_default()
    }
}
