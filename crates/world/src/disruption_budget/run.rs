//! Reads the facts, and carries the decision out.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use neap_kit::{
    apply::Error,
    controller::Outcome,
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended},
    wiring::{Tools, Wiring},
};

use super::{
    decide::{Facts, decide},
    owners::Owners,
    several::Several,
};
use crate::workload::{Labelled, owner_of};

/// The controller of PodDisruptionBudgets.
pub fn service(site: &Site) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, "disruption-controller");
    let budgets = wiring.kept()?;
    let pods = wiring.read()?;
    let (known, several) = (budgets.clone(), Several::default());
    let untold = several.clone();
    wiring.follow(&pods, move |change, trigger| {
        untold.changed(&known, change, trigger);
    });
    let work = Work {
        several,
        labelled: Labelled::new(&pods),
        owners: Owners::new(&mut wiring, &budgets)?,
        tools: wiring.tools().speaking_as(site, "controllermanager"),
        budgets,
    };
    Ok(wiring.service(work, Work::reconcile))
}

struct Work {
    budgets: Cache<PodDisruptionBudget>,
    labelled: Labelled,
    owners: Owners,
    several: Several,
    tools: Tools,
}

impl Work {
    async fn reconcile(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        self.several.tell(&key, &self.tools).await;
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
            for note in &decision.notes {
                self.tools.tell(&*budget, note).await;
            }
            let mut said = (*budget).clone();
            said.status = Some(decision.status);
            self.tools.report(&*budget, &said).await?;
        }
        Ok(decision.again.map_or(Outcome::Settled, Outcome::Again))
    }
}
