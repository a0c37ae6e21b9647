//! A real server with the definitions of releases, both controllers as a process, and what Jobs, Prow and users
//! do. Time is real.

use std::{
    fs::File,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use k8s_openapi::{
    NamespaceResourceScope,
    api::{batch::v1::Job, core::v1::Namespace},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config, CustomResourceExt, Resource,
    api::{ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use neap_kit::{apply::Object, clock::Clock};
use neap_release::{
    api::{ProwJob, ReleasePayload, annotations, release_payload_definition},
    image_stream::api::ImageStream,
    payload::Phase,
};
use serde_json::{Value, json};

/// Names the kubeconfig of a disposable server.
const SERVER: &str = "NEAP_RELEASE_SERVER";
const REGISTRY: &str = "reg.example";
pub(crate) const SOURCE: &str = "4.21-art-latest";
pub(crate) const STREAM: &str = "4.21.0-0.nightly";
const WAIT_TIMEOUT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) struct Releases {
    client: Client,
    namespace: String,
    pub(crate) clock: Clock,
    controllers: Child,
    folder: tempfile::TempDir,
    kubeconfig: PathBuf,
}

impl Drop for Releases {
    fn drop(&mut self) {
        let _ = self.controllers.kill();
        let _ = self.controllers.wait();
    }
}

impl Releases {
    /// Controllers for a namespace of their own, whose Prow knows these jobs.
    pub(crate) async fn start(namespace: &str, jobs: &[&str]) -> Self {
        Self::start_with(namespace, jobs, &[]).await
    }

    /// The same with further arguments of the controllers.
    pub(crate) async fn start_with(namespace: &str, jobs: &[&str], more: &[&str]) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let kubeconfig = PathBuf::from(std::env::var_os(SERVER).expect(SERVER));
        let file = Kubeconfig::read_from(&kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(file, &options)
            .await
            .unwrap();
        let client = Client::try_from(config).unwrap();
        let clock = Clock::system();
        define(&client, clock).await;
        let object = json!({"metadata": {"name": namespace}});
        let object: Namespace = serde_json::from_value(object).unwrap();
        let parameters = PostParams::default();
        Api::all(client.clone())
            .create(&parameters, &object)
            .await
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let periodics = jobs.iter().map(|name| {
            json!({"name": name, "agent": "kubernetes", "cluster": "build01", "interval": "24h",
                "spec": {"containers": [{"name": "test", "image": "test"}]}})
        });
        let periodics = json!({"periodics": periodics.collect::<Vec<_>>()}).to_string();
        let prow = folder.path().join("jobs.yaml");
        std::fs::write(&prow, periodics).unwrap();
        let log = File::create(folder.path().join("controllers.log")).unwrap();
        let controllers = Command::new(env!("CARGO_BIN_EXE_neap"))
            .args([
                "release",
                "controller",
                "--with-payloads",
                "--listen",
                "127.0.0.1:0",
            ])
            .args(["--namespace", namespace, "--watch-namespace", namespace])
            .args([
                "--release-namespace",
                namespace,
                "--job-namespace",
                namespace,
            ])
            .args(["--registry", REGISTRY, "--job-config"])
            .arg(prow)
            .args(more)
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self {
            client,
            namespace: namespace.to_owned(),
            clock,
            controllers,
            folder,
            kubeconfig,
        }
    }

    /// Runs a command of a user in the namespace, and returns what it prints.
    pub(crate) fn neap(&self, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_neap"))
            .args(arguments)
            .args(["-n", &self.namespace, "--kubeconfig"])
            .arg(&self.kubeconfig)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success(),
            "{arguments:?}: {printed}{complaint}"
        );
        printed
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Object + Resource<Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Asks until there is an answer.
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
            let log = self.folder.path().join("controllers.log");
            let log = std::fs::read_to_string(log).unwrap_or_default();
            panic!("never reached: {what}; the log of the controllers:\n{log}")
        })
    }

    /// Creates an ImageStream with its status.
    pub(crate) async fn declare(&self, stream: Value) {
        let mut object: ImageStream = serde_json::from_value(stream).unwrap();
        let status = object.status.take();
        let api: Api<ImageStream> = self.api();
        let created = api.create(&PostParams::default(), &object).await.unwrap();
        if let Some(status) = status {
            let name = created.metadata.name.unwrap();
            let patch = Patch::Merge(json!({"status": status}));
            api.patch_status(&name, &PatchParams::default(), &patch)
                .await
                .unwrap();
        }
    }

    /// A nightly stream with one image.
    pub(crate) async fn declare_nightly(&self, fields: Value) {
        self.declare(
            json!({"apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
            "metadata": {"name": "release"}, "spec": {}}),
        )
        .await;
        let mut config = json!({"name": STREAM, "to": "release"});
        if let (Value::Object(config), Value::Object(fields)) = (&mut config, fields) {
            config.extend(fields);
        }
        let from = json!({"kind": "DockerImage", "name": format!("{REGISTRY}/ocp/etcd:latest")});
        self.declare(
            json!({"apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
            "metadata": {"name": SOURCE, "annotations": {annotations::CONFIG: config.to_string()}},
            "spec": {"tags": [{"name": "etcd", "from": from}]},
            "status": {"tags": [imported("etcd", 1)]}}),
        )
        .await;
    }

    /// Another image of etcd is imported.
    pub(crate) async fn new_image(&self, number: u32) {
        let patch = Patch::Merge(json!({"status": {"tags": [imported("etcd", number)]}}));
        let api: Api<ImageStream> = self.api();
        api.patch_status(SOURCE, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    pub(crate) async fn phase(&self, name: &str) -> Option<Phase> {
        let payload = self.api::<ReleasePayload>().get_opt(name).await.unwrap()?;
        Some(Phase::of_payload(&payload))
    }

    pub(crate) async fn is(&self, name: &str, phase: Phase) {
        let what = format!("{name} is {phase}");
        self.until(&what, async || {
            (self.phase(name).await? == phase).then_some(())
        })
        .await;
    }

    /// The release that is none of `known`, once its Job is there.
    pub(crate) async fn next_release(&self, known: &[&str]) -> String {
        let jobs: Api<Job> = self.api();
        self.until("a release is assembled", async || {
            let all = jobs.list(&ListParams::default()).await.unwrap().items;
            let mut names = all.into_iter().filter_map(|job| job.metadata.name);
            names.find(|name| !known.contains(&name.as_str()))
        })
        .await
    }

    pub(crate) async fn end_job(&self, name: &str) {
        let now = self.now();
        let condition = |type_: &str| {
            json!({"type": type_, "status": "True", "reason": "CompletionsReached", "message": "",
                "lastTransitionTime": now, "lastProbeTime": now})
        };
        let conditions = ["SuccessCriteriaMet", "Complete"].map(condition);
        let status = json!({"startTime": now, "completionTime": now, "succeeded": 1, "conditions": conditions});
        let patch = Patch::Merge(json!({"status": status}));
        let api: Api<Job> = self.api();
        api.patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// Ends a run, once it is launched.
    pub(crate) async fn end_run(&self, name: &str, state: &str) {
        let now = self.now();
        let status =
            json!({"state": state, "startTime": now, "completionTime": now, "url": "https://prow"});
        let patch = Patch::Merge(json!({"status": status}));
        let api: Api<ProwJob> = self.api();
        self.until(&format!("{name} is launched"), async || {
            api.patch(name, &PatchParams::default(), &patch).await.ok()
        })
        .await;
    }

    /// The tags of the target, and what they stand for.
    pub(crate) async fn tags(&self) -> Vec<(String, Option<String>)> {
        let target = self.api::<ImageStream>().get("release").await.unwrap();
        let tags = target.spec.tags.into_iter();
        tags.map(|tag| (tag.name, tag.from.map(|from| from.name)))
            .collect()
    }

    /// What has been written so far: the version of each object.
    pub(crate) async fn versions(&self) -> Vec<String> {
        let parameters = ListParams::default();
        let streams = self
            .api::<ImageStream>()
            .list(&parameters)
            .await
            .unwrap()
            .items;
        let payloads = self
            .api::<ReleasePayload>()
            .list(&parameters)
            .await
            .unwrap()
            .items;
        let streams = streams
            .into_iter()
            .filter_map(|it| it.metadata.resource_version);
        let payloads = payloads
            .into_iter()
            .filter_map(|it| it.metadata.resource_version);
        streams.chain(payloads).collect()
    }

    fn now(&self) -> String {
        let now = self.clock.now();
        let now = jiff::Timestamp::from_second(now.as_second()).unwrap();
        now.to_string()
    }
}

pub(crate) fn imported(tag: &str, number: u32) -> Value {
    let digest = format!("sha256:{number:064}");
    let item = json!({
        "created": "2026-01-02T03:00:00Z", "image": digest, "generation": 1,
        "dockerImageReference": format!("{REGISTRY}/ocp/{tag}@{digest}"),
    });
    json!({"tag": tag, "items": [item]})
}

/// Installs the definitions, unless another test has.
async fn define(client: &Client, clock: Clock) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let prow = neap_emulators::prow::definitions().unwrap();
    let ours = [ImageStream::crd(), release_payload_definition()];
    for definition in prow.into_iter().chain(ours) {
        let name = definition.metadata.name.clone().unwrap();
        match definitions
            .create(&PostParams::default(), &definition)
            .await
        {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => panic!("{name}: {error}"),
        }
        let is_served = async || {
            let found = definitions.get(&name).await.unwrap();
            let conditions = found.status.and_then(|status| status.conditions);
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|it| it.type_ == "Established" && it.status == "True")
        };
        while !is_served().await {
            clock.sleep(POLL_INTERVAL).await;
        }
    }
}
