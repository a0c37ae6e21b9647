//! Reads the facts and executes the decision.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    watch::{Cache, WatchesStopped},
};

use super::{
    decide::{Facts, decide},
    multiple_budgets::MultiBudgetPods,
    pod_controllers::ControllerFinder,
};
use crate::workload::{LabelIndex, owner_of};

pub fn component(context: &Context) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "disruption-controller");
    let budgets = builder.primary()?;
    let pods = builder.cache()?;
    let (cached, multi_budget_pods) = (budgets.clone(), MultiBudgetPods::default());
    let pending = multi_budget_pods.clone();
    builder.on_change(&pods, move |change, enqueuer| {
        pending.on_pod_change(&cached, change, enqueuer);
    });
    let reconciler = DisruptionBudgetReconciler {
        multi_budget_pods,
        labelled: LabelIndex::new(&pods),
        owners: ControllerFinder::new(&mut builder, &budgets)?,
        tools: builder
            .tools()
            .with_event_source(context, "controllermanager"),
        budgets,
    };
    Ok(builder.build(reconciler, DisruptionBudgetReconciler::reconcile))
}

struct DisruptionBudgetReconciler {
    budgets: Cache<PodDisruptionBudget>,
    labelled: LabelIndex,
    owners: ControllerFinder,
    multi_budget_pods: MultiBudgetPods,
    tools: Tools,
}

impl DisruptionBudgetReconciler {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        self.multi_budget_pods
            .record_events(&key, &self.tools)
            .await;
        let Some(budget) = self.budgets.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let selector = budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let found = |selector| self.labelled.selected(key.namespace(), selector);
        let pods = selector.map_or_else(Vec::new, found);
        let owners = pods.iter().filter_map(|pod| owner_of(&**pod));
        let scales = owners.filter_map(|owner| {
            let scale = self.owners.scale(key.namespace(), owner)?;
            Some((owner.uid.clone(), scale))
        });
        let facts = Facts {
            budget: &budget,
            scales: scales.collect::<BTreeMap<_, _>>(),
            pods: pods.iter().map(|pod| &**pod).collect(),
            now: self.tools.clock.now(),
        };
        let decision = decide(&facts);
        if budget.status.as_ref() != Some(&decision.status) {
            for event in &decision.events {
                self.tools.record(&*budget, event).await;
            }
            let mut updated = (*budget).clone();
            updated.status = Some(decision.status);
            self.tools.update_status(&*budget, &updated).await?;
        }
        Ok(decision
            .requeue_after
            .map_or(Outcome::Done, Outcome::RequeueAfter))
    }
}
