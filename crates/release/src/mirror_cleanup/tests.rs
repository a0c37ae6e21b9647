use std::time::Duration;

use http::{Method, StatusCode};
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, CustomResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use neap_emulators::{
    fault_book::CallMatcher,
    network::Network,
    registry::{Access, Registry, Settings, User},
    system::Emulator,
};
use neap_kit::{
    client::{Client, Fault, Refusal},
    clock::Clock,
};
use neap_pocket::{Options as PocketOptions, Pocket, environment::Environment};
use serde_json::json;

use super::{scope::rotated, *};
use crate::{
    api::annotations::CONFIG,
    image_stream::api::ImageStream,
    oci::{client::Options as ClientOptions, credentials::Credentials},
    payload_image::sample,
};

fn stream(name: &str, config: &str, tags: &[&str]) -> ImageStream {
    let tags: Vec<_> = tags
        .iter()
        .map(|tag| json!({"tag": tag, "items": []}))
        .collect();
    let object = json!({"metadata": {"name": name, "namespace": "ocp", "annotations": {CONFIG: config}}, "spec": {}, "status": {"tags": tags}});
    serde_json::from_value(object).unwrap()
}

const STABLE: &str = r#"{"name": "4-stable", "as": "Stable", "alternateImageRepository": "reg.example.com/mirror/release"}"#;

