//! A `neap up` with the example of releases, and the commands of its users.

use std::{ffi::OsStr, fs, process::Command, time::Duration};

use k8s_openapi::{NamespaceResourceScope, api::core::v1::ConfigMap};
use kube::{
    Api, Client, Resource,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams},
};
use neap_kit::{apply::Object, clock::Clock};
use neap_release::{api::ReleasePayload, image_stream::api::ImageStream, payload::Phase};
use serde_json::{Value, json};

use crate::{
    command_output::CommandOutput,
    kube_client::connect,
    up::sandbox::{RunningServer, Sandbox},
};

const EXAMPLE: &str = include_str!("../../../../../examples/release/release.yaml");
/// The address of the registry in the example.
const EXAMPLE_REGISTRY: &str = "127.1.0.5:5000";
pub(crate) const NAMESPACE: &str = "releases";
pub(crate) const STREAM: &str = "4.21.0-0.nightly";
const SOURCE: &str = "4.21-latest";
/// Bounds every wait; generous for a busy machine.
const WAIT_TIMEOUT: Duration = Duration::from_mins(3);
/// The pause between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct ReleaseServer {
    sandbox: Sandbox,
    server: RunningServer,
    client: Client,
    clock: Clock,
}

impl ReleaseServer {
    /// A server without releases.
    pub(crate) async fn empty() -> Self {
        let sandbox = Sandbox::new();
        let server = sandbox.up(&[]);
        let client = connect(&server.kubeconfig_path()).await;
        Self {
            sandbox,
            server,
            client,
            clock: Clock::system(),
        }
    }

