//! A database that fails: before a call takes effect, and after it.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use neap_store::{CallObserver, Commit, Error, Store, StoreCall};
use parking_lot::Mutex;

use super::*;
use crate::{
    documents::{SUBSCRIPTIONS, subscription_document},
    enrichment::Enrichment,
    fixtures,
};

/// When calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failing {
    Never,
    Always,
    /// Writes fail because there is no room.
    Full,
    /// Calls do not return.
    Hanging,
    /// The database has done what it reports as failed.
    AfterWrites,
}

#[derive(Debug)]
struct Switch(Mutex<Failing>);

impl Switch {
    fn result(&self, fails: impl Fn(Failing) -> bool) -> Result<(), Error> {
        if fails(*self.0.lock()) {
            let why = "secret-of-the-connection";
            return Err(Error::OutcomeUnknown(why.into()));
        }
        Ok(())
    }
}

impl CallObserver for Switch {
    fn before(&self, call: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        let is_full = call.writes && *self.0.lock() == Failing::Full;
        let result = if is_full {
            Err(Error::Full("secret-of-the-connection".into()))
        } else {
            self.result(|failing| failing == Failing::Always)
        };
        let hangs = *self.0.lock() == Failing::Hanging;
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            result
        }
        .boxed()
    }

    fn after(&self, call: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        let result = self.result(|failing| call.writes && failing == Failing::AfterWrites);
        async { result }.boxed()
    }
}

async fn failing_provider() -> (Provider, Arc<Switch>) {
    let clock = Clock::system();
    let switch = Arc::new(Switch(Mutex::new(Failing::Never)));
    let store = fixtures::store(clock).observed_by(switch.clone());
    let provider = Provider::with(store, Enrichment::Off, None, clock).await;
    (provider, switch)
}

#[tokio::test]
async fn a_database_that_is_gone_is_told_and_leaves_nothing() {
    let (provider, switch) = failing_provider().await;
    let put = path("blue", API);
    *switch.0.lock() = Failing::Always;
    let list = put.split("/blue").next().unwrap().to_owned() + "?api-version=2025-07-25";
    let subscription = format!("/subscriptions/{SUBSCRIPTION}");
    for (method, path, body) in [
        ("PUT", put.clone(), Some(cluster("blue"))),
        ("PATCH", put.clone(), Some(json!({"tags": {}}))),
        ("GET", put.clone(), None),
        ("DELETE", put.clone(), None),
        ("GET", list, None),
        ("PUT", subscription, Some(json!({"state": "Warned"}))),
        ("GET", "/admin/operations".to_owned(), None),
        (
            "PUT",
            "/admin/versions".to_owned(),
            Some(json!({"properties": {
                "version": "4.20.1", "openShiftPullspec": "a", "installerPullspec": "b",
            }})),
        ),
    ] {
        let (status, headers, body) = provider.send(method, &path, body).await;
        assert_eq!(
            (status, code(&body)),
            (503, "DatabaseUnavailable"),
            "{method} {path}"
        );
        assert!(headers.contains_key("retry-after"), "{method} {path}");
        assert!(!body.to_string().contains("secret-of"), "{body}");
    }
    *switch.0.lock() = Failing::Never;
    assert_eq!(provider.send("GET", &put, None).await.0, 404);
    let (_, _, operations) = provider.send("GET", "/admin/operations", None).await;
    assert_eq!(operations["value"], json!([]));
    assert_eq!(
        provider.store.queue_length(CLUSTERS, "work").await.unwrap(),
        0
    );
}

