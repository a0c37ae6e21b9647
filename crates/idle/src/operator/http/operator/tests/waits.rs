//! What a resolver of ours hears of a wake, over a socket.

use tokio::net::TcpListener;

use super::*;
use crate::{
    operator::{asking::Asking, http::serve},
    resolver::{hold::Waker as _, operator::Operator},
};

/// What becomes of replicas that are written.
#[derive(Debug, Clone, Copy)]
enum Writes {
    Stand,
    Refused,
    Hang,
}

fn scaling(client: Client, writes: Writes) -> Client {
    let server = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        let scales = request.method() != "GET" && request.uri().path().ends_with("/scale");
        async move {
            match writes {
                Writes::Refused if scales => Ok(forbidden()),
                Writes::Hang if scales => std::future::pending().await,
                _ => client.send(request).await,
            }
        }
    });
    Client::new(server, "default")
}

fn forbidden() -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden",
        "code": 403, "message": "deployments.apps \"cart\" is forbidden: not you",
    });
    let mut answer = Response::new(Body::from(status.to_string().into_bytes()));
    *answer.status_mut() = StatusCode::FORBIDDEN;
    answer
}

/// A resolver, and the operator that it asks.
struct Pair {
    resolver: Operator,
    targets: Api<Deployment>,
    _tasks: [JoinSet<()>; 2],
    _pocket: Pocket,
}

impl Pair {
    /// With these objects there, on a server that does so.
    async fn open(target: bool, sleepy: bool, writes: Writes) -> Self {
        let door = door().standing_open(true);
        let mut stage = stage_with(door, |client| scaling(client, writes)).await;
        if target {
            stage.target().await;
        }
        if sleepy {
            stage.sleepy().await;
            while stage.routes.services.list("").is_empty() {
                tokio::task::yield_now().await;
            }
        }
        if matches!(writes, Writes::Hang) {
            stage.routes.patience = Duration::from_millis(20);
        }
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let targets = stage.targets();
        let served = serve("operator", socket, Arc::new(stage.routes), stage.clock);
        let mut serving = JoinSet::new();
        serving.spawn(served.run(CancellationToken::new()));
        Self {
            resolver: Operator::new(Asking::new(stage.clock), address),
            targets,
            _tasks: [stage.tasks, serving],
            _pocket: stage.pocket,
        }
    }

    async fn wake(&self) -> Result<(), String> {
        let woken = self.resolver.wake(Key::new("default", "cart"), 1).await;
        woken.map_err(|error| error.to_string())
    }

    async fn replicas(&self) -> Option<i32> {
        let target = self.targets.get("cart").await.unwrap();
        target.spec.unwrap().replicas
    }
}

#[tokio::test]
async fn a_resolver_is_answered_once_replicas_are_written() {
    let pair = Pair::open(true, true, Writes::Stand).await;
    assert_eq!(pair.wake().await, Ok(()));
    assert_eq!(pair.replicas().await, Some(1));
    // There is nothing left to write.
    assert_eq!(pair.wake().await, Ok(()));
}

#[tokio::test]
async fn a_resolver_is_told_why_nothing_was_woken() {
    for (target, sleepy, writes, says) in [
        (
            false,
            true,
            Writes::Stand,
            "status 502 Bad Gateway: Deployment default/cart does not exist",
        ),
        (
            true,
            false,
            Writes::Stand,
            "status 404 Not Found: no ElastiService is known here",
        ),
    ] {
        let pair = Pair::open(target, sleepy, writes).await;
        let why = pair.wake().await.unwrap_err();
        assert!(why.contains(says), "{writes:?}: {why}");
        assert!(why.starts_with("127.0.0.1:"), "{why}");
    }
}

#[tokio::test]
async fn a_wake_that_is_still_under_way_has_not_failed() {
    let pair = Pair::open(true, true, Writes::Hang).await;
    assert_eq!(pair.wake().await, Ok(()));
    assert_eq!(pair.replicas().await, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_resolver_of_the_original_waits_for_nothing() {
    let stage = stage_with(door(), |client| scaling(client, Writes::Hang)).await;
    stage.target().await;
    stage.sleepy().await;
    stage.clock.sleep(Duration::from_secs(1)).await;
    let before = stage.clock.uptime();
    let (status, _, text) = said(stage.wake("good").await).await;
    assert_eq!(status, 200);
    assert_eq!(text, r#"{"message":"Request received successfully!"}"#);
    assert_eq!(stage.clock.uptime(), before);
    let path = "/informer/incoming-request?wait=written";
    let (status, _, same) = stage.said(asked("POST", path, "good", WAKE)).await;
    assert_eq!((status, same), (202, text));
    assert_eq!(stage.clock.uptime(), before + OUTCOME_WITHIN);
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_told_that_the_server_refuses_the_write() {
    let stage = stage_with(door(), |client| scaling(client, Writes::Refused)).await;
    stage.target().await;
    stage.sleepy().await;
    stage.clock.sleep(Duration::from_secs(1)).await;
    let path = "/informer/incoming-request?wait=written";
    let (status, _, text) = stage.said(asked("POST", path, "good", WAKE)).await;
    assert_eq!(status, 502, "{text}");
    assert!(text.contains("is forbidden: not you"), "{text}");
}
