//! The bad input of `neap_oracles`, over TLS and with authentication.

use http::Method;
use neap_load::client::{Answer, Client, Connection};
use neap_oracles::bad_input::{self, Attempt};

use super::start_server;

/// A client that reconnects when the server has closed the connection.
struct ReconnectingClient {
    client: Client,
    connection: Connection,
}

impl ReconnectingClient {
    async fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            connection: client.connect().await.unwrap(),
        }
    }

    async fn send(&mut self, attempt: &Attempt) -> Answer {
        let answer = self.try_send(attempt).await;
        answer.unwrap_or_else(|| panic!("{attempt}: no response"))
    }

    /// The server may respond and close the connection before it has read the whole body. A client that
    /// still writes then may miss the response, so it sends the request again.
    async fn try_send(&mut self, attempt: &Attempt) -> Option<Answer> {
        for _ in 0..3 {
            let (method, path) = (attempt.method.clone(), &attempt.path);
            let body = attempt.body.clone();
            let sent = self
                .connection
                .send_as(method, path, attempt.content_type, body)
                .await;
            match sent {
                Ok(answer) => return Some(answer),
                Err(_) => self.connection = self.client.connect().await.unwrap(),
            }
        }
        None
    }
}

#[tokio::test]
async fn bad_input_is_refused_over_tls_as_it_is_in_process() {
    let (mut server, client) = start_server(None).await;
    let mut sender = ReconnectingClient::new(&client).await;
    let mut other = ReconnectingClient::new(&client).await;
    assert_eq!(
        sender.send(&bad_input::create_bystander()).await.status,
        201
    );
    for attempt in bad_input::all() {
        let answer = sender.send(&attempt).await;
        let status = answer.json().unwrap_or_default();
        attempt.judge(answer.status, &status).unwrap();
        let map = other.send(&bad_input::read_bystander()).await;
        bad_input::check_bystander(map.status, &map.json().unwrap_or_default()).unwrap();
    }
    assert!(!server.has_ended());
}

#[tokio::test]
async fn bad_input_without_valid_credentials_gets_401() {
    let (_server, client) = start_server(None).await;
    let mut other = ReconnectingClient::new(&client).await;
    assert_eq!(other.send(&bad_input::create_bystander()).await.status, 201);
    let unauthenticated = client.with_token("not-a-valid-token");
    let mut sender = ReconnectingClient::new(&unauthenticated).await;
    for attempt in bad_input::all() {
        let Some(answer) = sender.try_send(&attempt).await else {
            // The server does not read large bodies of unauthenticated clients.
            assert!(attempt.body.len() > 64 << 10, "{attempt}: no response");
            continue;
        };
        assert_eq!(answer.status, 401, "{attempt}");
        assert_eq!(
            answer.json().unwrap()["reason"],
            "Unauthorized",
            "{attempt}"
        );
    }
    let map = other.send(&bad_input::read_bystander()).await;
    bad_input::check_bystander(map.status, &map.json().unwrap()).unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/expensives.hostile.dev";
    let made = other.connection.send(Method::GET, path, "").await;
    assert_eq!(
        made.unwrap().status,
        404,
        "an unauthenticated client created an object"
    );
}
