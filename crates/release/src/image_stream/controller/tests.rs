//! The controller against an API server and a registry, both in memory, with faults.

use http::{Method, StatusCode};
use kube::{
    Api, Client as ApiClient, CustomResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use neap_emulators::{
    fault_book::CallMatcher,
    network::Network,
    registry::{Access, Registry, Settings as RegistrySettings, User},
    system::Emulator,
};
use neap_kit::{
    client::{Client, Fault, Refusal},
    clock::Clock,
    lease::Leadership,
    watch::Watches,
};
use neap_pocket::{Options as PocketOptions, Pocket, environment::Environment};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    image_stream::api::IMPORT_REQUESTED,
    oci::{
        client::Options,
        credentials::{Credentials, Secret},
        manifest::Manifest,
        reference::ImageRef,
    },
    payload_image::sample::{self, SampleImage},
};

const HOST: &str = "reg.example.com";
const MINUTE: Duration = Duration::from_mins(1);

struct Lab {
    registry: Emulator<Registry>,
    api: ApiClient,
    clock: Clock,
    pusher: RegistryClient,
    _stop: CancellationToken,
    _tasks: JoinSet<()>,
    _pocket: Pocket,
}

impl Lab {
    async fn open(access: Access, credentials: Credentials) -> Self {
        Self::open_with(access, credentials, Settings::default()).await
    }

    async fn open_with(access: Access, credentials: Credentials, imports: Settings) -> Self {
        let pocket = Pocket::open(PocketOptions::new(Environment::simulated(7)))
            .await
            .unwrap();
        let api = ApiClient::new(pocket.service(), "default");
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let settings = RegistrySettings {
            access,
            ..RegistrySettings::default()
        };
        let registry = Emulator::new(Registry::in_memory(settings, clock), clock);
        let network = Network::default();
        network.mount(HOST, registry.transport());
        let client = |credentials| {
            let http = Client::builder("registry", clock)
                .transport(network.transport())
                .build();
            RegistryClient::new(http.unwrap(), credentials, Options::default())
        };
        let definitions = Api::all(api.clone());
        definitions
            .create(&PostParams::default(), &ImageStream::crd())
            .await
            .unwrap();
        clock.sleep(Duration::from_secs(1)).await;
        let (watches, watching) = Watches::new(clock);
        let context = Context {
            client: api.clone(),
            watches,
            leadership: Leadership::without_election(clock),
            clock,
        };
        let controller = component(&context, &client(Credentials::none()), imports).unwrap();
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        tasks.spawn(controller.run(stop.clone()));
        tasks.spawn(watching.run(stop.clone()));
        Self {
            registry,
            api,
            clock,
            pusher: client(credentials),
            _stop: stop,
            _tasks: tasks,
            _pocket: pocket,
        }
    }

    async fn open_to_all() -> Self {
        Self::open(Access::Open, Credentials::none()).await
    }

    /// Pushes an image that is different for each `content`.
    async fn push(&self, tag: &str, content: &str) -> Manifest {
        let image = SampleImage::new("cli", &[], &[("file", content)]);
        let built = image.build().unwrap();
        let target: ImageRef = format!("{HOST}/ocp/cli:{tag}").parse().unwrap();
        sample::push(&self.pusher, &built, &target).await.unwrap();
        built.manifest
    }

    fn streams(&self) -> Api<ImageStream> {
        Api::namespaced(self.api.clone(), "default")
    }

    async fn create(&self, tags: Value) {
        let stream = json!({"metadata": {"name": "4.99"}, "spec": {"tags": tags}});
        let stream = serde_json::from_value(stream).unwrap();
        self.streams()
            .create(&PostParams::default(), &stream)
            .await
            .unwrap();
        self.pass(Duration::from_secs(10)).await;
    }

