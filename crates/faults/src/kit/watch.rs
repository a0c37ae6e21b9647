//! Counts what users put into baskets, from caches of three kinds and an index over each: the counts
//! are the status of a budget, the names are in a map that is made and deleted with it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::{
    core::v1::{ConfigMap, Secret, ServiceAccount},
    policy::v1::{PodDisruptionBudget as Basket, PodDisruptionBudgetStatus},
};
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::{Error, Hand, Object},
    controller::{Options, Outcome, Trigger},
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended, Index},
};
use neap_trial::{Deed, Workload};
use serde_json::{Value, json};

const BASKET: &str = "basket";
const RED: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/red";
const BLUE: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/blue";
const PEAR: &str = "/api/v1/namespaces/default/secrets/pear";
const PLUM: &str = "/api/v1/namespaces/default/secrets/plum";
const FIG: &str = "/api/v1/namespaces/default/serviceaccounts/fig";

pub(super) fn workload() -> Workload {
    let basket = |name| Deed::Create(basket_called(name));
    let fill = |kind, name, basket| Deed::Create(made(kind, name, basket));
    let moved = |basket: Value| json!({"metadata": {"labels": {BASKET: basket}}});
    Workload::new("watch")
        .without_poison("it counts in all namespaces together")
        .actor("counter", services)
        .step("create", [basket("red"), basket("blue")])
        .step("put something in", [fill("Secret", "pear", "red")])
        .step(
            "put more in",
            [
                fill("Secret", "plum", "red"),
                fill("ServiceAccount", "fig", "blue"),
            ],
        )
        .step("move it", [Deed::Patch(PEAR, moved("blue".into()))])
        .step("take it out", [Deed::Patch(FIG, moved(Value::Null))])
        .step("delete it", [Deed::Delete(PLUM)])
        .step("delete a basket", [Deed::Delete(BLUE)])
        .step("make it anew", [basket("blue")])
        .step("delete", [Deed::Delete(RED), Deed::Delete(BLUE)])
}

/// A kind that has a status, and here nobody else who writes it.
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

fn services(site: &Site) -> Result<Vec<Service>, Ended> {
    let controller = site.controller(Options::new("counter"));
    let trigger = controller.trigger();
    let baskets: Cache<Basket> = site.all()?;
    let lists: Cache<ConfigMap> = site.all()?;
    let told = trigger.clone();
    baskets.follow(move |change| told.changed(change.key()));
    let told = trigger.clone();
    lists.follow(move |change| told.changed(change.key()));
    let (secrets, accounts) = (site.all::<Secret>()?, site.all::<ServiceAccount>()?);
    let counter = Arc::new(Counter {
        baskets: baskets.clone(),
        lists: lists.clone(),
        secrets: within(&secrets, trigger.clone()),
        accounts: within(&accounts, trigger),
        hand: site.hand("counter"),
    });
    Ok(vec![Service::new("counter", move |stop| async move {
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
        controller.run_once_known(known, reconcile, stop).await;
    })])
}

/// The objects of a kind by their basket, and a look at every basket that one enters or leaves.
fn within<K>(cache: &Cache<K>, trigger: Trigger<Key>) -> Index<K>
where
    K: Object + 'static,
{
    cache.follow(move |change| {
        use neap_kit::watch::Change::{Added, Deleted, Modified};
        let (old, new) = match change {
            Added(new) => (None, Some(new)),
            Modified { old, new } => (Some(old), Some(new)),
            Deleted(old) => (Some(old), None),
        };
        for object in [old, new].into_iter().flatten() {
            for basket in basket(&**object) {
                trigger.changed(Key::new("default", &basket));
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
    hand: Hand,
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
                self.hand.replace(&list).await?;
            }
            None => {
                self.hand.confirm(&*basket).await?;
                if self.hand.create(&list_of(&basket, data)).await?.is_none() {
                    // That of a basket of the same name which is gone, or one not seen yet.
                    return Ok(Outcome::Again(Duration::from_secs(5)));
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
            self.hand.replace_status(&counted).await?;
        }
        Ok(Outcome::Settled)
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
