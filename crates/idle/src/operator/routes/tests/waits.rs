//! The responses to our resolvers about a wake, over a socket.

use tokio::net::TcpListener;

use super::*;
use crate::{
    http_api::{ApiClient, serve},
    resolver::{hold::WakeRequester as _, operator_client::OperatorClient},
};

/// What the server does with writes of replicas.
#[derive(Debug, Clone, Copy)]
enum Writes {
    Succeed,
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

/// A resolver, and the operator that it calls.
struct Pair {
    resolver: OperatorClient,
    targets: Api<Deployment>,
    _tasks: [JoinSet<()>; 2],
    _pocket: Pocket,
}

impl Pair {
    /// With these objects, on a server that handles writes so.
    async fn open(target: bool, sleepy: bool, writes: Writes) -> Self {
        let authenticator = authenticator().allow_unauthenticated(true);
        let mut operator = operator_with(authenticator, |client| scaling(client, writes)).await;
        if target {
            operator.target().await;
        }
        if sleepy {
            operator.sleepy().await;
            while operator.routes.services.list("").is_empty() {
                tokio::task::yield_now().await;
            }
        }
        if matches!(writes, Writes::Hang) {
            operator.routes.wake_timeout = Duration::from_millis(20);
        }
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let targets = operator.targets();
        let served = serve(
            "operator",
            socket,
            Arc::new(operator.routes),
            operator.clock,
        );
        let mut serving = JoinSet::new();
        serving.spawn(served.run(CancellationToken::new()));
        Self {
            resolver: OperatorClient::new(ApiClient::new(operator.clock, None), address),
            targets,
            _tasks: [operator.tasks, serving],
            _pocket: operator.pocket,
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
async fn a_resolver_gets_its_response_once_replicas_are_written() {
    let pair = Pair::open(true, true, Writes::Succeed).await;
    assert_eq!(pair.wake().await, Ok(()));
    assert_eq!(pair.replicas().await, Some(1));
    // There is nothing left to write.
    assert_eq!(pair.wake().await, Ok(()));
}

#[tokio::test]
async fn a_resolver_learns_why_nothing_was_woken() {
    for (target, sleepy, writes, says) in [
        (
            false,
            true,
            Writes::Succeed,
            "status 502 Bad Gateway: Deployment default/cart does not exist",
        ),
        (
            true,
            false,
            Writes::Succeed,
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
async fn a_wake_that_is_in_progress_has_not_failed() {
    let pair = Pair::open(true, true, Writes::Hang).await;
    assert_eq!(pair.wake().await, Ok(()));
    assert_eq!(pair.replicas().await, Some(0));
}

#[tokio::test(start_paused = true)]
async fn a_resolver_of_kube_elasti_waits_for_nothing() {
    let operator = operator_with(authenticator(), |client| scaling(client, Writes::Hang)).await;
    operator.target().await;
    operator.sleepy().await;
    operator.clock.sleep(Duration::from_secs(1)).await;
    let before = operator.clock.uptime();
    let (status, _, text) = response_parts(operator.wake("good").await).await;
    assert_eq!(status, 200);
    assert_eq!(text, r#"{"message":"Request received successfully!"}"#);
    assert_eq!(operator.clock.uptime(), before);
    let path = "/informer/incoming-request?wait=written";
    let (status, _, same) = operator.call(request("POST", path, "good", WAKE)).await;
    assert_eq!((status, same), (202, text));
    assert_eq!(operator.clock.uptime(), before + WAKE_RESPONSE_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_resolver_learns_that_the_server_refuses_the_write() {
    let operator = operator_with(authenticator(), |client| scaling(client, Writes::Refused)).await;
    operator.target().await;
    operator.sleepy().await;
    operator.clock.sleep(Duration::from_secs(1)).await;
    let path = "/informer/incoming-request?wait=written";
    let (status, _, text) = operator.call(request("POST", path, "good", WAKE)).await;
    assert_eq!(status, 502, "{text}");
    assert!(text.contains("is forbidden: not you"), "{text}");
}
