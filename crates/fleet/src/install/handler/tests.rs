//! Steps whose worker has lost its lease, and what steps read.

use neap_store::{Claimed, ListRequest};

use super::*;
use crate::{
    cluster_api::NetworkConnector,
    documents::{BILLING, CLUSTERS, QUEUE},
    fixtures::{Provider, cluster, path, region},
};

async fn provider(body: Value) -> Provider {
    let provider = Provider::new(Clock::system()).await;
    let put = path("blue", "2025-07-25");
    let (status, _, answer) = provider.send("PUT", &put, Some(body)).await;
    assert_eq!(status, 201, "{answer}");
    provider
}

async fn claim(provider: &Provider, owner: &str, lease: i64) -> Claimed {
    let claimed = provider.store.claim(CLUSTERS, QUEUE, owner, lease).await;
    claimed.unwrap().unwrap()
}

fn steps(provider: &Provider, lease: Lease) -> ClusterSteps {
    let context = StepContext {
        store: provider.store.clone(),
        installer: None,
        connector: Arc::new(NetworkConnector),
        versions: provider.catalogue.clone(),
        location: "local".to_owned(),
        domain: region().domain,
        clock: provider.clock,
    };
    ClusterSteps::new(context, lease, Value::Null, CancellationToken::new())
}

/// Makes an attempt at a step. Returns the code of its failure, if it failed.
async fn attempt(steps: &ClusterSteps, step: &str) -> Option<String> {
    let attempt = StepAttempt {
        step: step.to_owned(),
        operation: "operation".to_owned(),
        key: step.to_owned(),
        fence: 1,
    };
    let failure = steps.attempt(&attempt).await.err()?;
    assert!(!failure.retryable, "{failure:?}");
    failure.cause.code
}

async fn bills(provider: &Provider) -> Vec<Value> {
    let request = ListRequest {
        collection: BILLING,
        scope: Scope::Everywhere,
        prefix: "",
        after: None,
        limit: 9,
    };
    let found = provider.store.list(&request).await.unwrap();
    let bills = found.into_iter().map(|it| it.body["billing"].clone());
    bills.collect()
}

#[tokio::test]
async fn a_worker_that_was_stopped_writes_no_bill() {
    let provider = provider(cluster("blue")).await;
    let stopped = claim(&provider, "one", 0).await.lease;
    let holder = claim(&provider, "two", 60_000).await.lease;
    let (stopped, holder) = (steps(&provider, stopped), steps(&provider, holder));
    let lost = Some("NT-FLEET-0003".to_owned());
    assert_eq!(attempt(&stopped, "ensureBillingRecord").await, lost);
    assert_eq!(bills(&provider).await, [Value::Null; 0]);
    let before = provider.store.now().await.unwrap() / 1000;
    assert_eq!(attempt(&holder, "ensureBillingRecord").await, None);
    assert_eq!(attempt(&holder, "ensureBillingRecord").await, None, "again");
    assert_eq!(attempt(&stopped, "deleteBillingRecord").await, lost);
    let bill = bills(&provider).await;
    let after = provider.store.now().await.unwrap() / 1000;
    let created = bill[0]["creationTime"].as_i64().unwrap();
    assert!((before..=after).contains(&created), "{created}");
    assert!(bill[0]["deletionTime"].is_null(), "{bill:?}");
    assert_eq!(attempt(&holder, "deleteBillingRecord").await, None);
    let bill = bills(&provider).await;
    assert!(bill[0]["deletionTime"].as_i64().unwrap() >= created);
}

#[tokio::test]
async fn an_empty_pull_secret_is_none() {
    for (secret, expected) in [
        (json!(""), false),
        (Value::Null, false),
        (json!("{\"auths\":{}}"), true),
    ] {
        let mut body = cluster("blue");
        body["properties"]["clusterProfile"]["pullSecret"] = secret.clone();
        let provider = provider(body).await;
        let lease = claim(&provider, "one", 60_000).await.lease;
        let steps = steps(&provider, lease);
        let has = steps.has_pull_secret().await.unwrap();
        assert_eq!(has, expected, "{secret}");
    }
}
