use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::*;
use crate::{
    api::Trigger,
    trigger::{Defaults, question::Questions},
};

/// What the server does with each connection.
#[derive(Clone)]
enum Script {
    /// Sends this and closes.
    Says(String),
    /// Reads and says nothing.
    Hangs,
    /// Says that much is to come and sends it for ever.
    Endless,
    /// Closes at once.
    Closes,
}

/// A server that plays a script to whoever connects, and keeps what it heard.
struct Server {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
    _task: JoinSet<()>,
}

impl Server {
    async fn playing(script: Script) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let notes = heard.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut talks = JoinSet::new();
            while let Ok((stream, _)) = socket.accept().await {
                talks.spawn(play(stream, script.clone(), notes.clone()));
            }
        });
        Self {
            address,
            heard,
            _task: task,
        }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    fn question(&self, metadata: &Value) -> Question {
        self.question_of(metadata, &Defaults::default())
    }

    fn question_of(&self, metadata: &Value, defaults: &Defaults) -> Question {
        let mut metadata = metadata.clone();
        metadata["query"] = "up".into();
        metadata["serverAddress"] = format!("http://{}", self.address).into();
        let trigger = Trigger {
            metadata: Some(metadata),
            ..Trigger::default()
        };
        let cooldown = Duration::from_mins(15);
        let questions = Questions::of(&trigger, cooldown, defaults);
        questions.unwrap().value
    }

    async fn ask(&self) -> Result<f64, Problem> {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let question = self.question(&json!({"headers": {"Authorization": "Bearer hush"}}));
        Prometheus::new(clock).ask(&question).await
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
        Script::Says(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
        Script::Endless => {
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
            let mut said = stream.write_all(head.as_bytes()).await;
            while said.is_ok() {
                said = stream.write_all(chunk.as_bytes()).await;
            }
        }
        Script::Hangs => std::future::pending().await,
        Script::Closes => {}
    }
}

fn says(status: &str, body: &str) -> Script {
    let length = body.len();
    Script::Says(format!(
        "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    ))
}

fn succeeds(kind: &str, result: &Value) -> Script {
    let body = json!({"status": "success", "data": {"resultType": kind, "result": result}});
    says("200 OK", &body.to_string())
}

fn sample(value: &str) -> Value {
    json!({"metric": {}, "value": [1_767_225_600, value]})
}

#[tokio::test]
async fn a_value_is_asked_for_with_credentials_and_read() {
    let server = Server::playing(succeeds("vector", &json!([sample("0.25")]))).await;
    assert_eq!(server.ask().await, Ok(0.25));
    let heard = server.heard();
    assert_eq!(heard.len(), 1);
    let lines: Vec<_> = heard[0].lines().collect();
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
async fn whatever_else_is_answered_is_a_problem() {
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
        (says("500 Oh", "hush"), "PrometheusFailed"),
        (says("200 OK", "hush"), "PrometheusFailed"),
        (says("200 OK", &long), "PrometheusFailed"),
        (Script::Endless, "PrometheusFailed"),
        (Script::Says(moved.into()), "PrometheusFailed"),
        (Script::Says("hush\r\n\r\n".into()), "PrometheusUnreachable"),
        (
            Script::Says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhush".into()),
            "PrometheusUnreachable",
        ),
        (Script::Closes, "PrometheusUnreachable"),
    ] {
        let server = Server::playing(script).await;
        let problem = server.ask().await.unwrap_err();
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
    let server = Server::playing(Script::Says(moved)).await;
    let problem = server.ask().await.unwrap_err();
    let said = None;
    assert_eq!(problem, Problem::Status { status: 307, said });
    assert_eq!(target.heard().len(), 0);
}

#[tokio::test]
async fn a_server_that_is_not_shown_the_secret_is_named_when_it_refuses() {
    let server = Server::playing(says("401 No", "hush")).await;
    let mut defaults = Defaults {
        authorization: Some("Bearer hush".parse().unwrap()),
        ..Defaults::default()
    };
    let prometheus = Prometheus::new(Clock::system());
    let question = server.question_of(&json!({}), &defaults);
    let problem = prometheus.ask(&question).await.unwrap_err();
    let origin = format!("http://{}", server.address);
    assert_eq!(
        problem,
        Problem::Withheld {
            status: 401,
            origin: origin.clone()
        }
    );
    defaults.origins = origin.parse().unwrap();
    let question = server.question_of(&json!({}), &defaults);
    let problem = prometheus.ask(&question).await.unwrap_err();
    let said = None;
    assert_eq!(problem, Problem::Status { status: 401, said });
    let shown = |request: &String| request.contains("authorization: Bearer hush");
    let heard: Vec<_> = server.heard().iter().map(shown).collect();
    assert_eq!(heard, [false, true]);
}

#[tokio::test]
async fn who_does_not_answer_is_not_waited_for() {
    let server = Server::playing(Script::Hangs).await;
    let limit = Duration::from_millis(50);
    let prometheus = Prometheus::new(Clock::system()).within(limit);
    let answer = prometheus.ask(&server.question(&json!({}))).await;
    assert_eq!(answer, Err(Problem::Late(limit)));
    assert_eq!(server.heard().len(), 1);
}

#[tokio::test]
async fn nobody_is_there() {
    let server = Server::playing(Script::Closes).await;
    let question = server.question(&json!({}));
    drop(server);
    let answer = Prometheus::new(Clock::system()).ask(&question).await;
    assert_eq!(answer.unwrap_err().reason(), "PrometheusUnreachable");
}
