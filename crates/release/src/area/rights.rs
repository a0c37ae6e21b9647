//! The processes have the rights that they use, and no others: on a server that enforces RBAC, each does all it
//! can do under the roles of the area.

mod controllers;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use http::{HeaderValue, Request, StatusCode, header::AUTHORIZATION};
use kube::{
    Api, Client, CustomResourceExt,
    api::{ApiResource, DynamicObject, PostParams},
    client::Body,
};
use neap_emulators::{
    network::Network,
    registry::{Registry, Settings as RegistrySettings},
    system::Emulator,
};
use neap_kit::{
    apply::Writer,
    client::Client as HttpClient,
    clock::Clock,
    context::Context,
    lease::{ElectionOptions, Elector, Leadership, LeaseTimings},
    watch::Watches,
};
use neap_pocket::{
    Options, Pocket,
    environment::Environment,
    identity::{Credentials as ApiCredentials, Tokens},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::AREA;
use crate::{
    api::annotations::CONFIG,
    image_stream::{
        api::{IMPORT_REQUESTED, ImageStream},
        controller,
        facts::Settings,
    },
    mirror_cleanup::sources,
    oci::{
        client::{Options as RegistryOptions, RegistryClient},
        credentials::Credentials,
        reference::ImageRef,
    },
    payload_image::sample::{self, SampleImage},
    reimport::{self, Reimporter},
};

const NAMESPACE: &str = "ci-release";
const HOST: &str = "reg.example.com";

/// Group, resource and verb.
type Right = (String, String, String);

/// The right that a request uses; none for requests that need none.
fn right(request: &Request<Body>) -> Option<Right> {
    let parts: Vec<_> = request.uri().path().trim_matches('/').split('/').collect();
    let (group, rest) = match parts[..] {
        ["api", _, ref rest @ ..] => ("", rest),
        ["apis", group, _, ref rest @ ..] => (group, rest),
        _ => return None,
    };
    let (["namespaces", _, rest @ ..] | rest) = rest;
    let (resource, name) = match rest {
        [] => return None,
        [resource] => ((*resource).to_owned(), None),
        [resource, name] => ((*resource).to_owned(), Some(name)),
        [resource, name, part, ..] => (format!("{resource}/{part}"), Some(name)),
    };
    let query = request.uri().query().unwrap_or_default();
    let verb = match (request.method().as_str(), name) {
        ("GET", Some(_)) => "get",
        ("GET", None) if query.contains("watch=true") => "watch",
        ("GET", None) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        _ => "delete",
    };
    Some((group.to_owned(), resource, verb.to_owned()))
}

/// The rights of an account.
fn granted(account: &str) -> BTreeSet<Right> {
    let roles = AREA.roles.iter().filter(|role| role.account == account);
    let mut rights = BTreeSet::new();
    for right in roles.flat_map(|role| role.rights) {
        for resource in right.resources {
            for verb in right.verbs {
                rights.insert((
                    right.group.to_owned(),
                    (*resource).to_owned(),
                    (*verb).to_owned(),
                ));
            }
        }
    }
    rights
}

/// A client of a registry in memory.
fn registry(clock: Clock) -> RegistryClient {
    let settings = RegistrySettings::default();
    let emulator = Emulator::new(Registry::in_memory(settings, clock), clock);
    let network = Network::default();
    network.mount(HOST, emulator.transport());
    let http = HttpClient::builder("registry", clock).transport(network.transport());
    RegistryClient::new(
        http.build().unwrap(),
        Credentials::none(),
        RegistryOptions::default(),
    )
}

/// A server with the roles of the area, a client of one account, and a registry.
struct Fixture {
    admin: Client,
    account: &'static str,
    client: Client,
    clock: Clock,
    registry: RegistryClient,
    used: Arc<Mutex<BTreeSet<Right>>>,
    refused: Arc<Mutex<Vec<String>>>,
    _pocket: Pocket,
}

impl Fixture {
    async fn open(account: &'static str) -> Self {
        let pocket = Pocket::open(Options::new(Environment::simulated(7)))
            .await
            .unwrap();
        let admin = Client::new(pocket.service(), "default");
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let definitions = Api::all(admin.clone());
        let definition = ImageStream::crd();
        definitions
            .create(&PostParams::default(), &definition)
            .await
            .unwrap();
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        create(&admin, namespace).await;
        for object in AREA.roles.iter().flat_map(|role| role.objects(NAMESPACE)) {
            create(&admin, object).await;
        }
        let user = format!("system:serviceaccount:{NAMESPACE}:{account}");
        let tokens = Tokens::parse(&format!("secret,{user},1,system:serviceaccounts\n"));
        let credentials = ApiCredentials {
            certificates: None,
            tokens: tokens.unwrap(),
        };
        let (used, refused) = (
            Arc::<Mutex<BTreeSet<Right>>>::default(),
            Arc::<Mutex<Vec<String>>>::default(),
        );
        let (noted, denied) = (used.clone(), refused.clone());
        let service = pocket
            .service()
            .authenticated_by(Arc::new(credentials))
            .map_request(move |mut request: Request<Body>| {
                noted.lock().extend(right(&request));
                let token = HeaderValue::from_static("Bearer secret");
                request.headers_mut().insert(AUTHORIZATION, token);
                request
            })
            .map_response(move |response: http::Response<_>| {
                let status = response.status();
                if status == StatusCode::FORBIDDEN || status == StatusCode::UNAUTHORIZED {
                    denied.lock().push(status.to_string());
                }
                response
            });
        clock.sleep(Duration::from_secs(1)).await;
        Self {
            admin,
            account,
            client: Client::new(service, "default"),
            clock,
            registry: registry(clock),
            used,
            refused,
            _pocket: pocket,
        }
    }

    async fn create(&self, object: Value) {
        create(&self.admin, object).await;
    }

    /// Asserts that all used rights are granted, and that all granted ones but `excused` were used.
    fn assert_rights(&self, excused: &[(&str, &str, &str)]) {
        let (used, granted) = (self.used.lock().clone(), granted(self.account));
        let beyond: Vec<_> = used.difference(&granted).collect();
        assert!(beyond.is_empty(), "used without being granted: {beyond:#?}");
        let refused = self.refused.lock().clone();
        assert_eq!(refused, [""; 0], "the server refused requests");
        let idle = granted.difference(&used);
        let idle: Vec<_> = idle
            .filter(|(group, resource, verb)| !excused.contains(&(group, resource, verb)))
            .collect();
        assert!(idle.is_empty(), "granted and never used: {idle:#?}");
    }

    /// Leads once, as each process of a role does.
    async fn lead(&self) {
        let election = ElectionOptions {
            namespace: NAMESPACE.to_owned(),
            name: self.account.to_owned(),
            identity: "one".to_owned(),
            timings: LeaseTimings::default(),
        };
        let elector = Elector::new(self.client.clone(), election, self.clock);
        let (elector, mut leadership) = elector.unwrap();
        let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
        tasks.spawn(elector.run(stop.clone()));
        leadership.gained().await;
        self.clock.sleep(Duration::from_secs(5)).await;
        stop.cancel();
        while tasks.join_next().await.is_some() {}
    }
}

async fn create(client: &Client, object: Value) {
    let (version, kind) = (&object["apiVersion"], &object["kind"]);
    let (version, kind) = (version.as_str().unwrap(), kind.as_str().unwrap());
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let resource = ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(group, version, kind));
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.create(&PostParams::default(), &object).await.unwrap();
}

