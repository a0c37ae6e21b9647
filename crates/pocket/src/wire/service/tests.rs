use futures::FutureExt;
use http_body_util::{BodyExt, Full};
use serde_json::json;
use tokio::sync::watch;
use tower::ServiceExt;

use super::*;
use crate::{Options, Pocket, environment::Environment, store::Hooks};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn pocket() -> Pocket {
    Pocket::open(Options::new(Environment::simulated(1)))
        .await
        .unwrap()
}

fn request(method: &str, uri: &str, body: String) -> HttpRequest<Full<Bytes>> {
    let request = HttpRequest::builder()
        .method(method)
        .uri(uri)
        .header("host", "a");
    request.body(Full::from(body)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_streams_at_once_and_leaves_other_requests_alone() {
    struct SlowHooks(watch::Receiver<bool>);
    impl Hooks for SlowHooks {
        fn before_write<'a>(&'a self, _: crate::store::Access<'a>) -> BoxedCheck<'a> {
            let mut go = self.0.clone();
            Box::pin(async move {
                go.wait_for(|go| *go).await.unwrap();
                Ok(())
            })
        }
    }
    type BoxedCheck<'a> = std::pin::Pin<Box<dyn Future<Output = Result<()>> + Send + 'a>>;

    let (stop, stopped) = watch::channel(false);
    let (go, wait) = watch::channel(false);
    let pocket = pocket().await;
    let view = pocket.view(Some(Arc::new(SlowHooks(wait))));
    let service = pocket.service_over(view);
    let service = service.for_connection(Vec::new(), stopped, OpenAnswers::default());
    let watching = request("GET", &format!("{MAPS}?watch=true"), String::new());
    let watching = service.clone().oneshot(watching).await.unwrap();
    let mut body = watching.into_body();
    while body.frame().now_or_never().is_some() {}
    let map = json!({"metadata": {"name": "late"}}).to_string();
    let mut writing = Box::pin(service.clone().oneshot(request("POST", MAPS, map)));
    assert!((&mut writing).now_or_never().is_none(), "it waits");
    stop.send_replace(true);
    let ended = body.frame().now_or_never();
    assert!(matches!(ended, Some(None)), "the watch has ended");
    assert!((&mut writing).now_or_never().is_none(), "it still waits");
    go.send_replace(true);
    assert_eq!(writing.await.unwrap().status(), StatusCode::CREATED);
}

#[tokio::test(start_paused = true)]
async fn options_of_a_deletion_may_be_protobuf_whatever_is_deleted() {
    let pocket = pocket().await;
    let version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    });
    let names = json!({"plural": "gadgets", "kind": "Gadget"});
    let definition = json!({
        "metadata": {"name": "gadgets.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]},
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = request("POST", path, definition.to_string());
    assert_eq!(
        pocket.service().oneshot(made).await.unwrap().status(),
        StatusCode::CREATED
    );
    // An envelope around an empty message: type, then an empty body.
    let mut bytes = b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x00".to_vec();
    for (uri, expected) in [
        ("/apis/example.com/v1/gadgets", StatusCode::OK),
        ("/apis/example.com/v1/gadgets/none", StatusCode::NOT_FOUND),
    ] {
        let request = HttpRequest::delete(uri)
            .header(CONTENT_TYPE, crate::wire::protobuf::CONTENT_TYPE)
            .body(Full::<Bytes>::from(bytes.clone()))
            .unwrap();
        let answer = pocket.service().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), expected, "{uri}");
    }
    bytes[0] = b'x';
    let broken = HttpRequest::delete("/apis/example.com/v1/gadgets")
        .header(CONTENT_TYPE, crate::wire::protobuf::CONTENT_TYPE)
        .body(Full::<Bytes>::from(bytes))
        .unwrap();
    let answer = pocket.service().oneshot(broken).await.unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
}

/// Counts how often a task moves to the patient lane.
#[derive(Default)]
struct Moves(std::sync::atomic::AtomicUsize);

impl crate::environment::Spawn for Moves {
    fn spawn(&self, _: &'static str, task: BoxFuture<()>) {
        tokio::runtime::Handle::current().spawn(task);
    }

    fn spawn_patient(&self, name: &'static str, task: BoxFuture<()>) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.spawn(name, task);
    }
}

#[tokio::test]
async fn large_bodies_are_handled_on_the_patient_lane() {
    for (bytes, expected) in [(10, 0), (LARGE_BODY_BYTES, 1)] {
        let service = pocket().await.service();
        let map = json!({"metadata": {"name": "m"}, "data": {"a": "x".repeat(bytes)}});
        let request = request("POST", MAPS, map.to_string());
        let moves = Arc::new(Moves::default());
        let task = async move {
            assert_eq!(service.answer(request).await.status(), StatusCode::CREATED);
        };
        lane::travel(moves.clone(), "write", Box::pin(task)).await;
        let moved = moves.0.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(moved, expected, "{bytes}");
    }
}
