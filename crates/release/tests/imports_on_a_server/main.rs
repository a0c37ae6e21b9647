//! ImageStreams are imported, failed imports are asked for again, and mirrors are cleaned up on a real kube-apiserver,
//! which `NEAP_RELEASE_SERVER` names by its kubeconfig. The registry is in this process. `cargo xtask release` runs
//! these tests; each has namespaces of its own.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "this is a test"
)]

use std::{env, time::Duration};

use http::Request;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client as ApiClient, Config, CustomResourceExt,
    api::{Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use neap_emulators::{
    network::Network,
    registry::{Access, Registry, Settings as RegistrySettings, User},
    system::Emulator,
};
use neap_kit::{
    apply::Writer, client::Client, clock::Clock, context::Context, lease::Leadership,
    watch::Watches,
};
use neap_release::{
    api::annotations::CONFIG,
    image_stream::{
        api::{IMPORT_REQUESTED, ImageStream, NamedTagEventList},
        controller::component,
        facts::Settings,
    },
    mirror_cleanup::{CleanupOptions, MirrorCleaner, sources::CleanupSources},
    oci::{
        client::{Options, RegistryClient},
        credentials::Credentials,
        reference::ImageRef,
    },
    payload_image::sample::{self, SampleImage},
    reimport::{ReimportOptions, Reimporter},
};
use serde_json::{Value, json};
use tokio::{
    sync::{Mutex, MutexGuard},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

const HOST: &str = "reg.example.com";
const STREAM: &str = "4.99";
/// How long anything may take.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Held by each test: a controller imports all streams of the server, and would import those of another test from
/// its own registry.
static ALONE: Mutex<()> = Mutex::const_new(());

/// A namespace whose streams are imported.
struct Cluster {
    api: ApiClient,
    namespace: String,
    clock: Clock,
    /// A client of the registry whose user may push.
    registry: RegistryClient,
    _tasks: JoinSet<()>,
    _alone: MutexGuard<'static, ()>,
}

impl Cluster {
    async fn open(name: &str) -> Self {
        Self::open_with(name, Access::Open, Credentials::none()).await
    }

    async fn open_with(name: &str, access: Access, pusher: Credentials) -> Self {
        let alone = ALONE.lock().await;
        let kubeconfig = env::var_os("NEAP_RELEASE_SERVER");
        let kubeconfig = kubeconfig.expect("run cargo xtask release, which starts the server");
        let file = Kubeconfig::read_from(kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(file, &options);
        let api = ApiClient::try_from(config.await.unwrap()).unwrap();
        let clock = Clock::system();
        let network = Network::default();
        let settings = RegistrySettings {
            access,
            ..RegistrySettings::default()
        };
        let emulator = Registry::in_memory(settings, clock);
        network.mount(HOST, Emulator::new(emulator, clock).transport());
        let http = Client::builder("registry", clock).transport(network.transport());
        let registry = RegistryClient::new(
            http.build().unwrap(),
            Credentials::none(),
            Options::default(),
        );
        let (watches, runner) = Watches::new(clock);
        let context = Context {
            client: api.clone(),
            watches,
            leadership: Leadership::without_election(clock),
            clock,
        };
        let controller = component(&context, &registry, Settings::default()).unwrap();
        let registry = registry.with_credentials(pusher);
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        tasks.spawn(controller.run(stop.clone()));
        tasks.spawn(runner.run(stop));
        let cluster = Self {
            api,
            namespace: format!("imports-{name}"),
            clock,
            registry,
            _tasks: tasks,
            _alone: alone,
        };
        cluster.install().await;
        cluster
    }

    /// The definition and the namespace. Another test may have installed the definition.
    async fn install(&self) {
        let definitions = Api::all(self.api.clone());
        match definitions
            .create(&PostParams::default(), &ImageStream::crd())
            .await
        {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => panic!("{error}"),
        }
        let namespace = json!({"metadata": {"name": self.namespace}});
        let namespace: k8s_openapi::api::core::v1::Namespace =
            serde_json::from_value(namespace).unwrap();
        let namespaces = Api::all(self.api.clone());
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .unwrap();
    }

    async fn until<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let waiting = async {
            loop {
                if let Some(found) = look().await {
                    return found;
                }
                self.clock.sleep(POLL_INTERVAL).await;
            }
        };
        let found = self.clock.within(TIMEOUT, waiting).await;
        found.unwrap_or_else(|| panic!("not in time: {what}"))
    }

    /// Pushes an image that is different for each `content`; its digest.
    async fn push(&self, tag: &str, content: &str) -> String {
        let image = SampleImage::new("cli", &[], &[("file", content)]);
        let built = image.build().unwrap();
        let target: ImageRef = format!("{HOST}/ocp/cli:{tag}").parse().unwrap();
        sample::push(&self.registry, &built, &target).await.unwrap();
        built.manifest.digest.to_string()
    }

    async fn create_secret(&self, name: &str, kind: &str, data: Value) {
        let secret = json!({"metadata": {"name": name}, "type": kind, "stringData": data});
        let secret: Secret = serde_json::from_value(secret).unwrap();
        let secrets = Api::namespaced(self.api.clone(), &self.namespace);
        let created = secrets.create(&PostParams::default(), &secret).await;
        created.unwrap();
    }

    fn streams(&self) -> Api<ImageStream> {
        Api::namespaced(self.api.clone(), &self.namespace)
    }

    async fn create(&self, tags: &[&str]) {
        let tags: Vec<_> = tags.iter().map(|name| tag(name)).collect();
        self.create_stream(json!({"metadata": {"name": STREAM}, "spec": {"tags": tags}}))
            .await;
    }

    async fn create_stream(&self, stream: Value) {
        let stream: ImageStream = serde_json::from_value(stream).unwrap();
        let streams = self.streams();
        self.until("the kind is served", async || {
            match streams.create(&PostParams::default(), &stream).await {
                Ok(_) => Some(()),
                Err(kube::Error::Api(status)) if status.code == 404 => None,
                Err(error) => panic!("{error}"),
            }
        })
        .await;
    }

    async fn tag(&self, name: &str) -> Option<NamedTagEventList> {
        let stream = self.streams().get(STREAM).await.unwrap();
        stream.status?.tag(name).cloned()
    }

    /// The images of a tag, once the newest is this one.
    async fn images_once(&self, name: &str, newest: &str) -> Vec<String> {
        self.until("the tag has the image", async || {
            let items = self.tag(name).await?.items;
            let images: Vec<_> = items.into_iter().map(|item| item.image).collect();
            images
                .first()
                .is_some_and(|first| first == newest)
                .then_some(images)
        })
        .await
    }

    async fn version(&self) -> String {
        let stream = self.streams().get(STREAM).await.unwrap();
        stream.metadata.resource_version.unwrap()
    }

    /// Sets the image of one tag, as `kubectl patch --type=json` does it.
    async fn set_tag(&self, version: &str, place: usize, image: &str) -> Result<ImageStream, u16> {
        let patch = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": format!("/spec/tags/{place}/from/name"), "value": format!("{HOST}/ocp/cli:{image}")},
        ]);
        let namespace = &self.namespace;
        let path =
            format!("/apis/image.openshift.io/v1/namespaces/{namespace}/imagestreams/{STREAM}");
        let request = Request::patch(path)
            .header("content-type", "application/json-patch+json")
            .body(patch.to_string().into_bytes());
        match self.api.request(request.unwrap()).await {
            Ok(stream) => Ok(stream),
            Err(kube::Error::Api(status)) => Err(status.code),
            Err(error) => panic!("{error}"),
        }
    }
}