#[tokio::test]
async fn a_database_whose_disk_is_full_is_read_and_goes_on_when_there_is_room() {
    let (provider, switch) = failing_provider().await;
    let (blue, green) = (path("blue", API), path("green", API));
    provider.send("PUT", &blue, Some(cluster("blue"))).await;
    succeed(&provider, "blue").await;
    *switch.0.lock() = Failing::Full;
    for (method, path, body) in [
        ("PUT", &green, Some(cluster("green"))),
        ("PATCH", &blue, Some(json!({"tags": {"a": "b"}}))),
        ("DELETE", &blue, None),
    ] {
        let (status, headers, body) = provider.send(method, path, body).await;
        assert_eq!((status, code(&body)), (503, "DatabaseFull"), "{method}");
        assert!(headers.contains_key("retry-after"), "{method}");
        assert!(!body.to_string().contains("secret-of"), "{body}");
    }
    let (status, _, body) = provider.send("GET", &blue, None).await;
    assert_eq!(status, 200);
    assert_eq!(body["properties"]["provisioningState"], "Succeeded");
    assert_eq!(provider.send("GET", &green, None).await.0, 404);
    *switch.0.lock() = Failing::Never;
    let (status, ..) = provider.send("PUT", &green, Some(cluster("green"))).await;
    assert_eq!(status, 201);
    let (_, _, operations) = provider.send("GET", "/admin/operations", None).await;
    assert_eq!(operations["value"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_to_a_database_that_hangs_is_answered_and_leaves_nothing() {
    let (provider, switch) = failing_provider().await;
    let put = path("blue", API);
    *switch.0.lock() = Failing::Hanging;
    for (method, body) in [
        ("PUT", Some(cluster("blue"))),
        ("GET", None),
        ("DELETE", None),
    ] {
        let (status, headers, answer) = provider.send(method, &put, body).await;
        assert_eq!((status, code(&answer)), (503, "RequestTimeout"), "{method}");
        assert!(headers.contains_key("retry-after"), "{method}");
    }
    *switch.0.lock() = Failing::Never;
    assert_eq!(provider.send("GET", &put, None).await.0, 404);
    let (_, _, operations) = provider.send("GET", "/admin/operations", None).await;
    assert_eq!(operations["value"], json!([]));
}

#[tokio::test]
async fn a_put_that_was_done_but_reported_as_failed_can_be_sent_again() {
    let (provider, switch) = failing_provider().await;
    let said = [("x-ms-client-request-id", "once")];
    let put = path("blue", API);
    *switch.0.lock() = Failing::AfterWrites;
    let (status, ..) = provider
        .send_with("PUT", &put, Some(cluster("blue")), &said)
        .await;
    assert_eq!(status, 503);
    *switch.0.lock() = Failing::Never;
    let (status, headers, body) = provider
        .send_with("PUT", &put, Some(cluster("blue")), &said)
        .await;
    assert_eq!(status, 200, "{body}");
    assert!(headers.contains_key("azure-asyncoperation"));
    let (_, _, operations) = provider.send("GET", "/admin/operations", None).await;
    assert_eq!(operations["value"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn of_two_changes_at_once_one_is_done_and_one_is_refused() {
    let provider = provider().await;
    let put = path("blue", API);
    provider.send("PUT", &put, Some(cluster("blue"))).await;
    succeed(&provider, "blue").await;
    let patch = |team: &'static str| {
        let (provider, put) = (&provider, &put);
        async move {
            provider
                .send("PATCH", put, Some(json!({"tags": {"team": team}})))
                .await
        }
    };
    let (one, other) = tokio::join!(patch("red"), patch("green"));
    let mut statuses = [one.0, other.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400], "{} {}", one.2, other.2);
    let (_, _, operations) = provider.send("GET", "/admin/operations", None).await;
    assert_eq!(operations["value"].as_array().unwrap().len(), 2);
}

/// Deletes the subscription between the decision about a request and its commit.
struct DeletedMeanwhile {
    store: Store,
    is_armed: Mutex<bool>,
}

impl CallObserver for DeletedMeanwhile {
    fn before(&self, call: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            let is_commit = matches!(call.name, "commit" | "rehearse");
            if !is_commit || !std::mem::take(&mut *self.is_armed.lock()) {
                return Ok(());
            }
            let key = subscription_document(SUBSCRIPTIONS, SUBSCRIPTION, SUBSCRIPTION);
            let found = self.store.get(Scope::Everywhere, &key).await?.unwrap();
            let mut body = found.body;
            body["subscription"]["state"] = "Deleted".into();
            let commit = Commit::default().put(key, Precondition::Etag(found.etag), body);
            self.store.commit(commit).await.map(drop)
        }
        .boxed()
    }

    fn after(&self, _: StoreCall) -> BoxFuture<'_, Result<(), Error>> {
        async { Ok(()) }.boxed()
    }
}

#[tokio::test]
async fn no_cluster_is_created_behind_the_deletion_of_its_subscription() {
    for query in ["", "&dryRun=true"] {
        let clock = Clock::system();
        let store = fixtures::store(clock);
        let meanwhile = Arc::new(DeletedMeanwhile {
            store: store.clone(),
            is_armed: Mutex::new(false),
        });
        let observed = store.observed_by(meanwhile.clone());
        let provider = Provider::with(observed, Enrichment::Off, None, clock).await;
        *meanwhile.is_armed.lock() = true;
        let put = path("blue", API);
        let sent = format!("{put}{query}");
        let (status, _, body) = provider.send("PUT", &sent, Some(cluster("blue"))).await;
        assert!(!*meanwhile.is_armed.lock(), "it was deleted meanwhile");
        let told = (status, code(&body));
        assert_eq!(told, (400, "InvalidSubscriptionState"), "{body}");
        assert_eq!(provider.send("GET", &put, None).await.0, 404);
    }
}
