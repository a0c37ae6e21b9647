//! The client against a registry in memory, with faults.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use neap_emulators::{
    fault_book::CallMatcher,
    network::Network,
    registry::{Access as RegistryAccess, Registry, Settings, User},
    system::Emulator,
};
use neap_kit::client::{Body, Client, Fault, Refusal, transport_fn};

use super::*;
use crate::oci::{
    credentials::Secret,
    digest::{Digest, sha256},
    manifest::Manifest,
    media_type::Family,
    transfer::{self, Progress},
};

const HOST: &str = "reg.example.com";

struct Lab {
    registry: Emulator<Registry>,
    network: Network,
    clock: Clock,
}

impl Lab {
    fn open(access: RegistryAccess) -> Self {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let settings = Settings {
            access,
            ..Settings::default()
        };
        let registry = Emulator::new(Registry::in_memory(settings, clock), clock);
        let network = Network::default();
        network.mount(HOST, registry.transport());
        Self {
            registry,
            network,
            clock,
        }
    }

    fn client(&self, credentials: Credentials) -> RegistryClient {
        let http = Client::builder("registry", self.clock).transport(self.network.transport());
        RegistryClient::new(http.build().unwrap(), credentials, Options::default())
    }

    fn user(name: &str) -> Credentials {
        let secret = Secret::Basic {
            username: name.to_owned(),
            password: "right".to_owned(),
        };
        Credentials::none().with(HOST, secret)
    }

    fn refuse(&self, path: &str, status: StatusCode, times: u32) {
        let refusal = Fault::Refused(Refusal::of(status));
        self.registry
            .faults()
            .inject(CallMatcher::path(path).times(times), refusal);
    }

    /// Ends a test: a fault that never struck proved nothing.
    fn close(&self) {
        assert_eq!(self.registry.faults().unused(), [""; 0]);
    }
}

fn image(text: &str) -> ImageRef {
    format!("{HOST}/{text}").parse().unwrap()
}

/// An image with one layer of this size.
async fn push(client: &RegistryClient, target: &ImageRef, size: usize) -> Result<Manifest, Error> {
    let layer: Vec<u8> = (0..size).map(|at| (at * 31 % 251) as u8).collect();
    let (layer, config) = (Bytes::from(layer), Bytes::from_static(b"{}"));
    client.push_bytes(target, &sha256(&layer), &layer).await?;
    client.push_bytes(target, &sha256(&config), &config).await?;
    let family = Family::Oci;
    let document = serde_json::json!({
        "schemaVersion": 2, "mediaType": family.manifest(),
        "config": {"mediaType": family.config(), "size": 2, "digest": sha256(&config).to_string()},
        "layers": [{"mediaType": family.layer(), "size": size, "digest": sha256(&layer).to_string()}],
    });
    let manifest = Manifest::read(document.to_string().into(), None, None).unwrap();
    client.push_manifest(target, &manifest).await?;
    Ok(manifest)
}

async fn layer_of(client: &RegistryClient, image: &ImageRef) -> Result<Bytes, Error> {
    let manifest = client.manifest(image).await?;
    let layer = manifest.image().unwrap().layers()[0].clone();
    client.blob_bytes(image, &layer, 64 << 20).await
}