fn tag(name: &str) -> Value {
    json!({"name": name, "from": {"kind": "DockerImage", "name": format!("{HOST}/ocp/cli:{name}")}})
}

#[tokio::test]
async fn tags_are_imported_and_one_that_was_missing_when_it_is_asked_for() {
    let cluster = Cluster::open("missing").await;
    let first = cluster.push("v1", "one").await;
    cluster.create(&["v1", "v2"]).await;
    cluster.images_once("v1", &first).await;
    let failed = cluster
        .until("the missing image is a condition", async || {
            cluster
                .tag("v2")
                .await
                .filter(NamedTagEventList::import_failed)
        })
        .await;
    let condition = failed.import_condition().unwrap();
    assert_eq!(condition.reason, "NotFound");
    let late = cluster.push("v2", "late").await;
    let asked = json!({"v2": cluster.clock.now().to_string()}).to_string();
    let patch = json!({"metadata": {"annotations": {IMPORT_REQUESTED: asked}}});
    let streams = cluster.streams();
    streams
        .patch(STREAM, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    cluster.images_once("v2", &late).await;
    let stream = cluster.streams().get(STREAM).await.unwrap();
    let summary = stream.status.unwrap().summary.unwrap();
    assert_eq!((summary.tags, summary.imports_failing), (2, 0));
}

#[tokio::test]
async fn one_tag_is_set_under_a_precondition_and_the_tags_of_other_writers_stay() {
    let cluster = Cluster::open("precondition").await;
    let mut pushed = Vec::new();
    for (name, content) in [("v1", "1"), ("v2", "2"), ("v3", "3"), ("v4", "4")] {
        pushed.push(cluster.push(name, content).await);
    }
    cluster.create(&["v1", "v2"]).await;
    cluster.images_once("v1", &pushed[0]).await;
    cluster.images_once("v2", &pushed[1]).await;
    let both_read = cluster.version().await;
    cluster.set_tag(&both_read, 0, "v3").await.unwrap();
    let refused = cluster.set_tag(&both_read, 1, "v4").await.unwrap_err();
    assert!([409, 422].contains(&refused), "{refused}");
    let images = cluster.images_once("v1", &pushed[2]).await;
    assert_eq!(images, [pushed[2].clone(), pushed[0].clone()]);
    assert_eq!(cluster.images_once("v2", &pushed[1]).await.len(), 1);
    cluster
        .until("no other write comes between", async || {
            let version = cluster.version().await;
            cluster.set_tag(&version, 1, "v4").await.ok()
        })
        .await;
    cluster.images_once("v2", &pushed[3]).await;
}

#[tokio::test]
async fn failed_imports_are_asked_for_again() {
    let cluster = Cluster::open("reimport").await;
    let config = json!({"name": "4.99.0-0.nightly", "to": "release"}).to_string();
    cluster
        .create_stream(json!({
            "metadata": {"name": STREAM, "annotations": {CONFIG: config}},
            "spec": {"tags": [tag("v1"), tag("v2")]},
        }))
        .await;
    for name in ["v1", "v2"] {
        let failed = async || {
            cluster
                .tag(name)
                .await
                .filter(NamedTagEventList::import_failed)
        };
        cluster
            .until("the missing image is a condition", failed)
            .await;
    }
    let late = cluster.push("v1", "late").await;
    cluster.push("v2", "late").await;
    let leadership = Leadership::without_election(cluster.clock);
    let writer = Writer::new(cluster.api.clone(), "reimport", leadership, cluster.clock);
    let options = ReimportOptions {
        namespaces: vec![cluster.namespace.clone()],
        ..ReimportOptions::default()
    };
    let mut reimporter = Reimporter::new(writer, cluster.clock, options);
    let report = reimporter.pass(&cluster.api).await.unwrap();
    assert_eq!((report.asked.len(), report.refused), (2, 0), "{report:?}");
    cluster.images_once("v1", &late).await;
    cluster.images_once("v2", &late).await;
    let report = reimporter.pass(&cluster.api).await.unwrap();
    assert_eq!((report.failed, report.asked.len()), (0, 0), "{report:?}");
}

fn config_json(user: &str) -> String {
    json!({"auths": {HOST: {"username": user, "password": "right"}}}).to_string()
}

#[tokio::test]
async fn pull_secrets_open_private_repositories_and_other_secrets_do_not() {
    let access = || {
        let puller = User::new("puller", "right").pulls("ocp/*");
        Access::Token(vec![puller, User::new("pusher", "right").pushes("ocp/*")])
    };
    let pusher = || Credentials::parse(&config_json("pusher")).unwrap();
    {
        let cluster = Cluster::open_with("opaque", access(), pusher()).await;
        cluster.push("v1", "one").await;
        let data = json!({".dockerconfigjson": config_json("puller")});
        cluster.create_secret("pull", "Opaque", data).await;
        cluster.create(&["v1"]).await;
        let failed = async || {
            cluster
                .tag("v1")
                .await
                .filter(NamedTagEventList::import_failed)
        };
        let failed = cluster.until("the import is refused", failed).await;
        let reason = &failed.import_condition().unwrap().reason;
        assert!(
            ["Unauthorized", "Forbidden"].contains(&reason.as_str()),
            "{reason}"
        );
    }
    let cluster = Cluster::open_with("private", access(), pusher()).await;
    let pushed = cluster.push("v1", "one").await;
    let data = json!({".dockerconfigjson": config_json("puller")});
    cluster
        .create_secret("pull", "kubernetes.io/dockerconfigjson", data)
        .await;
    cluster
        .create_secret("other", "Opaque", json!({"key": "value"}))
        .await;
    cluster.create(&["v1"]).await;
    cluster.images_once("v1", &pushed).await;
}

#[tokio::test]
async fn releases_that_no_stream_has_are_deleted_from_their_mirror() {
    let access = Access::Basic(vec![User::new("pusher", "right").pushes("ocp/*")]);
    let pusher = Credentials::parse(&config_json("pusher")).unwrap();
    let cluster = Cluster::open_with("mirrors", access, pusher).await;
    for name in ["4.99.0", "4.98.0"] {
        cluster.push(name, name).await;
    }
    let mirror: ImageRef = format!("{HOST}/ocp/cli").parse().unwrap();
    let config = json!({
        "name": "4-stable", "as": "Stable", "alternateImageRepository": mirror.to_string(),
    });
    cluster
        .create_stream(json!({
            "metadata": {"name": "release", "annotations": {CONFIG: config.to_string()}},
            "spec": {"tags": [{"name": "4.99.0"}]},
        }))
        .await;
    let data = json!({"config.json": config_json("pusher")});
    cluster.create_secret("mirror", "Opaque", data).await;
    let sources = CleanupSources {
        namespaces: vec![cluster.namespace.clone()],
        credentials_namespace: cluster.namespace.clone(),
        credentials_secret: "mirror".to_owned(),
    };
    let mut cleaner = MirrorCleaner::new(CleanupOptions {
        minimum_age: Duration::ZERO,
        ..CleanupOptions::default()
    });
    let registry = cluster.registry.with_credentials(Credentials::none());
    let report = cleaner.pass(&cluster.api, &sources, &registry).await;
    let report = report.unwrap();
    assert_eq!(
        report.deleted,
        [format!("{HOST}/ocp/cli:4.98.0")],
        "{report:?}"
    );
    assert_eq!(cluster.registry.tags(&mirror).await.unwrap(), ["4.99.0"]);
}
