use std::sync::Mutex;

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::*;
use crate::{
    api::Trigger,
    trigger::{PrometheusDefaults, query::TriggerQueries},
};

/// What the server does with each connection.
#[derive(Clone)]
enum Script {
    /// Sends this and closes.
    Responds(String),
    /// Reads and sends nothing.
    Hangs,
    /// Sends a body without end.
    Endless,
    /// Closes at once.
    Closes,
}

/// A server that plays a script to every connection, and records the requests.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    _task: JoinSet<()>,
}

impl Server {
    async fn playing(script: Script) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let notes = requests.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut talks = JoinSet::new();
            while let Ok((stream, _)) = socket.accept().await {
                talks.spawn(play(stream, script.clone(), notes.clone()));
            }
        });
        Self {
            address,
            requests,
            _task: task,
        }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn make_query(&self, metadata: &Value) -> Query {
        self.make_query_with(metadata, &PrometheusDefaults::default())
    }

    fn make_query_with(&self, metadata: &Value, defaults: &PrometheusDefaults) -> Query {
        let mut metadata = metadata.clone();
        metadata["query"] = "up".into();
        metadata["serverAddress"] = format!("http://{}", self.address).into();
        let trigger = Trigger {
            metadata: Some(metadata),
            ..Trigger::default()
        };
        let cooldown = Duration::from_mins(15);
        let queries = TriggerQueries::of(&trigger, cooldown, defaults);
        queries.unwrap().value
    }

    async fn query(&self) -> Result<f64, Problem> {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let query = self.make_query(&json!({"headers": {"Authorization": "Bearer hush"}}));
        Prometheus::new(clock).query(&query).await
    }
}

