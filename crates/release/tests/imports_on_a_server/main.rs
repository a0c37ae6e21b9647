//! ImageStreams are imported on a real kube-apiserver, which `NEAP_RELEASE_SERVER` names by its kubeconfig. The
//! registry is in this process. `cargo xtask release` runs these tests; each has a namespace of its own.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "this is a test"
)]

use std::{env, time::Duration};

use http::Request;
use kube::{
    Api, Client as ApiClient, Config, CustomResourceExt,
    api::{Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use neap_emulators::{
    network::Network,
    registry::{Registry, Settings as RegistrySettings},
    system::Emulator,
};
use neap_kit::{client::Client, clock::Clock, context::Context, lease::Leadership, watch::Watches};
use neap_release::{
    image_stream::{
        api::{IMPORT_REQUESTED, ImageStream, NamedTagEventList},
        controller::component,
        facts::Settings,
    },
    oci::{
        client::{Options, RegistryClient},
        credentials::Credentials,
        reference::ImageRef,
    },
    payload_image::sample::{self, SampleImage},
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
    registry: RegistryClient,
    _tasks: JoinSet<()>,
    _alone: MutexGuard<'static, ()>,
}

impl Cluster {
    async fn open(name: &str) -> Self {
        let alone = ALONE.lock().await;
        let kubeconfig = env::var_os("NEAP_RELEASE_SERVER");
        let kubeconfig = kubeconfig.expect("run cargo xtask release, which starts the server");
        let file = Kubeconfig::read_from(kubeconfig).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(file, &options);
        let api = ApiClient::try_from(config.await.unwrap()).unwrap();
        let clock = Clock::system();
        let network = Network::default();
        let emulator = Registry::in_memory(RegistrySettings::default(), clock);
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
        let controller = component(&context, registry.clone(), Settings::default()).unwrap();
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

    fn streams(&self) -> Api<ImageStream> {
        Api::namespaced(self.api.clone(), &self.namespace)
    }

    async fn create(&self, tags: &[&str]) {
        let tags: Vec<_> = tags.iter().map(|name| tag(name)).collect();
        let stream = json!({"metadata": {"name": STREAM}, "spec": {"tags": tags}});
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