fn stream(tags: &[&str], requested: &str) -> Value {
    let tags = tags.iter().map(|tag| {
        json!({"name": tag, "from": {"kind": "DockerImage", "name": format!("{HOST}/ocp/cli:{tag}")}})
    });
    let mut annotations = json!({CONFIG: "{\"name\": \"4.99\"}"});
    if !requested.is_empty() {
        annotations[IMPORT_REQUESTED] = requested.into();
    }
    json!({
        "apiVersion": "image.openshift.io/v1", "kind": "ImageStream",
        "metadata": {"name": "4.99", "namespace": NAMESPACE, "annotations": annotations},
        "spec": {"tags": tags.collect::<Vec<_>>()},
    })
}

#[tokio::test(start_paused = true)]
async fn imports_have_the_rights_that_they_use_and_no_others() {
    let fixture = Fixture::open("neap-release-imports").await;
    fixture.lead().await;
    let (watches, watching) = Watches::new(fixture.clock);
    let context = Context {
        client: fixture.client.clone(),
        watches,
        // An elected leader would renew its Lease every other second of the simulated time.
        leadership: Leadership::without_election(fixture.clock),
        clock: fixture.clock,
    };
    let registry = fixture.registry.clone();
    let imports = controller::component(&context, &registry, Settings::default()).unwrap();
    let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
    tasks.spawn(watching.run(stop.clone()));
    tasks.spawn(imports.run(stop.clone()));
    let built = SampleImage::new("cli", &[], &[("file", "one")]).build();
    let target: ImageRef = format!("{HOST}/ocp/cli:v1").parse().unwrap();
    sample::push(&fixture.registry, &built.unwrap(), &target)
        .await
        .unwrap();
    fixture.create(stream(&["v1", "missing"], "")).await;
    fixture.clock.sleep(Duration::from_mins(1)).await;
    // The same failure of a stream of the same name and uid would be one Event with a count; a stream that is
    // made again tells again.
    let streams: Api<ImageStream> = Api::namespaced(fixture.admin.clone(), NAMESPACE);
    let mut found = streams.get("4.99").await.unwrap();
    let status = found.status.clone().unwrap();
    assert!(status.tag("missing").unwrap().import_failed());
    assert!(!status.tag("v1").unwrap().import_failed());
    // The failure is forgotten, so that it is told once more and its Event counted.
    found.status = None;
    let name = "4.99";
    let parameters = PostParams::default();
    streams
        .replace_status(name, &parameters, &found)
        .await
        .unwrap();
    fixture.clock.sleep(Duration::from_mins(1)).await;
    let metrics = context.watches.process().metrics();
    for line in [
        "neaptide_release_image_imports_total{result=\"Imported\"} 2",
        "neaptide_release_image_imports_total{result=\"NotFound\"} 2",
        "neaptide_release_image_stream_tags 2",
        "neaptide_release_image_stream_tags_failing 1",
    ] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
    stop.cancel();
    while tasks.join_next().await.is_some() {}
    // After a conflict, results are recorded in the newest state of the stream.
    fixture.assert_rights(&[("image.openshift.io", "imagestreams", "get")]);
}

