//! Counts what users put into baskets, from caches of three kinds with an index each: the counts
//! are the status of a PodDisruptionBudget, the names are in a ConfigMap that is created and
//! deleted with it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret, ServiceAccount},
    policy::v1::{PodDisruptionBudget as Basket, PodDisruptionBudgetStatus},
};
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::{Error, Object, Writer},
    context::Context,
    controller::{ControllerOptions, Enqueuer, Outcome},
    key::Key,
    manager::Component,
    watch::{Cache, Index, WatchesStopped},
};
use neap_trial::{UserRequest, Workload};
use serde_json::{Value, json};

const BASKET: &str = "basket";
const RED: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/red";
const BLUE: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/blue";
const PEAR: &str = "/api/v1/namespaces/default/secrets/pear";
const PLUM: &str = "/api/v1/namespaces/default/secrets/plum";
const FIG: &str = "/api/v1/namespaces/default/serviceaccounts/fig";

pub(super) fn workload() -> Workload {
    let basket = |name| UserRequest::Create(basket_called(name));
    let fill = |kind, name, basket| UserRequest::Create(made(kind, name, basket));
    let moved = |basket: Value| json!({"metadata": {"labels": {BASKET: basket}}});
    Workload::new("watch")
        .without_poison("it counts in all namespaces together")
        .actor("counter", components)
        .step("create", [basket("red"), basket("blue")])
        .step("put something in", [fill("Secret", "pear", "red")])
        .step(
            "put more in",
            [
                fill("Secret", "plum", "red"),
                fill("ServiceAccount", "fig", "blue"),
            ],
        )
        .step("move it", [UserRequest::Patch(PEAR, moved("blue".into()))])
        .step("take it out", [UserRequest::Patch(FIG, moved(Value::Null))])
        .step("delete it", [UserRequest::Delete(PLUM)])
        .step("delete a basket", [UserRequest::Delete(BLUE)])
        .step("make it anew", [basket("blue")])
        .step(
            "delete",
            [UserRequest::Delete(RED), UserRequest::Delete(BLUE)],
        )
}

/// A kind with a status that no other controller writes in this workload.
fn basket_called(name: &str) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {},
    })
}

fn made(kind: &str, name: &str, basket: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": kind,
        "metadata": {"name": name, "namespace": "default", "labels": {BASKET: basket}},
    })
}

fn components(context: &Context) -> Result<Vec<Component>, WatchesStopped> {
    let controller = context.controller(ControllerOptions::new("counter"));
    let enqueuer = controller.enqueuer();
    let baskets: Cache<Basket> = context.cache()?;
    let lists: Cache<ConfigMap> = context.cache()?;
    let told = enqueuer.clone();
    baskets.subscribe(move |change| told.enqueue(change.key()));
    let told = enqueuer.clone();
    lists.subscribe(move |change| told.enqueue(change.key()));
    let (secrets, accounts) = (
        context.cache::<Secret>()?,
        context.cache::<ServiceAccount>()?,
    );
    let counter = Arc::new(Counter {
        baskets: baskets.clone(),
        lists: lists.clone(),
        secrets: within(&secrets, enqueuer.clone()),
        accounts: within(&accounts, enqueuer),
        writer: context.writer("counter"),
    });
    Ok(vec![Component::new("counter", move |stop| async move {
        let reconcile = move |key| {
            let counter = counter.clone();
            async move { counter.count(key).await }
        };
        let known = async move {
            baskets.synced().await;
            lists.synced().await;
            secrets.synced().await;
            accounts.synced().await;
        };
        controller.run_when(known, reconcile, stop).await;
    })])
}

/// Indexes the objects of a kind by basket, and enqueues every basket that an object enters or
/// leaves.
fn within<K>(cache: &Cache<K>, enqueuer: Enqueuer<Key>) -> Index<K>
where
    K: Object + 'static,
{
    cache.subscribe(move |change| {
        use neap_kit::watch::Change::{Added, Deleted, Modified};
        let (old, new) = match change {
            Added(new) => (None, Some(new)),
            Modified { old, new } => (Some(old), Some(new)),
            Deleted(old) => (Some(old), None),
        };
        for object in [old, new].into_iter().flatten() {
            for basket in basket(&**object) {
                enqueuer.enqueue(Key::new("default", &basket));
            }
        }
    });
    Index::new(cache, basket)
}

fn basket<K: Resource>(object: &K) -> Vec<String> {
    object.labels().get(BASKET).cloned().into_iter().collect()
}

struct Counter {
    baskets: Cache<Basket>,
    lists: Cache<ConfigMap>,
    secrets: Index<Secret>,
    accounts: Index<ServiceAccount>,
    writer: Writer,
}

impl Counter {
    async fn count(&self, key: Key) -> Result<Outcome, Error> {
        let list = self.lists.get(&key);
        let Some(basket) = self.baskets.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let secrets = self.secrets.get(key.name());
        let accounts = self.accounts.get(key.name());
        let names = secrets.iter().map(|it| it.name_any());
        let names: Vec<_> = names
            .chain(accounts.iter().map(|it| it.name_any()))
            .collect();
        let data = BTreeMap::from([("names".to_owned(), names.join(" "))]);
        let ours = list.filter(|list| is_of(list, &basket));
        match ours {
            Some(list) if list.data.as_ref() == Some(&data) => {}
            Some(list) => {
                let mut list = ConfigMap::clone(&list);
                list.data = Some(data);
                self.writer.replace(&list).await?;
            }
            None => {
                self.writer.confirm(&*basket).await?;
                if self.writer.create(&list_of(&basket, data)).await?.is_none() {
                    // The list of a deleted basket of the same name, or one that the cache does not
                    // show yet.
                    return Ok(Outcome::RequeueAfter(Duration::from_secs(5)));
                }
            }
        }
        let status = PodDisruptionBudgetStatus {
            expected_pods: Some(secrets.len() as i32),
            current_healthy: Some(accounts.len() as i32),
            desired_healthy: Some(0),
            disruptions_allowed: Some(0),
            observed_generation: basket.metadata.generation,
            ..PodDisruptionBudgetStatus::default()
        };
        if basket.status.as_ref() != Some(&status) {
            let mut counted = Basket::clone(&basket);
            counted.status = Some(status);
            self.writer.replace_status(&counted).await?;
        }
        Ok(Outcome::Done)
    }
}

fn is_of(list: &ConfigMap, basket: &Basket) -> bool {
    let mut owners = list.owner_references().iter();
    owners.any(|owner| Some(&owner.uid) == basket.metadata.uid.as_ref())
}

fn list_of(basket: &Basket, data: BTreeMap<String, String>) -> ConfigMap {
    let mut list = ConfigMap {
        data: Some(data),
        ..ConfigMap::default()
    };
    list.metadata.name = Some(basket.name_any());
    list.metadata.namespace = basket.namespace();
    list.metadata.owner_references = basket.controller_owner_ref(&()).map(|owner| vec![owner]);
    list
}
