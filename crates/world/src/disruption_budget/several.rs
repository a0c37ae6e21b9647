//! Pods that more than one budget selects: whoever evicts one is refused, so somebody has to know.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use k8s_openapi::api::{core::v1::Pod, policy::v1::PodDisruptionBudget};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use neap_kit::{
    controller::Trigger,
    event::Note,
    key::Key,
    planted,
    watch::{Cache, Change},
    wiring::Tools,
};
use parking_lot::Mutex;

type Pods = BTreeMap<Key, Arc<Pod>>;

/// What has happened to such pods and was not told yet, by the budget whose look tells it.
#[derive(Debug, Clone, Default)]
pub(super) struct Several(Arc<Mutex<BTreeMap<Key, Pods>>>);

impl Several {
    /// Has the budgets looked at that select a pod; there are few in a namespace.
    pub(super) fn changed(
        &self,
        budgets: &Cache<PodDisruptionBudget>,
        change: &Change<Pod>,
        trigger: &Trigger<Key>,
    ) {
        planted!(BudgetUntold => if let Change::Deleted(_) = change { return });
        let pod = change.object();
        let keys = selecting(budgets, pod);
        for key in &keys {
            trigger.changed(key.clone());
        }
        let stays = !matches!(change, Change::Deleted(_));
        match &keys[..] {
            [first, _, ..] if stays => {
                let mut untold = self.0.lock();
                let untold = untold.entry(first.clone()).or_default();
                untold.insert(Key::of(&**pod), pod.clone());
            }
            _ => self.forget(&keys, &Key::of(&**pod)),
        }
        if let Change::Modified { old, new } = change
            && old.labels() != new.labels()
        {
            for key in selecting(budgets, old) {
                trigger.changed(key);
            }
        }
    }

    fn forget(&self, budgets: &[Key], pod: &Key) {
        let mut untold = self.0.lock();
        for budget in budgets {
            if let Entry::Occupied(mut pods) = untold.entry(budget.clone()) {
                pods.get_mut().remove(pod);
                if pods.get().is_empty() {
                    pods.remove();
                }
            }
        }
    }

    /// Tells what is left to the look at this budget.
    pub(super) async fn tell(&self, budget: &Key, tools: &Tools) {
        let pods = self.0.lock().remove(budget).unwrap_or_default();
        for (key, pod) in pods {
            tools.tell(&*pod, &note(&key, budget)).await;
        }
    }
}

/// In the order of their names.
fn selecting(budgets: &Cache<PodDisruptionBudget>, pod: &Pod) -> Vec<Key> {
    let all = budgets.list(&pod.namespace().unwrap_or_default());
    let selecting = all.into_iter().filter(|budget| {
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.clone());
        let selector = selector.and_then(|selector| Selector::try_from(selector).ok());
        selector.is_some_and(|selector| selector.matches(pod.labels()))
    });
    let mut keys: Vec<_> = selecting.map(|budget| Key::of(&*budget)).collect();
    keys.sort();
    keys
}

fn note(pod: &Key, budget: &Key) -> Note {
    let (namespace, name, chosen) = (pod.namespace(), pod.name(), budget.name());
    let message = format!(
        "Pod {namespace:?}/{name:?} matches multiple PodDisruptionBudgets.  Chose {chosen:?} arbitrarily."
    );
    Note::warning("MultiplePodDisruptionBudgets", message)
}
