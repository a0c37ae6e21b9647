//! The list of bad input again, over TLS and with authentication on.

use http::Method;
use neap_load::client::{Answer, Client, Connection};
use neap_oracle::bad_input::{self, Attempt};

use crate::up;

/// A connection that is made anew when the server has hung up.
struct Persistent {
    client: Client,
    connection: Connection,
}

impl Persistent {
    async fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            connection: client.connect().await.unwrap(),
        }
    }

    async fn send(&mut self, attempt: &Attempt) -> Answer {
        let answer = self.try_send(attempt).await;
        answer.unwrap_or_else(|| panic!("{attempt}: never answered"))
    }

    /// The server may hang up on a client whose body it did not read to the end, though not without
    /// an answer. Whoever still writes then may not come to read it, and may ask again.
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
    let (mut server, client) = up(None).await;
    let mut sender = Persistent::new(&client).await;
    let mut other = Persistent::new(&client).await;
    assert_eq!(sender.send(&bad_input::bystander()).await.status, 201);
    for attempt in bad_input::all() {
        let answer = sender.send(&attempt).await;
        let status = answer.json().unwrap_or_default();
        attempt.judge(answer.status, &status).unwrap();
        let map = other.send(&bad_input::look()).await;
        bad_input::unharmed(map.status, &map.json().unwrap_or_default()).unwrap();
    }
    assert!(!server.has_ended());
}

#[tokio::test]
async fn bad_input_of_a_stranger_is_not_even_looked_at() {
    let (_server, client) = up(None).await;
    let mut other = Persistent::new(&client).await;
    assert_eq!(other.send(&bad_input::bystander()).await.status, 201);
    let stranger = client.with_token("nobody-gave-me-this");
    let mut sender = Persistent::new(&stranger).await;
    for attempt in bad_input::all() {
        let Some(answer) = sender.try_send(&attempt).await else {
            // Nobody reads what a stranger sends.
            assert!(attempt.body.len() > 64 << 10, "{attempt}: never answered");
            continue;
        };
        assert_eq!(answer.status, 401, "{attempt}");
        assert_eq!(
            answer.json().unwrap()["reason"],
            "Unauthorized",
            "{attempt}"
        );
    }
    let map = other.send(&bad_input::look()).await;
    bad_input::unharmed(map.status, &map.json().unwrap()).unwrap();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/expensives.hostile.dev";
    let made = other.connection.send(Method::GET, path, "").await;
    assert_eq!(made.unwrap().status, 404, "a stranger made something");
}