async fn play(mut stream: TcpStream, script: Script, notes: Arc<Mutex<Vec<String>>>) {
    if matches!(script, Script::Closes) {
        return;
    }
    let mut request = vec![0; 4096];
    let read = stream.read(&mut request).await.unwrap_or(0);
    let request = String::from_utf8_lossy(&request[..read]).into_owned();
    notes.lock().unwrap().push(request);
    match script {
        Script::Responds(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        Script::Endless => {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
            let mut sent = stream.write_all(head.as_bytes()).await;
            while sent.is_ok() {
                sent = stream.write_all(chunk.as_bytes()).await;
            }
        }
        Script::Hangs => std::future::pending().await,
        Script::Closes => {}
    }
}

fn responds(status: &str, body: &str) -> Script {
    let length = body.len();
    Script::Responds(format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}

fn succeeds(kind: &str, result: &Value) -> Script {
    let body = json!({"status": "success", "data": {"resultType": kind, "result": result}});
    responds("200 OK", &body.to_string())
}

fn sample(value: &str) -> Value {
    json!({"metric": {}, "value": [1_767_225_600, value]})
}

#[tokio::test]
async fn a_value_is_queried_with_credentials_and_parsed() {
    let server = Server::playing(succeeds("vector", &json!([sample("0.25")]))).await;
    assert_eq!(server.query().await, Ok(0.25));
    let requests = server.requests();
    assert_eq!(requests.len(), 1);
    let lines: Vec<_> = requests[0].lines().collect();
    assert_eq!(
        lines[0],
        "GET /api/v1/query?query=up&time=2026-01-01T00:00:00Z HTTP/1.1"
    );
    assert!(lines.contains(&"authorization: Bearer hush"), "{lines:?}");
    assert!(
        lines.contains(&format!("host: {}", server.address).as_str()),
        "{lines:?}"
    );
}

#[tokio::test]
async fn any_other_response_is_a_problem() {
    let long = "x".repeat(2 << 20);
    let moved = "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    for (script, reason) in [
        (succeeds("vector", &json!([])), "NoValue"),
        (
            succeeds("vector", &json!([sample("1"), sample("2")])),
            "NotOneValue",
        ),
        (succeeds("vector", &json!([sample("NaN")])), "NotANumber"),
        (succeeds("vector", &json!([sample("+Inf")])), "NotANumber"),
        (succeeds("scalar", &json!([1, "0"])), "NotOneValue"),
        (responds("500 Oh", "hush"), "PrometheusFailed"),
        (responds("200 OK", "hush"), "PrometheusFailed"),
        (responds("200 OK", &long), "PrometheusFailed"),
        (Script::Endless, "PrometheusFailed"),
        (Script::Responds(moved.into()), "PrometheusFailed"),
        (
            Script::Responds("hush\r\n\r\n".into()),
            "PrometheusUnreachable",
        ),
        (
            Script::Responds("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhush".into()),
            "PrometheusUnreachable",
        ),
        (Script::Closes, "PrometheusUnreachable"),
    ] {
        let server = Server::playing(script).await;
        let problem = server.query().await.unwrap_err();
        assert_eq!(problem.reason(), reason, "{problem}");
        assert!(
            !format!("{problem:?} {problem}").contains("hush"),
            "{problem:?}"
        );
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let target = Server::playing(succeeds("vector", &json!([sample("0")]))).await;
    let location = format!("http://{}/", target.address);
    let moved = format!("HTTP/1.1 307 No\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
    let server = Server::playing(Script::Responds(moved)).await;
    let problem = server.query().await.unwrap_err();
    let message = None;
    assert_eq!(
        problem,
        Problem::Status {
            status: 307,
            message
        }
    );
    assert_eq!(target.requests().len(), 0);
}

#[tokio::test]
async fn a_refusal_without_credentials_names_the_server() {
    let server = Server::playing(responds("401 No", "hush")).await;
    let mut defaults = PrometheusDefaults {
        authorization: Some("Bearer hush".parse().unwrap()),
        ..PrometheusDefaults::default()
    };
    let prometheus = Prometheus::new(Clock::system());
    let query = server.make_query_with(&json!({}), &defaults);
    let problem = prometheus.query(&query).await.unwrap_err();
    let origin = format!("http://{}", server.address);
    assert_eq!(
        problem,
        Problem::Withheld {
            status: 401,
            origin: origin.clone()
        }
    );
    defaults.origins = origin.parse().unwrap();
    let query = server.make_query_with(&json!({}), &defaults);
    let problem = prometheus.query(&query).await.unwrap_err();
    let message = None;
    assert_eq!(
        problem,
        Problem::Status {
            status: 401,
            message
        }
    );
    let shown = |request: &String| request.contains("authorization: Bearer hush");
    let requests: Vec<_> = server.requests().iter().map(shown).collect();
    assert_eq!(requests, [false, true]);
}

#[tokio::test]
async fn a_server_that_hangs_is_a_timeout() {
    let server = Server::playing(Script::Hangs).await;
    let limit = Duration::from_millis(50);
    let prometheus = Prometheus::new(Clock::system()).with_timeout(limit);
    let answer = prometheus.query(&server.make_query(&json!({}))).await;
    assert_eq!(answer, Err(Problem::Timeout(limit)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_closed_port_is_unreachable() {
    let server = Server::playing(Script::Closes).await;
    let query = server.make_query(&json!({}));
    drop(server);
    let answer = Prometheus::new(Clock::system()).query(&query).await;
    assert_eq!(answer.unwrap_err().reason(), "PrometheusUnreachable");
}

/// Knows one name.
#[derive(Debug)]
struct OneName;

impl KnownNames for OneName {
    fn address(&self, host: &str) -> Option<IpAddr> {
        let known = host == "prometheus-operated.monitoring.svc.cluster.local";
        known.then(|| "127.0.0.1".parse().unwrap())
    }
}

#[tokio::test]
async fn a_name_that_only_the_cluster_knows_is_resolved() {
    let server = Server::playing(succeeds("vector", &json!([sample("2")]))).await;
    let port = server.address.port();
    let query = |host: &str| {
        let metadata = json!({"query": "up", "serverAddress": format!("http://{host}:{port}")});
        let trigger = Trigger {
            metadata: Some(metadata),
            ..Trigger::default()
        };
        let defaults = PrometheusDefaults::default();
        let queries = TriggerQueries::of(&trigger, Duration::from_mins(15), &defaults);
        queries.unwrap().value
    };
    let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let prometheus = Prometheus::with_names(clock, Some(Arc::new(OneName)));
    let value = prometheus
        .query(&query("prometheus-operated.monitoring.svc.cluster.local"))
        .await;
    assert_eq!(value, Ok(2.0));
    // Any other name is one of the machine.
    assert_eq!(prometheus.query(&query("localhost")).await, Ok(2.0));
    let unknown = prometheus.query(&query("nothing.invalid")).await;
    assert!(
        matches!(unknown, Err(Problem::Unreachable(_))),
        "{unknown:?}"
    );
}
