//! Writes that lose a race between reading and storing.

#![expect(clippy::unwrap_used, reason = "a test ends where it is surprised")]

#[path = "support/chronicle.rs"]
mod chronicle;
#[path = "support/raw.rs"]
mod raw;

use std::{future::Future, pin::Pin, sync::Arc};

use http::StatusCode;
use neap_oracle::{Observer, Watched};
use neap_pocket::{
    Options, Pocket,
    environment::Environment,
    status::ApiError,
    store::{Access, Hooks},
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use chronicle::chronicle;
use raw::{map, send};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const X: &str = "/api/v1/namespaces/default/configmaps/x";

type Hooked<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Holds each write back until it is let through.
struct Gate {
    arrived: Semaphore,
    open: Semaphore,
}

impl Hooks for Gate {
    fn before_write<'a>(&'a self, _: Access<'a>) -> Hooked<'a, Result<(), ApiError>> {
        Box::pin(async {
            self.arrived.add_permits(1);
            self.open.acquire().await.unwrap().forget();
            Ok(())
        })
    }
}

/// What a request is answered that read its object, and then was overtaken by another.
async fn overtaken(
    (method, body): (&str, fn(Value) -> Value),
    by: (&str, Option<Value>),
) -> (StatusCode, Value) {
    let options = Options::new(Environment::rehearsal(9));
    let pocket = Pocket::open(options).await.unwrap();
    let observer = Observer::new();
    let gate = Arc::new(Gate {
        arrived: Semaphore::new(0),
        open: Semaphore::new(0),
    });
    let slow = pocket.service_over(pocket.view(Some(gate.clone())));
    let slow = Watched::new(slow, &observer, "slow");
    let fast = Watched::new(pocket.service(), &observer, "fast");
    let (_, seen) = send(&fast, "POST", MAPS, Some(map("x"))).await;
    let race = async {
        gate.arrived.acquire().await.unwrap().forget();
        let (status, body) = send(&fast, by.0, X, by.1).await;
        assert!(status.is_success(), "{body}");
        gate.open.add_permits(9);
    };
    let (answer, ()) = tokio::join!(send(&slow, method, X, Some(body(seen))), race);
    let _ = observer.finish(&chronicle(&pocket));
    answer
}

fn other_patch() -> (&'static str, Option<Value>) {
    ("PATCH", Some(json!({"data": {"other": "1"}})))
}

#[tokio::test(start_paused = true)]
async fn an_update_of_an_object_that_vanished_meanwhile_finds_nothing() {
    let change = |mut seen: Value| {
        seen["data"] = json!({"mine": "1"});
        seen
    };
    let (status, _) = overtaken(("PUT", change), ("DELETE", None)).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = overtaken(("PUT", change), other_patch()).await;
    assert_eq!(status, StatusCode::CONFLICT);
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_names_no_state_is_applied_to_whatever_is_there() {
    let patch = |_| json!({"data": {"mine": "1"}});
    let (status, object) = overtaken(("PATCH", patch), other_patch()).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(object["data"], json!({"mine": "1", "other": "1"}));
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_names_a_state_holds_to_it() {
    let patch = |seen: Value| {
        let revision = &seen["metadata"]["resourceVersion"];
        json!({"metadata": {"resourceVersion": revision}, "data": {"mine": "1"}})
    };
    let (status, _) = overtaken(("PATCH", patch), other_patch()).await;
    assert_eq!(status, StatusCode::CONFLICT);
}