#[test]
fn tags_of_stable_streams_are_kept_and_unreadable_streams_stop_everything() {
    let found = scope(&[
        stream("release", STABLE, &["4.99.0"]),
        stream("plain", r#"{"name": "x", "to": "y"}"#, &["other"]),
    ]);
    assert_eq!(found.valid, BTreeSet::from(["4.99.0".to_owned()]));
    assert_eq!(
        found.repositories,
        BTreeSet::from(["reg.example.com/mirror/release".to_owned()])
    );
    assert_eq!(scope(&[stream("broken", "{", &[])]).unreadable.len(), 1);
}

#[test]
fn only_old_images_without_a_stream_expire() {
    let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
    let valid = BTreeSet::from(["kept".to_owned()]);
    let month = Duration::from_hours(720);
    let old = Some("2026-01-01T00:00:00Z".parse().unwrap());
    let young = Some("2026-05-20T00:00:00Z".parse().unwrap());
    assert!(is_expired("gone", old, &valid, month, now));
    assert!(!is_expired("kept", old, &valid, month, now));
    assert!(!is_expired("gone", young, &valid, month, now));
    assert!(!is_expired("gone", None, &valid, month, now));
}

#[test]
fn each_pass_begins_behind_the_one_before_it() {
    let first = |pass, at_once| rotated(vec![0, 1, 2, 3, 4, 5, 6], pass, at_once)[0];
    let starts: Vec<_> = (0..5).map(|pass| first(pass, 3)).collect();
    assert_eq!(starts, [0, 3, 6, 1, 4]);
    assert!(rotated(Vec::<u8>::new(), 3, 3).is_empty());
    // Whatever the numbers are, every item is the first of some pass.
    for (length, at_once) in [(1, 200), (4, 200), (7, 3), (8, 4), (200, 200), (400, 200)] {
        let starts = (0..800).map(|pass| rotated((0..length).collect(), pass, at_once)[0]);
        let starts: BTreeSet<usize> = starts.collect();
        assert_eq!(starts.len(), length, "{length} items, {at_once} at once");
    }
}

struct Lab {
    registry: Emulator<Registry>,
    client: RegistryClient,
    clock: Clock,
    repository: ImageRef,
}

impl Lab {
    /// A mirror with these releases.
    async fn open(access: Access, credentials: Credentials, tags: &[&str]) -> Self {
        let clock = Clock::starting_at("2026-06-01T00:00:00Z".parse().unwrap());
        let settings = Settings {
            access,
            ..Settings::default()
        };
        let registry = Emulator::new(Registry::in_memory(settings, clock), clock);
        let network = Network::default();
        network.mount("reg.example.com", registry.transport());
        let http = Client::builder("registry", clock).transport(network.transport());
        let client =
            RegistryClient::new(http.build().unwrap(), credentials, ClientOptions::default());
        let repository: ImageRef = "reg.example.com/mirror/release".parse().unwrap();
        let built = sample::release().remove(1).build().unwrap();
        for tag in tags {
            let target = repository.with_tag(tag).unwrap();
            sample::push(&client, &built, &target).await.unwrap();
        }
        registry.calls().clear();
        Self {
            registry,
            client,
            clock,
            repository,
        }
    }

    async fn with(tags: &[&str]) -> Self {
        Self::open(Access::Open, Credentials::none(), tags).await
    }

    fn calls(&self, method: &Method) -> usize {
        let calls = self.registry.calls().calls();
        calls.iter().filter(|call| call.method == *method).count()
    }

    fn refuse(&self, method: Method, status: StatusCode, times: Option<u32>) {
        let manifests = CallMatcher::path("/v2/mirror/release/manifests/*").method(method);
        let refusal = Refusal {
            status,
            retry_after: Some(3600),
        };
        let manifests = match times {
            Some(times) => manifests.times(times),
            None => manifests,
        };
        let fault = Fault::Refused(refusal);
        self.registry.faults().inject(manifests, fault);
    }
}

fn kept() -> Scope {
    scope(&[stream("release", STABLE, &["4.99.0"])])
}

#[tokio::test(start_paused = true)]
async fn a_pass_deletes_what_expired_up_to_its_limit_and_leaves_failing_registries_alone() {
    let lab = Lab::with(&["4.99.0", "4.98.0", "4.97.0", "4.96.0"]).await;
    let cleaner = |per_pass, dry_run| {
        MirrorCleaner::new(CleanupOptions {
            per_pass,
            dry_run,
            ..CleanupOptions::default()
        })
    };
    let mut dry = cleaner(200, true);
    let report = dry.clean_up(&lab.client, &kept()).await;
    assert_eq!(report.deleted.len(), 3);
    let report = cleaner(2, false).clean_up(&lab.client, &kept()).await;
    assert!(report.limited && report.deleted.len() == 2, "{report:?}");
    assert_eq!(lab.client.tags(&lab.repository).await.unwrap().len(), 2);
    lab.refuse(Method::GET, StatusCode::TOO_MANY_REQUESTS, Some(1));
    let mut cleaner = cleaner(200, false);
    let report = cleaner.clean_up(&lab.client, &kept()).await;
    assert!(
        report.deleted.is_empty() && report.problems.len() == 1,
        "{report:?}"
    );
    assert_eq!(lab.registry.faults().unused(), [""; 0]);
    lab.registry.calls().clear();
    lab.clock.sleep(Duration::from_hours(2)).await;
    let report = cleaner.clean_up(&lab.client, &kept()).await;
    assert_eq!(report.left_alone.len(), 1, "{report:?}");
    assert_eq!(lab.registry.calls().calls().len(), 0, "it is not asked");
    lab.clock.sleep(Duration::from_hours(22)).await;
    let report = cleaner.clean_up(&lab.client, &kept()).await;
    assert_eq!(report.deleted.len(), 1, "{report:?}");
    let tags = lab.client.tags(&lab.repository).await.unwrap();
    assert_eq!(
        tags,
        ["4.99.0"],
        "the image that they shared is still there"
    );
    let image = lab.repository.with_tag("4.99.0").unwrap();
    lab.client.manifest(&image).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_keeps_failing_is_asked_less_and_less_often() {
    let lab = Lab::with(&["4.98.0"]).await;
    lab.refuse(Method::GET, StatusCode::TOO_MANY_REQUESTS, None);
    let mut cleaner = MirrorCleaner::new(CleanupOptions::default());
    let mut asked = Vec::new();
    for day in 0..32 {
        lab.registry.calls().clear();
        lab.registry.faults().clear();
        lab.refuse(Method::GET, StatusCode::TOO_MANY_REQUESTS, None);
        cleaner.clean_up(&lab.client, &kept()).await;
        if lab.registry.faults().unused().is_empty() {
            asked.push(day);
        }
        lab.clock.sleep(Duration::from_hours(24)).await;
    }
    assert_eq!(asked, [0, 1, 3, 7, 14, 21, 28], "at least once a week");
}

#[tokio::test(start_paused = true)]
async fn images_that_are_looked_at_and_deletions_that_fail_are_bounded_and_have_their_turn() {
    let tags: Vec<_> = (0..30).map(|number| format!("4.98.{number:02}")).collect();
    let names: Vec<_> = tags.iter().map(String::as_str).collect();
    let lab = Lab::with(&names).await;
    lab.refuse(Method::DELETE, StatusCode::FORBIDDEN, None);
    let mut cleaner = MirrorCleaner::new(CleanupOptions {
        per_pass: 7,
        ..CleanupOptions::default()
    });
    let report = cleaner.clean_up(&lab.client, &kept()).await;
    assert!(report.limited && report.problems.len() == 7, "{report:?}");
    // The images are young for a cleaner that is more careful.
    let careful = || {
        MirrorCleaner::new(CleanupOptions {
            minimum_age: Duration::from_hours(1_000_000),
            looked_at: 7,
            ..CleanupOptions::default()
        })
    };
    let mut looked_at = BTreeSet::new();
    for _ in 0..5 {
        lab.registry.calls().clear();
        let report = careful().clean_up(&lab.client, &kept()).await;
        assert!(report.limited && report.kept == 7, "{report:?}");
        assert!(lab.calls(&Method::GET) < 30, "{}", lab.calls(&Method::GET));
        let calls = lab.registry.calls().calls().into_iter();
        looked_at.extend(calls.filter_map(|call| {
            let (_, tag) = call.path.rsplit_once("/manifests/4.98.")?;
            Some(tag.to_owned())
        }));
        lab.clock.sleep(Duration::from_hours(24)).await;
    }
    assert_eq!(
        looked_at.len(),
        30,
        "passes of processes of their own go on"
    );
}

#[tokio::test(start_paused = true)]
async fn changed_credentials_are_used_by_the_next_pass() {
    let user = |name: &str| User::new(name, name).pushes("mirror/*");
    let users = vec![user("old"), user("new")];
    let secret = |name: &str| json!({"stringData": {"config.json": config(name)}});
    let basic = Credentials::parse(&config("old")).unwrap();
    let lab = Lab::open(Access::Basic(users), basic, &["4.98.0"]).await;
    let pocket = Pocket::open(PocketOptions::new(Environment::simulated(7)))
        .await
        .unwrap();
    let api = kube::Client::new(pocket.service(), "default");
    let definitions = Api::all(api.clone());
    let parameters = PostParams::default();
    let created = definitions.create(&parameters, &ImageStream::crd()).await;
    created.unwrap();
    lab.clock.sleep(Duration::from_secs(1)).await;
    let streams: Api<ImageStream> = Api::namespaced(api.clone(), "default");
    let mut release = stream("release", STABLE, &[]);
    release.metadata.namespace = Some("default".to_owned());
    let created = streams.create(&PostParams::default(), &release).await;
    created.unwrap();
    let secrets: Api<Secret> = Api::namespaced(api.clone(), "default");
    let mut wrong = secret("nobody");
    wrong["metadata"] = json!({"name": "mirror"});
    let wrong = serde_json::from_value(wrong).unwrap();
    secrets
        .create(&PostParams::default(), &wrong)
        .await
        .unwrap();
    let sources = CleanupSources {
        namespaces: vec!["default".to_owned()],
        credentials_namespace: "default".to_owned(),
        credentials_secret: "mirror".to_owned(),
    };
    let mut cleaner = MirrorCleaner::new(CleanupOptions::default());
    let report = cleaner.pass(&api, &sources, &lab.client).await.unwrap();
    assert!(
        report.deleted.is_empty() && report.problems.len() == 1,
        "{report:?}"
    );
    let patch = Patch::Merge(secret("new"));
    let patched = secrets
        .patch("mirror", &PatchParams::default(), &patch)
        .await;
    patched.unwrap();
    let report = cleaner.pass(&api, &sources, &lab.client).await.unwrap();
    assert_eq!(report.deleted, ["reg.example.com/mirror/release:4.98.0"]);
}

#[tokio::test(start_paused = true)]
async fn without_a_mirror_no_credentials_are_needed() {
    let lab = Lab::open(Access::Open, Credentials::none(), &[]).await;
    let pocket = Pocket::open(PocketOptions::new(Environment::simulated(7)));
    let pocket = pocket.await.unwrap();
    let api = kube::Client::new(pocket.service(), "default");
    let definitions = Api::all(api.clone());
    let parameters = PostParams::default();
    let created = definitions.create(&parameters, &ImageStream::crd()).await;
    created.unwrap();
    lab.clock.sleep(Duration::from_secs(1)).await;
    let sources = CleanupSources {
        namespaces: vec!["default".to_owned()],
        credentials_namespace: "ci-release".to_owned(),
        credentials_secret: "missing".to_owned(),
    };
    let mut cleaner = MirrorCleaner::new(CleanupOptions::default());
    let report = cleaner.pass(&api, &sources, &lab.client).await.unwrap();
    assert!(report.problems.is_empty(), "{report:?}");
    let streams: Api<ImageStream> = Api::namespaced(api.clone(), "default");
    let mut release = stream("release", STABLE, &[]);
    release.metadata.namespace = Some("default".to_owned());
    let created = streams.create(&PostParams::default(), &release).await;
    created.unwrap();
    let refused = cleaner.pass(&api, &sources, &lab.client).await;
    assert!(matches!(refused, Err(sources::Error::Secret { .. })));
}

/// The content of a docker config.json whose user has a password that is like the name.
fn config(user: &str) -> String {
    json!({"auths": {"reg.example.com": {"username": user, "password": user}}}).to_string()
}