    /// A file with the example.
    pub(crate) fn example_file(&self) -> String {
        let file = self.sandbox.path("release.yaml");
        fs::write(&file, EXAMPLE.replace(EXAMPLE_REGISTRY, self.registry())).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// A server with the objects of the example.
    pub(crate) async fn up() -> Self {
        let started = Self::empty().await;
        let text = EXAMPLE.replace(EXAMPLE_REGISTRY, started.registry());
        for document in text.split("\n---\n") {
            started
                .create(&serde_saphyr::from_str(document).unwrap())
                .await;
        }
        started
    }

    pub(crate) fn stop(self) {
        let stopped = self.server.stop("TERM");
        assert_eq!(stopped.code, Some(0), "{stopped:?}");
    }

    /// The address of the registry.
    pub(crate) fn registry(&self) -> &str {
        let transcript = self.server.transcript();
        let (_, rest) = transcript.split_once(" registry ").unwrap();
        let (_, rest) = rest.split_once("http://").unwrap();
        rest.split_whitespace().next().unwrap()
    }

    /// Runs `neap` in the namespace of the example.
    pub(crate) fn neap(&self, arguments: &[&str]) -> CommandOutput {
        self.neap_anywhere(&[arguments, &["-n", NAMESPACE]].concat())
    }

    pub(crate) fn neap_anywhere(&self, arguments: &[&str]) -> CommandOutput {
        self.command(OsStr::new(env!("CARGO_BIN_EXE_neap")), arguments)
    }

    /// Runs a client in the namespace of the example.
    pub(crate) fn run(&self, program: &OsStr, arguments: &[&str]) -> CommandOutput {
        self.command(program, &[&["-n", NAMESPACE], arguments].concat())
    }

    fn command(&self, program: &OsStr, arguments: &[&str]) -> CommandOutput {
        Command::new(program)
            .args(arguments)
            .env_clear()
            .env("HOME", self.sandbox.home())
            .env("TMPDIR", self.sandbox.temporary())
            .env("KUBECONFIG", self.server.kubeconfig_path())
            .output()
            .unwrap()
            .into()
    }

    /// Creates an object, once its kind is served.
    pub(crate) async fn create(&self, object: &Value) {
        let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
        let types = object.types.clone().unwrap();
        let (group, version) = types
            .api_version
            .split_once('/')
            .unwrap_or(("", &types.api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        self.until("the kind is served", async || {
            match api.create(&PostParams::default(), &object).await {
                Ok(_) => Some(()),
                Err(kube::Error::Api(status)) if status.code == 404 => None,
                Err(error) => panic!("{error}"),
            }
        })
        .await;
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    pub(crate) async fn get<K>(&self, name: &str) -> K
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        self.api::<K>().get(name).await.unwrap()
    }

    pub(crate) async fn until<T>(&self, what: &str, find: impl AsyncFn() -> Option<T>) -> T {
        let waited = async {
            loop {
                if let Some(found) = find().await {
                    return found;
                }
                self.clock.sleep(POLL_INTERVAL).await;
            }
        };
        let found = self.clock.within(WAIT_TIMEOUT, waited).await;
        found.unwrap_or_else(|| {
            let list = self.neap(&["release", "list"]);
            let streams = self.neap(&["release", "streams"]);
            panic!("never reached: {what}: {list:?} {streams:?}")
        })
    }

    /// Waits for a release of the stream in this phase that is not one of `known`; its name.
    pub(crate) async fn release_in(&self, phase: Phase, known: &[&str]) -> String {
        let payloads: Api<ReleasePayload> = self.api();
        let what = format!("a release is {phase}");
        self.until(&what, async || {
            let all = payloads.list(&ListParams::default()).await.ok()?;
            let mut names = all
                .items
                .iter()
                .filter(|one| Phase::of_payload(one) == phase)
                .filter_map(|one| one.metadata.name.clone());
            names.find(|name| !known.contains(&name.as_str()))
        })
        .await
    }

    /// Waits until a release is in this phase.
    pub(crate) async fn release_is(&self, name: &str, phase: Phase) {
        let payloads: Api<ReleasePayload> = self.api();
        let what = format!("{name} is {phase}");
        self.until(&what, async || {
            let found = payloads.get_opt(name).await.unwrap()?;
            (Phase::of_payload(&found) == phase).then_some(())
        })
        .await;
    }

    /// The release that is published as 4.21.
    pub(crate) async fn published(&self) -> Option<String> {
        let target: ImageStream = self.get("release").await;
        let from = target.spec.tag("4.21")?.from.clone()?;
        Some(from.name)
    }

    /// Waits until a release is published.
    pub(crate) async fn publishes(&self, name: &str) {
        self.until("the release is published", async || {
            self.published().await.filter(|it| it == name).map(drop)
        })
        .await;
    }

    /// Waits until the target has this many releases; their names.
    pub(crate) async fn kept(&self, count: usize) -> Vec<String> {
        self.until("old releases are removed", async || {
            let target: ImageStream = self.get("release").await;
            let tags = target.spec.tags.into_iter().map(|tag| tag.name);
            let names: Vec<_> = tags.filter(|name| name.starts_with(STREAM)).collect();
            (names.len() == count).then_some(names)
        })
        .await
    }

    /// Adds jobs to those that Prow knows.
    pub(crate) async fn add_jobs(&self, jobs: &[(&str, &str)]) {
        let maps: Api<ConfigMap> = self.api();
        let mut map = maps.get("prow-jobs").await.unwrap();
        let periodics = jobs.iter().map(|(name, script)| {
            let container =
                json!({"name": "test", "image": "ubuntu", "command": ["sh", "-c", script]});
            json!({
                "name": name, "agent": "kubernetes", "cluster": "build01", "interval": "24h",
                "spec": {"containers": [container]},
            })
        });
        let text = json!({"periodics": periodics.collect::<Vec<_>>()}).to_string();
        map.data
            .get_or_insert_default()
            .insert("more.yaml".to_owned(), text);
        maps.replace("prow-jobs", &PostParams::default(), &map)
            .await
            .unwrap();
    }

    /// Applies a configuration of the stream with `neap release apply`.
    pub(crate) fn configure(&self, config: &Value) {
        let folder = self.sandbox.path("configs");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join(format!("{SOURCE}.json")), config.to_string()).unwrap();
        let applied = self.neap(&["release", "apply", folder.to_str().unwrap()]);
        assert_eq!(applied.code, Some(0), "{applied:?}");
    }

    /// Gives the component cli another image each time.
    pub(crate) async fn change_image(&self, number: usize) {
        let images = ["cluster-version-operator", "cli"];
        let image = images[number % images.len()];
        let name = format!("{}/sample/{image}:v1", self.registry());
        let streams: Api<ImageStream> = self.api();
        self.until("the image is changed", async || {
            let mut source = streams.get(SOURCE).await.unwrap();
            let tag = source.spec.tags.iter_mut().find(|tag| tag.name == "cli");
            tag?.from.as_mut()?.name.clone_from(&name);
            match streams
                .replace(SOURCE, &PostParams::default(), &source)
                .await
            {
                Ok(_) => Some(()),
                Err(kube::Error::Api(status)) if status.is_conflict() => None,
                Err(error) => panic!("{error}"),
            }
        })
        .await;
    }
}
