//! Hostile requests in process: every refusal is a proper Status, and the server answers the next
//! request as if nothing had happened. The tests of `neap` try the same list over TLS.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full, Limited};
use neap_oracles::bad_input::{self, Attempt};
use neap_pocket::{Options, Pocket, environment::Environment};
use serde_json::Value;
use tower::ServiceExt;

struct Server(Pocket);

impl Server {
    async fn open() -> Self {
        let options = Options::new(Environment::simulated(1));
        let server = Self(Pocket::open(options).await.unwrap());
        let (status, _) = server.send(&bad_input::create_bystander()).await;
        assert_eq!(status, 201);
        server
    }

    async fn send(&self, attempt: &Attempt) -> (u16, Value) {
        let request = Request::builder()
            .method(attempt.method.clone())
            .uri(&attempt.path)
            .header("content-type", attempt.content_type)
            .body(Full::new(Bytes::from(attempt.body.clone())))
            .unwrap();
        let response = self.0.service().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), 64 << 20);
        #[expect(clippy::disallowed_methods, reason = "the body is limited just above")]
        let bytes = body.collect().await.unwrap().to_bytes();
        // A body that is not JSON is no Status either.
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Each is refused properly, and does no harm.
    async fn refuses(&self, attempts: Vec<Attempt>) {
        assert!(!attempts.is_empty());
        for attempt in attempts {
            let (status, answer) = self.send(&attempt).await;
            attempt.judge(status, &answer).unwrap();
            let (status, map) = self.send(&bad_input::read_bystander()).await;
            bad_input::check_bystander(status, &map).unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn malformed_bodies_are_bad_requests() {
    Server::open().await.refuses(bad_input::malformed()).await;
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_too_large_or_of_no_known_type_are_refused() {
    let server = Server::open().await;
    server.refuses(bad_input::unacceptable()).await;
}

#[tokio::test(start_paused = true)]
async fn absurd_selectors_and_options_are_bad_requests() {
    let server = Server::open().await;
    server.refuses(bad_input::invalid_options()).await;
}

#[tokio::test(start_paused = true)]
async fn hostile_patches_are_refused() {
    Server::open().await.refuses(bad_input::hostile()).await;
}

#[tokio::test(start_paused = true)]
async fn a_patch_cannot_grow_an_object_without_end() {
    Server::open().await.refuses(bad_input::growing()).await;
}

#[tokio::test(start_paused = true)]
async fn broken_rules_are_refused_with_the_definition() {
    let server = Server::open().await;
    server.refuses(bad_input::broken_rules()).await;
}

#[tokio::test(start_paused = true)]
async fn an_expensive_rule_is_given_up_and_the_object_refused() {
    let server = Server::open().await;
    server.refuses(bad_input::expensive_rule()).await;
}

#[tokio::test(start_paused = true)]
async fn paths_that_lead_nowhere_are_refused() {
    Server::open()
        .await
        .refuses(bad_input::unknown_paths())
        .await;
}