    async fn patch(&self, patch: Value) {
        let parameters = PatchParams::default();
        self.streams()
            .patch("4.99", &parameters, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    async fn tag(&self, name: &str) -> NamedTagEventList {
        let status = self.streams().get("4.99").await.unwrap().status.unwrap();
        status.tag(name).unwrap().clone()
    }

    async fn pass(&self, time: Duration) {
        self.clock.sleep(time).await;
    }

    fn requests(&self) -> usize {
        self.registry.calls().lines().len()
    }

    fn inject(&self, path: &str, times: u32, fault: Fault) {
        self.registry
            .faults()
            .inject(CallMatcher::path(path).times(times), fault);
    }
}

fn tag(name: &str, more: &Value) -> Value {
    let mut tag = json!({"name": name, "from": {"kind": "DockerImage", "name": format!("{HOST}/ocp/cli:{name}")}});
    for (key, value) in more.as_object().into_iter().flatten() {
        tag[key] = value.clone();
    }
    tag
}

#[tokio::test(start_paused = true)]
async fn tags_are_imported_and_scheduled_ones_again() {
    let lab = Lab::open_to_all().await;
    let first = lab.push("v1", "one").await;
    lab.push("v2", "one").await;
    lab.create(json!([
        tag("v1", &json!({"importPolicy": {"scheduled": true}})),
        tag("v2", &Value::Null)
    ]))
    .await;
    let v1 = lab.tag("v1").await;
    assert_eq!(v1.items[0].image, first.digest.to_string());
    assert_eq!(
        v1.items[0].docker_image_reference,
        format!("{HOST}/ocp/cli@{}", first.digest)
    );
    assert_eq!(v1.import_condition().unwrap().status, "True");
    let second = lab.push("v1", "two").await;
    lab.push("v2", "two").await;
    lab.pass(MINUTE * 16).await;
    let v1 = lab.tag("v1").await;
    let images: Vec<_> = v1.items.iter().map(|item| item.image.clone()).collect();
    assert_eq!(
        images,
        [second.digest.to_string(), first.digest.to_string()]
    );
    assert_eq!(
        lab.tag("v2").await.items[0].image,
        first.digest.to_string(),
        "not scheduled"
    );
    let summary = lab
        .streams()
        .get("4.99")
        .await
        .unwrap()
        .status
        .unwrap()
        .summary
        .unwrap();
    assert_eq!(
        (
            summary.tags,
            summary.imports_failing,
            summary.newest_tag.as_str()
        ),
        (2, 0, "v1")
    );
    assert_eq!(summary.repository, format!("{HOST}/ocp/cli"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_asked_or_written_without_a_reason() {
    let lab = Lab::open_to_all().await;
    lab.push("v1", "one").await;
    lab.create(json!([tag("v1", &Value::Null)])).await;
    let version = |stream: &ImageStream| stream.metadata.resource_version.clone();
    let before = lab.streams().get("4.99").await.unwrap();
    let requests = lab.requests();
    lab.pass(Duration::from_hours(5)).await;
    assert_eq!(lab.requests(), requests);
    assert_eq!(
        version(&lab.streams().get("4.99").await.unwrap()),
        version(&before)
    );
}

#[tokio::test(start_paused = true)]
async fn a_missing_image_is_a_condition_and_an_import_that_is_asked_for_finds_it() {
    let lab = Lab::open_to_all().await;
    lab.create(json!([tag("v1", &Value::Null)])).await;
    let missing = lab.tag("v1").await;
    let condition = missing.import_condition().unwrap();
    assert_eq!(
        (condition.status.as_str(), condition.reason.as_str()),
        ("False", "NotFound")
    );
    assert!(
        condition.message.contains("reg.example.com/ocp/cli:v1"),
        "{}",
        condition.message
    );
    let pushed = lab.push("v1", "late").await;
    lab.pass(MINUTE).await;
    assert!(
        lab.tag("v1").await.import_failed(),
        "asked for again only after some time"
    );
    let now = lab.clock.now().to_string();
    let asked = json!({"v1": now}).to_string();
    lab.pass(Duration::from_secs(1)).await;
    lab.patch(json!({"metadata": {"annotations": {IMPORT_REQUESTED: asked}}}))
        .await;
    lab.pass(Duration::from_secs(10)).await;
    assert_eq!(
        lab.tag("v1").await.items[0].image,
        pushed.digest.to_string()
    );
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_fails_refuses_or_limits_is_asked_less_and_recovers() {
    let lab = Lab::open_to_all().await;
    let tags: Vec<_> = (0..30).map(|number| format!("t{number}")).collect();
    for name in &tags {
        lab.push(name, "one").await;
    }
    let limited = Refusal {
        status: StatusCode::TOO_MANY_REQUESTS,
        retry_after: Some(120),
    };
    lab.inject("/v2/ocp/cli/manifests/*", 8, Fault::Refused(limited));
    lab.registry.calls().clear();
    let specs: Vec<_> = tags.iter().map(|name| tag(name, &Value::Null)).collect();
    lab.create(json!(specs)).await;
    assert!(
        lab.requests() < 40,
        "{} requests to a registry that limits",
        lab.requests()
    );
    lab.pass(Duration::from_hours(3)).await;
    for name in &tags {
        let found = lab.tag(name).await;
        assert!(
            !found.import_failed() && found.items.len() == 1,
            "{found:?}"
        );
    }
    assert_eq!(lab.registry.faults().unused(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn only_digests_that_exist_are_recorded() {
    let lab = Lab::open_to_all().await;
    let pushed = lab.push("v1", "one").await;
    // A slow answer is the last: it is one, and nothing is asked after it.
    let slow = Fault::Slow(Duration::from_secs(5));
    let faults = [
        Fault::Corrupted(30),
        Fault::Truncated(30),
        Fault::RequestLost,
        Fault::AnswerLost,
        slow,
    ];
    for fault in faults {
        lab.registry.faults().inject(
            CallMatcher::path("/v2/ocp/cli/manifests/*")
                .method(Method::GET)
                .times(1),
            fault,
        );
    }
    lab.create(json!([tag(
        "v1",
        &json!({"importPolicy": {"scheduled": true}})
    )]))
    .await;
    lab.pass(Duration::from_hours(2)).await;
    let found = lab.tag("v1").await;
    let images: Vec<_> = found.items.iter().map(|item| item.image.as_str()).collect();
    assert_eq!(images, [pushed.digest.to_string()]);
    assert_eq!(lab.registry.faults().unused(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn requests_per_hour_are_bounded_whatever_is_scheduled() {
    let lab = Lab::open_to_all().await;
    let manifest = lab.push("t0", "one").await;
    for number in 1..60 {
        let target: ImageRef = format!("{HOST}/ocp/cli:t{number}").parse().unwrap();
        lab.pusher.push_manifest(&target, &manifest).await.unwrap();
    }
    lab.registry.calls().clear();
    let scheduled = json!({"importPolicy": {"scheduled": true}});
    let tags: Vec<_> = (0..60)
        .map(|number| tag(&format!("t{number}"), &scheduled))
        .collect();
    lab.create(json!(tags)).await;
    lab.pass(Duration::from_hours(1)).await;
    // 60 tags: one import at first and four in the hour, each of one or two requests.
    let requests = lab.requests();
    assert!((180..600).contains(&requests), "{requests}");
    let status = lab.streams().get("4.99").await.unwrap().status.unwrap();
    assert!(
        status
            .tags
            .iter()
            .all(|tag| tag.items.len() == 1 && !tag.import_failed())
    );
}

/// A registry that wants tokens, and the credentials of the user who pushes.
fn with_tokens() -> (Access, Credentials) {
    let users = vec![
        User::new("puller", "right").pulls("ocp/*"),
        User::new("pusher", "right").pushes("ocp/*"),
    ];
    let pusher = Secret::Basic {
        username: "pusher".to_owned(),
        password: "right".to_owned(),
    };
    (Access::Token(users), Credentials::none().with(HOST, pusher))
}

impl Lab {
    /// The credentials of the user who pulls.
    async fn create_pull_secret(&self) {
        let config =
            json!({"auths": {HOST: {"username": "puller", "password": "right"}}}).to_string();
        let secret = json!({"metadata": {"name": "pull"}, "type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": config}});
        let secret = serde_json::from_value(secret).unwrap();
        let secrets: Api<k8s_openapi::api::core::v1::Secret> =
            Api::namespaced(self.api.clone(), "default");
        let created = secrets.create(&PostParams::default(), &secret).await;
        created.unwrap();
    }

    /// The most requests that the registry got within an hour.
    fn most_in_an_hour(&self) -> usize {
        let calls = self.registry.calls().calls();
        let within = |start: jiff::Timestamp| {
            let after = calls.iter().filter(|call| call.at >= start);
            let hour = after.filter(|call| call.at.duration_since(start).as_hours() < 1);
            hour.count()
        };
        let most = calls.iter().map(|call| within(call.at)).max();
        most.unwrap_or_default()
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_and_failed_attempts_are_part_of_the_budget() {
    let settings = Settings {
        requests_per_hour: 60,
        ..Settings::default()
    };
    let (access, pusher) = with_tokens();
    let lab = Lab::open_with(access, pusher, settings).await;
    lab.create_pull_secret().await;
    // Each repository needs a token of its own.
    let tags = (0..40).map(|number| {
        let image = format!("{HOST}/ocp/app-{number}:v1");
        let from = json!({"kind": "DockerImage", "name": image});
        json!({"name": format!("t{number}"), "from": from, "importPolicy": {"scheduled": true}})
    });
    let tags: Vec<_> = tags.collect();
    let built = SampleImage::new("cli", &[], &[("file", "one")])
        .build()
        .unwrap();
    for number in 0..40 {
        let target = format!("{HOST}/ocp/app-{number}:v1").parse().unwrap();
        sample::push(&lab.pusher, &built, &target).await.unwrap();
    }
    let broken = Refusal::of(StatusCode::BAD_GATEWAY);
    lab.inject("/v2/ocp/app-7/manifests/*", 5, Fault::Refused(broken));
    lab.registry.calls().clear();
    lab.create(json!(tags)).await;
    lab.pass(Duration::from_hours(6)).await;
    // The budget, a tenth of it that was saved up, and what one import sends.
    let most = lab.most_in_an_hour();
    assert!((40..=60 + 6 + 6).contains(&most), "{most} requests");
    let status = lab.streams().get("4.99").await.unwrap().status.unwrap();
    let imported = status.tags.iter().filter(|tag| !tag.items.is_empty());
    assert!(imported.count() >= 39, "{:?}", status.summary);
}

#[tokio::test(start_paused = true)]
async fn pull_secrets_of_the_namespace_open_private_repositories() {
    let (access, pusher) = with_tokens();
    let lab = Lab::open(access, pusher).await;
    let pushed = lab.push("v1", "one").await;
    lab.create(json!([tag("v1", &Value::Null)])).await;
    assert_eq!(
        lab.tag("v1").await.import_condition().unwrap().reason,
        "Unauthorized"
    );
    lab.create_pull_secret().await;
    lab.pass(MINUTE * 15).await;
    assert_eq!(
        lab.tag("v1").await.items[0].image,
        pushed.digest.to_string()
    );
}

#[tokio::test(start_paused = true)]
async fn deleted_tags_lose_their_history_and_the_tags_of_others_stay() {
    let lab = Lab::open_to_all().await;
    lab.push("v1", "one").await;
    lab.push("v2", "two").await;
    lab.create(json!([tag("v1", &Value::Null), tag("v2", &Value::Null)]))
        .await;
    let kept = lab.tag("v2").await;
    lab.patch(json!({"spec": {"tags": [tag("v2", &Value::Null)]}}))
        .await;
    lab.pass(MINUTE).await;
    let status = lab.streams().get("4.99").await.unwrap().status.unwrap();
    assert_eq!(status.tags, [kept]);
    lab.streams()
        .delete("4.99", &DeleteParams::default())
        .await
        .unwrap();
    lab.pass(MINUTE).await;
    assert!(lab.streams().get_opt("4.99").await.unwrap().is_none());
}

impl Lab {
    /// Sets the image of one tag, as `kubectl patch --type=json` does it; refused if the stream is no longer of this
    /// version.
    async fn set_tag(
        &self,
        version: &str,
        place: usize,
        tag: &str,
    ) -> Result<ImageStream, kube::Error> {
        let image = format!("{HOST}/ocp/cli:{tag}");
        let patch = json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": format!("/spec/tags/{place}/from/name"), "value": image},
        ]);
        let path = "/apis/image.openshift.io/v1/namespaces/default/imagestreams/4.99";
        let request = http::Request::patch(path)
            .header("content-type", "application/json-patch+json")
            .body(patch.to_string().into_bytes());
        self.api.request(request.unwrap()).await
    }

    async fn version(&self) -> String {
        let stream = self.streams().get("4.99").await.unwrap();
        stream.metadata.resource_version.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn one_tag_is_set_under_a_precondition_and_the_tags_of_other_writers_stay() {
    let lab = Lab::open_to_all().await;
    let mut pushed = Vec::new();
    for (name, content) in [
        ("v1", "one"),
        ("v2", "two"),
        ("v3", "three"),
        ("v4", "four"),
    ] {
        pushed.push(lab.push(name, content).await.digest.to_string());
    }
    lab.create(json!([tag("v1", &Value::Null), tag("v2", &Value::Null)]))
        .await;
    let both_read = lab.version().await;
    lab.set_tag(&both_read, 0, "v3").await.unwrap();
    // The other writer read the stream before that.
    let refused = lab.set_tag(&both_read, 1, "v4").await.unwrap_err();
    let kube::Error::Api(status) = refused else {
        panic!("{refused}");
    };
    assert!([409, 422].contains(&status.code), "{status:?}");
    let stale = json!({"metadata": {"resourceVersion": both_read}, "spec": {"tags": []}});
    let refused = lab
        .streams()
        .patch("4.99", &PatchParams::default(), &Patch::Merge(&stale))
        .await
        .unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 409),
        "{refused}"
    );
    lab.pass(MINUTE).await;
    let images = async |name: &str| -> Vec<String> {
        let items = lab.tag(name).await.items;
        items.into_iter().map(|item| item.image).collect()
    };
    assert_eq!(images("v1").await, [pushed[2].clone(), pushed[0].clone()]);
    assert_eq!(
        images("v2").await,
        [pushed[1].clone()],
        "the refused change has no effect"
    );
    lab.set_tag(&lab.version().await, 1, "v4").await.unwrap();
    lab.pass(MINUTE).await;
    assert_eq!(images("v1").await[0], pushed[2]);
    assert_eq!(images("v2").await[0], pushed[3]);
}

#[test]
fn only_named_namespaces_may_follow_a_stream() {
    let allowed = |value: Option<&str>, namespace: &str| {
        let mut stream = ImageStream::default();
        let all = value.map(|value| (REFERENCED_BY.to_owned(), value.to_owned()));
        stream.metadata.annotations = Some(all.into_iter().collect());
        may_follow(&stream, namespace)
    };
    assert!(!allowed(None, "team"));
    assert!(!allowed(Some(""), "team"));
    assert!(!allowed(Some("team-b, ci"), "team"));
    assert!(allowed(Some("ci, team"), "team"));
    assert!(allowed(Some("*"), "team"));
}

#[test]
fn times_in_messages_have_no_fractions() {
    let wait = Duration::from_nanos(899_999_760_903);
    assert_eq!(whole_seconds(wait), "15m");
    assert_eq!(whole_seconds(Duration::from_millis(9_001)), "10s");
}
