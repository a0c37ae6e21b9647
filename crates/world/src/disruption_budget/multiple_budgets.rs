//! Warnings about pods that more than one budget selects: every eviction of such a pod is refused.

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
    builder::Tools,
    controller::Enqueuer,
    event::EventDraft,
    key::Key,
    planted,
    watch::{Cache, Change},
};
use parking_lot::Mutex;

type PodsByKey = BTreeMap<Key, Arc<Pod>>;

/// Changed pods of this kind whose Event is not recorded yet, by the budget whose reconcile records
/// it.
#[derive(Debug, Clone, Default)]
pub(super) struct MultiBudgetPods(Arc<Mutex<BTreeMap<Key, PodsByKey>>>);

impl MultiBudgetPods {
    /// Enqueues the budgets that select a pod; there are few in a namespace.
    pub(super) fn on_pod_change(
        &self,
        budgets: &Cache<PodDisruptionBudget>,
        change: &Change<Pod>,
        enqueuer: &Enqueuer<Key>,
    ) {
        planted!(BudgetUntold => if let Change::Deleted(_) = change { return });
        let pod = change.object();
        let keys = selecting(budgets, pod);
        for key in &keys {
            enqueuer.enqueue(key.clone());
        }
        let stays = !matches!(change, Change::Deleted(_));
        match &keys[..] {
            [first, _, ..] if stays => {
                let mut pending = self.0.lock();
                let pending = pending.entry(first.clone()).or_default();
                pending.insert(Key::of(&**pod), pod.clone());
            }
            _ => self.forget(&keys, &Key::of(&**pod)),
        }
        if let Change::Modified { old, new } = change
            && old.labels() != new.labels()
        {
            for key in selecting(budgets, old) {
                enqueuer.enqueue(key);
            }
        }
    }

    fn forget(&self, budgets: &[Key], pod: &Key) {
        let mut pending = self.0.lock();
        for budget in budgets {
            if let Entry::Occupied(mut pods) = pending.entry(budget.clone()) {
                pods.get_mut().remove(pod);
                if pods.get().is_empty() {
                    pods.remove();
                }
            }
        }
    }

    /// Records the Events that are due in the reconcile of this budget.
    pub(super) async fn record_events(&self, budget: &Key, tools: &Tools) {
        let pods = self.0.lock().remove(budget).unwrap_or_default();
        for (key, pod) in pods {
            tools.record(&*pod, &event(&key, budget)).await;
        }
    }
}

/// The budgets that select a pod, ordered by name.
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

fn event(pod: &Key, budget: &Key) -> EventDraft {
    let (namespace, name, chosen) = (pod.namespace(), pod.name(), budget.name());
    let message = format!(
        "Pod {namespace:?}/{name:?} matches multiple PodDisruptionBudgets.  Chose {chosen:?} arbitrarily."
    );
    EventDraft::warning("MultiplePodDisruptionBudgets", message)
}