#[tokio::test(start_paused = true)]
async fn an_image_is_pushed_found_and_read_back() {
    let lab = Lab::open(RegistryAccess::Open);
    let client = lab.client(Credentials::none());
    let target = image("ocp/cli:v1");
    assert_eq!(client.find(&target).await.unwrap(), None);
    let pushed = push(&client, &target, 5000).await.unwrap();
    assert_eq!(client.manifest(&target).await.unwrap(), pushed);
    assert_eq!(
        client.find(&target).await.unwrap().unwrap().digest,
        pushed.digest
    );
    assert_eq!(layer_of(&client, &target).await.unwrap().len(), 5000);
    assert_eq!(client.tags(&target).await.unwrap(), ["v1"]);
    assert!(
        client
            .delete(&target.at_digest(&pushed.digest))
            .await
            .unwrap()
    );
    assert!(matches!(
        client.manifest(&target).await,
        Err(Error::NotFound { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn tags_are_read_page_by_page() {
    let lab = Lab::open(RegistryAccess::Open);
    let client = lab.client(Credentials::none());
    let manifest = push(&client, &image("ocp/many:t0"), 10).await.unwrap();
    for number in 1..1005 {
        let target = image(&format!("ocp/many:t{number}"));
        client.push_manifest(&target, &manifest).await.unwrap();
    }
    let tags = client.tags(&image("ocp/many")).await.unwrap();
    assert_eq!(tags.len(), 1005);
    let pages = lab.registry.calls().lines();
    assert_eq!(
        pages
            .iter()
            .filter(|line| line.contains("/tags/list"))
            .count(),
        2
    );
}

#[tokio::test(start_paused = true)]
async fn passwords_and_tokens_open_what_they_may() {
    let users = || {
        let reader = User::new("reader", "right").pulls("ocp/*");
        let writer = User::new("writer", "right").pushes("ocp/*");
        vec![reader, writer]
    };
    for access in [
        RegistryAccess::Basic(users()),
        RegistryAccess::Token(users()),
    ] {
        let lab = Lab::open(access);
        let target = image("ocp/cli:v1");
        let writer = lab.client(Lab::user("writer"));
        push(&writer, &target, 10).await.unwrap();
        let reader = lab.client(Lab::user("reader"));
        reader.manifest(&target).await.unwrap();
        let refused = push(&reader, &image("ocp/cli:v2"), 11).await.unwrap_err();
        assert!(
            matches!(refused, Error::Denied { .. } | Error::Unauthorized { .. }),
            "{refused}"
        );
        let anonymous = lab
            .client(Credentials::none())
            .manifest(&target)
            .await
            .unwrap_err();
        assert!(
            matches!(anonymous, Error::Unauthorized { .. } | Error::Denied { .. }),
            "{anonymous}"
        );
        assert!(
            anonymous.to_string().contains("reg.example.com/ocp/cli:v1"),
            "{anonymous}"
        );
        assert_eq!(reader.tags(&target).await.unwrap(), ["v1"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_token_is_asked_for_once_until_it_ends() {
    let writer = User::new("writer", "right").pushes("ocp/*");
    let lab = Lab::open(RegistryAccess::Token(vec![writer]));
    let client = lab.client(Lab::user("writer"));
    push(&client, &image("ocp/cli:v1"), 10).await.unwrap();
    let tokens = |lab: &Lab| {
        let lines = lab.registry.calls().lines();
        lines.iter().filter(|line| line.contains("token")).count()
    };
    let first = tokens(&lab);
    for _ in 0..5 {
        client.manifest(&image("ocp/cli:v1")).await.unwrap();
    }
    assert!(
        tokens(&lab) <= first + 1,
        "{:?}",
        lab.registry.calls().lines()
    );
    lab.clock.sleep(Duration::from_hours(2)).await;
    client.manifest(&image("ocp/cli:v1")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_large_layer_goes_in_chunks_and_survives_lost_requests_and_answers() {
    let lab = Lab::open(RegistryAccess::Open);
    let client = lab.client(Credentials::none());
    let source = image("ocp/big:v1");
    push(&client, &source, 20 << 20).await.unwrap();
    for fault in [
        Fault::AnswerLost,
        Fault::RequestLost,
        Fault::Refused(Refusal::of(StatusCode::BAD_GATEWAY)),
    ] {
        // A second registry, so that nothing can be mounted.
        let other = Emulator::new(
            Registry::in_memory(Settings::default(), lab.clock),
            lab.clock,
        );
        lab.network.mount("other.example.com", other.transport());
        other.faults().inject(
            CallMatcher::path("/v2/copy/big/blobs/uploads/*")
                .method(Method::PATCH)
                .skip(1)
                .times(1),
            fault,
        );
        let target: ImageRef = "other.example.com/copy/big:v1".parse().unwrap();
        let fresh = lab.client(Credentials::none());
        let progress = Progress::default();
        transfer::copy(&fresh, &source, &target, &progress)
            .await
            .unwrap();
        assert_eq!(layer_of(&fresh, &target).await.unwrap().len(), 20 << 20);
        let counted = progress.snapshot();
        assert_eq!(
            (counted.blobs, counted.blobs_done, counted.copied),
            (2, 2, 2)
        );
        assert_eq!(counted.bytes, counted.bytes_done);
        assert_eq!(other.faults().unused(), [""; 0], "{fault:?}");
        lab.network.unmount("other.example.com");
    }
}

#[tokio::test(start_paused = true)]
async fn layers_that_break_off_are_resumed_and_wrong_ones_refused() {
    let lab = Lab::open(RegistryAccess::Open);
    let client = lab.client(Credentials::none());
    let target = image("ocp/cli:v1");
    push(&client, &target, 100_000).await.unwrap();
    let blobs = || CallMatcher::path("/v2/ocp/cli/blobs/*").method(Method::GET);
    lab.registry
        .faults()
        .inject(blobs().times(2), Fault::Truncated(30_000));
    assert_eq!(layer_of(&client, &target).await.unwrap().len(), 100_000);
    lab.close();
    lab.registry
        .faults()
        .inject(blobs().times(1), Fault::Corrupted(500));
    let wrong = layer_of(&client, &target).await.unwrap_err();
    assert!(matches!(wrong, Error::Content { .. }), "{wrong}");
    lab.close();
}

#[tokio::test(start_paused = true)]
async fn blobs_are_mounted_inside_a_registry_and_copied_once() {
    let lab = Lab::open(RegistryAccess::Open);
    let client = lab.client(Credentials::none());
    push(&client, &image("ocp/cli:v1"), 1000).await.unwrap();
    let progress = Progress::default();
    transfer::copy(
        &client,
        &image("ocp/cli:v1"),
        &image("mirror/cli:v1"),
        &progress,
    )
    .await
    .unwrap();
    assert_eq!(progress.snapshot().mounted, 2);
    assert_eq!(progress.snapshot().copied, 0);
}

#[tokio::test(start_paused = true)]
async fn refusals_name_the_image_and_what_is_to_be_done() {
    let lab = Lab::open(RegistryAccess::Open);
    let client = lab.client(Credentials::none());
    let target = image("ocp/cli:v1");
    push(&client, &target, 10).await.unwrap();
    let cases = [
        (StatusCode::UNAUTHORIZED, "Unauthorized"),
        (StatusCode::FORBIDDEN, "Forbidden"),
        (StatusCode::NOT_FOUND, "NotFound"),
    ];
    for (status, reason) in cases {
        lab.refuse("/v2/ocp/cli/manifests/*", status, 1);
        let error = client.manifest(&target).await.unwrap_err();
        assert_eq!(error.reason(), reason, "{error}");
        assert!(
            !error.is_transient() && error.to_string().contains("reg.example.com/ocp/cli:v1"),
            "{error}"
        );
    }
    let refusal = Refusal {
        status: StatusCode::TOO_MANY_REQUESTS,
        retry_after: Some(600),
    };
    lab.registry.faults().inject(
        CallMatcher::path("/v2/ocp/cli/manifests/*").times(1),
        Fault::Refused(refusal),
    );
    let limited = client.manifest(&target).await.unwrap_err();
    assert_eq!(
        (limited.reason(), limited.retry_after()),
        ("TooManyRequests", Some(Duration::from_mins(10)))
    );
    assert!(limited.is_transient());
    // Passing failures are repeated, and not seen by the caller.
    lab.refuse(
        "/v2/ocp/cli/manifests/*",
        StatusCode::SERVICE_UNAVAILABLE,
        2,
    );
    client.manifest(&target).await.unwrap();
    lab.close();
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_names_a_wrong_digest_is_refused() {
    let lab = Lab::open(RegistryAccess::Open);
    let client = lab.client(Credentials::none());
    let target = image("ocp/cli:v1");
    push(&client, &target, 10).await.unwrap();
    lab.registry.faults().inject(
        CallMatcher::path("/v2/ocp/cli/manifests/*").method(Method::GET),
        Fault::Corrupted(20),
    );
    let error = client.manifest(&target).await.unwrap_err();
    assert!(matches!(error, Error::Content { .. }), "{error}");
    lab.close();
}

/// A host that answers everything with `answer`.
fn stranger(
    network: &Network,
    host: &str,
    answer: fn(&http::Request<Body>) -> http::Response<Body>,
) -> Arc<Mutex<Vec<bool>>> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let transport = transport_fn(move |request: http::Request<Body>| {
        log.lock()
            .push(request.headers().contains_key("authorization"));
        let answer = answer(&request);
        async move { Ok::<_, neap_kit::client::TransportError>(answer) }
    });
    network.mount(host, transport);
    seen
}

#[tokio::test(start_paused = true)]
async fn credentials_do_not_follow_redirects_to_other_hosts() {
    let lab = Lab::open(RegistryAccess::Open);
    // A registry that wants a password and keeps its blobs elsewhere.
    let front = stranger(&lab.network, "front.example.com", |request| {
        let mut response = http::Response::new(Body::empty());
        let known = request.headers().contains_key("authorization");
        if !known {
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            response
                .headers_mut()
                .insert("www-authenticate", "Basic realm=x".parse().unwrap());
        } else if request.uri().path().contains("/blobs/") {
            *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
            response.headers_mut().insert(
                "location",
                "https://store.example.com/content".parse().unwrap(),
            );
        }
        response
    });
    let store = stranger(&lab.network, "store.example.com", |_| {
        http::Response::new(Body::from("hello"))
    });
    let secret = Secret::Basic {
        username: "u".to_owned(),
        password: "p".to_owned(),
    };
    let client = lab.client(Credentials::none().with("front.example.com", secret));
    let image: ImageRef = "front.example.com/ocp/cli:v1".parse().unwrap();
    let digest: Digest = sha256(b"hello");
    let blob = super::super::manifest::Descriptor::new(
        oci_spec::image::MediaType::ImageLayerGzip,
        5,
        digest,
    );
    assert_eq!(
        client.blob_bytes(&image, &blob, 100).await.unwrap(),
        "hello"
    );
    assert_eq!(*store.lock(), [false], "the store saw no credentials");
    assert!(front.lock().contains(&true));
}

#[tokio::test(start_paused = true)]
async fn an_upload_that_goes_to_another_host_goes_there_without_credentials() {
    let lab = Lab::open(RegistryAccess::Open);
    let front = stranger(&lab.network, "front.example.com", |request| {
        let mut response = http::Response::new(Body::empty());
        if !request.headers().contains_key("authorization") {
            *response.status_mut() = StatusCode::UNAUTHORIZED;
            let wanted = "Basic realm=x".parse().unwrap();
            response.headers_mut().insert("www-authenticate", wanted);
        } else if request.method() == Method::POST {
            *response.status_mut() = StatusCode::ACCEPTED;
            let elsewhere = "https://store.example.com/upload?id=1".parse().unwrap();
            response.headers_mut().insert("location", elsewhere);
        }
        response
    });
    let store = stranger(&lab.network, "store.example.com", |_| {
        let mut response = http::Response::new(Body::empty());
        *response.status_mut() = StatusCode::CREATED;
        response
    });
    let secret = Secret::Basic {
        username: "u".to_owned(),
        password: "p".to_owned(),
    };
    let client = lab.client(Credentials::none().with("front.example.com", secret));
    let target: ImageRef = "front.example.com/ocp/cli:v1".parse().unwrap();
    let content = Bytes::from_static(b"hello");
    let digest = sha256(&content);
    client.push_bytes(&target, &digest, &content).await.unwrap();
    assert_eq!(*store.lock(), [false], "the store saw no credentials");
    assert!(front.lock().contains(&true));
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_keeps_failing_is_named_and_asked_a_few_times() {
    let lab = Lab::open(RegistryAccess::Open);
    let client = lab.client(Credentials::none());
    let target = image("ocp/cli:v1");
    push(&client, &target, 10).await.unwrap();
    // Four attempts: the last succeeds, or all fail.
    for status in [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::BAD_GATEWAY] {
        lab.refuse("/v2/ocp/cli/manifests/*", status, 3);
        client.manifest(&target).await.unwrap();
        lab.refuse("/v2/ocp/cli/manifests/*", status, 4);
        let error = client.manifest(&target).await.unwrap_err();
        assert_eq!(error.reason(), "RegistryError", "{error}");
        assert!(error.is_transient());
        let text = neap_kit::why::chain(&error);
        let number = status.as_u16().to_string();
        assert!(
            text.contains("reg.example.com/ocp/cli:v1") && text.contains(&number),
            "{text}"
        );
        client.clock().sleep(Duration::from_mins(5)).await;
        client.manifest(&target).await.unwrap();
    }
    lab.close();
}

#[tokio::test(start_paused = true)]
async fn manifests_and_blobs_that_are_too_large_are_not_read() {
    static READ: AtomicUsize = AtomicUsize::new(0);
    let lab = Lab::open(RegistryAccess::Open);
    stranger(&lab.network, "huge.example.com", |request| {
        let path = request.uri().path();
        if path == "/v2/" {
            return http::Response::new(Body::empty());
        }
        let part = Bytes::from(vec![b' '; 1 << 20]);
        let parts = (0..50).map(move |_| {
            READ.fetch_add(1, Ordering::Relaxed);
            Ok::<_, std::io::Error>(part.clone())
        });
        let mut response = http::Response::new(Body::from_stream(futures::stream::iter(parts)));
        if path.ends_with("/announced") {
            let length = (50 << 20).to_string().parse().unwrap();
            response.headers_mut().insert("content-length", length);
        }
        response
    });
    let client = lab.client(Credentials::none());
    // Of 50 MiB, as much is read as a manifest may have, and of those that say so nothing.
    for (tag, read) in [("v1", 5), ("announced", 0)] {
        READ.store(0, Ordering::Relaxed);
        let image: ImageRef = format!("huge.example.com/ocp/cli:{tag}").parse().unwrap();
        let error = client.manifest(&image).await.unwrap_err();
        let text = neap_kit::why::chain(&error);
        assert!(
            text.contains("registries accept at most")
                && text.contains(&format!("huge.example.com/ocp/cli:{tag}")),
            "{text}"
        );
        assert_eq!(READ.load(Ordering::Relaxed), read, "{tag}");
    }
    let image: ImageRef = "huge.example.com/ocp/cli:v1".parse().unwrap();
    let blob = super::super::manifest::Descriptor::new(
        oci_spec::image::MediaType::ImageLayerGzip,
        100,
        sha256(b"x"),
    );
    let error = client.blob_bytes(&image, &blob, 1000).await.unwrap_err();
    assert!(matches!(error, Error::Size { wanted: 100, .. }), "{error}");
}

#[test]
fn this_machine_is_known_by_its_names() {
    for host in [
        "localhost",
        "localhost:5000",
        "127.0.0.1:5000",
        "127.9.9.9",
        "[::1]:5000",
    ] {
        assert!(is_loopback(host), "{host}");
    }
    for host in [
        "localhost.example.com",
        "reg.example.com:5000",
        "10.0.0.1",
        "[fd00::1]:5000",
    ] {
        assert!(!is_loopback(host), "{host}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_chunk_and_the_end_of_an_upload_may_take_longer_than_other_requests() {
    let lab = Lab::open(RegistryAccess::Open);
    let client = lab.client(Credentials::none());
    let slow = Fault::Slow(Duration::from_secs(20));
    let content = Bytes::from(vec![7; 10 << 20]);
    let digest = sha256(&content);
    let target = image("ocp/big:v1");
    for method in [Method::PATCH, Method::PUT] {
        let uploads = CallMatcher::path("/v2/ocp/big/blobs/uploads/*").method(method);
        lab.registry.faults().inject(uploads, slow);
    }
    let source = image("ocp/source:v1");
    client.push_bytes(&source, &digest, &content).await.unwrap();
    let layer = oci_spec::image::MediaType::ImageLayerGzip;
    let descriptor = super::super::manifest::Descriptor::new(layer, 10 << 20, digest.clone());
    let stream = client.blob(&source, &descriptor).unwrap();
    lab.registry.calls().clear();
    client
        .push_stream(&target, &digest, stream, drop)
        .await
        .unwrap();
    let calls = lab.registry.calls().calls();
    let uploads = calls.iter().filter(|call| call.path.contains("/uploads/"));
    let methods: Vec<_> = uploads.map(|call| call.method.as_str()).collect();
    assert_eq!(
        methods,
        ["POST", "PATCH", "PATCH", "PUT"],
        "none is repeated"
    );
    lab.close();
}

#[tokio::test(start_paused = true)]
async fn a_blob_that_breaks_off_after_each_byte_is_given_up() {
    let lab = Lab::open(RegistryAccess::Open);
    let seen = stranger(&lab.network, "drip.example.com", |request| {
        let mut response = http::Response::new(Body::empty());
        if request.uri().path().contains("/blobs/") {
            if request.headers().contains_key("range") {
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            }
            *response.body_mut() = Body::from("x");
        }
        response
    });
    let client = lab.client(Credentials::none());
    let image: ImageRef = "drip.example.com/ocp/cli:v1".parse().unwrap();
    let content = vec![b'x'; 200];
    let blob = super::super::manifest::Descriptor::new(
        oci_spec::image::MediaType::ImageLayerGzip,
        200,
        sha256(&content),
    );
    let error = client.blob_bytes(&image, &blob, 1000).await.unwrap_err();
    assert!(matches!(error, Error::Size { found: 5, .. }), "{error}");
    assert_eq!(
        seen.lock().len(),
        6,
        "the question for the version, and five"
    );
}

/// The blobs whose body is on its way, now and at most.
#[derive(Clone, Default)]
struct OpenBodies(Arc<(AtomicUsize, AtomicUsize)>);

impl OpenBodies {
    fn open(&self) -> Self {
        let open = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(open, Ordering::SeqCst);
        self.clone()
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::SeqCst)
    }

    /// The content, of which a part arrives every second.
    fn slowly(&self, clock: Clock, content: Bytes) -> Body {
        let open = OpenBody(self.open());
        let parts = futures::stream::unfold((open, content), move |(open, mut rest)| async move {
            if rest.is_empty() {
                return None;
            }
            clock.sleep(Duration::from_secs(1)).await;
            let part = rest.split_to(rest.len().min(50));
            Some((Ok::<_, std::io::Error>(part), (open, rest)))
        });
        Body::from_stream(parts)
    }
}

struct OpenBody(OpenBodies);

impl Drop for OpenBody {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn blobs_on_their_way_are_bounded_over_all_images_and_credentials() {
    let lab = Lab::open(RegistryAccess::Open);
    let other = Emulator::new(
        Registry::in_memory(Settings::default(), lab.clock),
        lab.clock,
    );
    lab.network.mount("other.example.com", other.transport());
    let (open, clock, registry) = (OpenBodies::default(), lab.clock, lab.registry.transport());
    let bodies = open.clone();
    let slow = transport_fn(move |request: http::Request<Body>| {
        let (registry, open) = (registry.clone(), bodies.clone());
        let blob = request.method() == Method::GET && request.uri().path().contains("/blobs/");
        async move {
            let response = tower::ServiceExt::oneshot(registry, request).await?;
            if !blob {
                return Ok(response);
            }
            let (head, body) = response.into_parts();
            let content = body.bytes(1 << 20).await.unwrap();
            Ok(http::Response::from_parts(
                head,
                open.slowly(clock, content),
            ))
        }
    });
    let client = lab.client(Credentials::none());
    let mut layers = Vec::new();
    for number in 0..24_u8 {
        let content = Bytes::from(vec![number; 200]);
        let digest = sha256(&content);
        let source = image("ocp/cli:v1");
        client.push_bytes(&source, &digest, &content).await.unwrap();
        let layer = oci_spec::image::MediaType::ImageLayerGzip;
        layers.push(super::super::manifest::Descriptor::new(layer, 200, digest));
    }
    lab.network.unmount(HOST);
    lab.network.mount(HOST, slow);
    let fresh = lab.client(Credentials::none());
    let copies = layers.chunks(6).enumerate().map(|(number, layers)| {
        // Each has credentials of its own, as namespaces have.
        let client = fresh.with_credentials(Lab::user(&number.to_string()));
        let target: ImageRef = format!("other.example.com/copy/{number}").parse().unwrap();
        async move {
            let progress = Progress::default();
            transfer::copy_blobs(&client, &image("ocp/cli"), &target, layers, &progress).await
        }
    });
    futures::future::try_join_all(copies).await.unwrap();
    assert_eq!(open.most(), fresh.parallelism());
}