#[tokio::test(start_paused = true)]
async fn requests_for_imports_have_the_rights_that_they_use_and_no_others() {
    let fixture = Fixture::open("neap-release-reimport").await;
    let mut failed = stream(&["v1"], "");
    failed["status"] = json!({"tags": [{"tag": "v1", "items": null, "conditions": [
        {"type": "ImportSuccess", "status": "False", "generation": 1},
    ]}]});
    fixture.create(failed.clone()).await;
    let streams: Api<ImageStream> = Api::namespaced(fixture.admin.clone(), NAMESPACE);
    let mut found = streams.get("4.99").await.unwrap();
    found.status = serde_json::from_value(failed["status"].clone()).unwrap();
    let parameters = PostParams::default();
    streams
        .replace_status("4.99", &parameters, &found)
        .await
        .unwrap();
    let options = reimport::ReimportOptions {
        namespaces: vec![NAMESPACE.to_owned()],
        ..reimport::ReimportOptions::default()
    };
    let writer = Writer::new(
        fixture.client.clone(),
        "reimport",
        Leadership::without_election(fixture.clock),
        fixture.clock,
    );
    let mut reimporter = Reimporter::new(writer, fixture.clock, options);
    let report = reimporter.pass(&fixture.client).await.unwrap();
    assert_eq!((report.asked.len(), report.problems.len()), (1, 0));
    // Only OpenShift has this kind.
    fixture.assert_rights(&[("image.openshift.io", "imagestreamimports", "create")]);
}

#[tokio::test(start_paused = true)]
async fn the_clean_up_has_the_rights_that_it_uses_and_no_others() {
    let fixture = Fixture::open("neap-release-mirror-cleanup").await;
    fixture.create(stream(&["v1"], "")).await;
    let config = json!({"auths": {HOST: {"username": "a", "password": "b"}}}).to_string();
    fixture
        .create(json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "mirror", "namespace": NAMESPACE},
            "stringData": {"config.json": config, "other": "x"},
        }))
        .await;
    let streams = sources::streams(&fixture.client, &[NAMESPACE.to_owned()]).await;
    assert_eq!(streams.unwrap().len(), 1);
    let found = sources::credentials(&fixture.client, NAMESPACE, "mirror").await;
    assert!(!found.unwrap().is_empty());
    fixture.assert_rights(&[]);
}
