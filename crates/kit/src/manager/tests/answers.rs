use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use super::{super::listener::respond, *};
use crate::{controller::ControllerOptions, key::Key};

async fn get(health: &Health, path: &str) -> (u16, String) {
    get_with(health, path, None).await
}

async fn get_with(health: &Health, path: &str, token: Option<&[u8]>) -> (u16, String) {
    let response = respond(health, &Method::GET, path, token);
    let status = response.status().as_u16();
    let body = response.into_body().frame().await.unwrap().unwrap();
    let text = body.into_data().unwrap().to_vec();
    (status, String::from_utf8(text).unwrap())
}

#[tokio::test(start_paused = true)]
async fn probes_are_answered_with_a_status_and_a_reason() {
    let bench = bench();
    let health = bench.manager.health();
    assert_eq!(get(&health, "/healthz").await, (200, "ok\n".into()));
    let (status, text) = get(&health, "/readyz").await;
    assert_eq!((status, &*text), (503, "the components have not started\n"));
    assert_eq!(get(&health, "/metrics").await.0, 200);
    let (status, text) = get(&health, "/").await;
    assert!(status == 404 && text.contains("/readyz"), "{status} {text}");
    let refused = respond(&health, &Method::POST, "/healthz", None);
    assert_eq!(refused.status().as_u16(), 405);
}

#[tokio::test(start_paused = true)]
async fn the_debug_state_requires_its_token() {
    let bench = bench();
    let (closed, open) = (
        bench.manager.health(),
        bench.manager.health().with_debug_token("secret"),
    );
    for (health, token, status) in [
        (&closed, None, 401),
        (&closed, Some("Bearer "), 401),
        (&open, None, 401),
        (&open, Some("Bearer secre"), 401),
        (&open, Some("Bearer Secret"), 401),
        (&open, Some("secret"), 401),
        (&open, Some("Bearer secret"), 200),
    ] {
        let token_bytes = token.map(str::as_bytes);
        let answer = get_with(health, "/debug/state.json", token_bytes).await;
        assert_eq!(answer.0, status, "{token:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_debug_state_shows_components_watches_queues_and_leadership() {
    let mut bench = bench();
    bench.context.cache::<ConfigMap>().unwrap();
    let queue = bench
        .context
        .controller::<Key>(ControllerOptions::new("sorter"));
    queue.enqueuer().enqueue(Key::new("shop", "cart"));
    bench.manager.add(obedient("roof", &Arc::default()));
    let health = bench.manager.health().with_debug_token("secret");
    let (_, text) = get_with(&health, "/debug/state.json", Some(b"Bearer secret")).await;
    let state: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        state["components"],
        json!([{"name": "roof", "state": "waiting", "forSeconds": 0}])
    );
    assert_eq!(
        state["watches"],
        json!([{
            "cluster": "", "address": "/api/v1/configmaps", "labels": null, "fields": null,
            "synced": false, "unserved": false, "objects": 0, "undecodable": [],
        }])
    );
    let none = json!({"count": 0, "keys": []});
    assert_eq!(
        state["queues"],
        json!([{
            "controller": "sorter", "paused": false, "running": none,
            "waiting": {"count": 1, "keys": ["shop/cart"]}, "failing": none,
        }])
    );
    assert_eq!(state["leadership"], json!({"leads": true, "term": 0}));
    assert_eq!(state["uptimeSeconds"], 0);
}

#[tokio::test]
async fn the_listener_serves_until_all_other_components_have_ended() {
    let mut bench = bench();
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let (stop, gate) = (CancellationToken::new(), CancellationToken::new());
    let waits = gate.clone();
    let slow = Component::new("slow", |_| async move { waits.cancelled().await });
    bench.manager.add(slow);
    let health = bench.manager.health();
    bench.manager.add(listener(socket, health));
    let script = async {
        assert!(
            request(address, "/readyz")
                .await
                .starts_with("HTTP/1.1 200")
        );
        stop.cancel();
        tokio::task::yield_now().await;
        let answer = request(address, "/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.ends_with("the process is stopping\n"), "{answer}");
        gate.cancel();
    };
    let (ended, ()) = tokio::join!(bench.manager.run(stop.clone()), script);
    assert_eq!(ended, Ok(()));
}

#[tokio::test]
async fn the_listener_stops_while_all_connections_are_in_use() {
    let mut bench = bench();
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let health = bench.manager.health();
    bench.manager.add(listener(socket, health));
    let stop = CancellationToken::new();
    let crowd = async {
        let mut held = Vec::new();
        for _ in 0..64 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // A response shows that the connection was accepted; it stays open.
            let request = "GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n";
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut first = [0; 8];
            stream.read_exact(&mut first).await.unwrap();
            held.push(stream);
        }
        stop.cancel();
        held
    };
    let (ended, _held) = tokio::join!(bench.manager.run(stop.clone()), crowd);
    assert_eq!(ended, Ok(()));
}

#[tokio::test]
async fn the_listener_refuses_requests_without_one_clear_host() {
    let mut bench = bench();
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let health = bench.manager.health();
    bench.manager.add(listener(socket, health));
    let stop = CancellationToken::new();
    let clients = async {
        for (target, hosts, status) in [
            ("/healthz HTTP/1.1", "host: here\r\n", 200),
            ("/healthz HTTP/1.0", "", 200),
            ("/healthz HTTP/1.1", "", 400),
            ("/healthz HTTP/1.1", "host: here\r\nhost: here\r\n", 400),
            ("/healthz HTTP/1.1", "host: he re\r\n", 400),
            ("http://here/healthz HTTP/1.1", "host: here\r\n", 200),
            ("http://there/healthz HTTP/1.1", "host: here\r\n", 400),
        ] {
            let head = format!("GET {target}\r\n{hosts}connection: close\r\n\r\n");
            let answer = exchange(address, &head).await;
            let found = answer.split(' ').nth(1).map(str::parse);
            assert_eq!(found, Some(Ok(status)), "{head:?}: {answer}");
        }
        stop.cancel();
    };
    let (ended, ()) = tokio::join!(bench.manager.run(stop.clone()), clients);
    assert_eq!(ended, Ok(()));
}

async fn request(address: std::net::SocketAddr, path: &str) -> String {
    let head = format!("GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n");
    exchange(address, &head).await
}

async fn exchange(address: std::net::SocketAddr, head: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}
