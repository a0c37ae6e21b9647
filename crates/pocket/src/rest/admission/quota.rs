//! ResourceQuota: the last plugin, because its grants are consumed.
//!
//! Writes that count against a quota are serialized by namespace: each adds up what is stored, and
//! holds its turn until it is stored itself. `status.used` is updated at once; housekeeping
//! corrects it when an object is removed, or when a write was not stored after all.

use serde_json::Value;

use super::{AdmissionWrite, is_own, plugins::refusal};
use crate::{
    admission::plugins::{
        Amounts,
        quota::{self, CountedResource},
    },
    kinds::Cluster,
    rest::{Machine, Turn, path, update::ObjectPart},
    status::Result,
    store::Object,
};

/// The bucket of quotas in the store.
pub(crate) const QUOTAS: &str = "/resourcequotas";

impl Machine {
    /// Charges a write to the quotas of its namespace. The turn must be held until the write is
    /// stored.
    pub(super) async fn charge(
        &self,
        change: AdmissionWrite<'_>,
        new: &Value,
    ) -> Result<Option<Turn>> {
        let namespace = &*change.request.target.namespace;
        let concerned = change.part == ObjectPart::Main
            && change.served.resource.namespaced
            && !is_own(change.request)
            && self.view.store().count(QUOTAS) > 0;
        if !concerned || self.view.store().heads(QUOTAS, namespace).is_empty() {
            return Ok(None);
        }
        let turn = self.turn_of(&format!("{QUOTAS}/{namespace}")).await;
        // A quota that was changed meanwhile may grant less.
        while !self.charge_once(change, new).await? {}
        Ok(Some(turn))
    }

    /// Charges a write to the quotas as they are now; false if one of them changed meanwhile.
    async fn charge_once(&self, change: AdmissionWrite<'_>, new: &Value) -> Result<bool> {
        let charged = self.charges(change, new);
        let charged = self.after_settling(charged).await?;
        let Some(served) = self.registry.by_bucket(QUOTAS) else {
            return Ok(true);
        };
        if change.request.dry_run()? {
            return Ok(true);
        }
        for (seen, quota) in charged {
            let place = path(&change.request.target.namespace, &seen.metadata().name);
            if self.put(&served, &place, &seen, &quota).await?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The quotas that this write consumes, before and after.
    fn charges(
        &self,
        change: AdmissionWrite<'_>,
        new: &Value,
    ) -> Result<Vec<(std::sync::Arc<Object>, Value)>> {
        let namespace = &change.request.target.namespace;
        let resource = CountedResource {
            group: &change.served.resource.group,
            plural: &change.served.resource.plural,
        };
        let is_new_pod = change.old.is_none() && *change.served.resource.bucket == *"/pods";
        let quotas = self.view.store().heads(QUOTAS, namespace);
        let quotas: Vec<_> = quotas
            .into_iter()
            .map(|seen| (seen.value(), seen))
            .collect();
        for (quota, _) in quotas.iter().filter(|_| is_new_pod) {
            if let Some(why) = quota::unsaid(quota, new) {
                return Err(refusal(change, new, &why));
            }
        }
        let mut charged = Vec::new();
        for (mut quota, seen) in quotas {
            let growth = quota::growth(&quota, resource, new, change.old);
            if growth.is_empty() {
                continue;
            }
            let mut used = self.used(&quota, namespace);
            if let Some(why) = quota::exceeded(&quota, &used, &growth) {
                return Err(refusal(change, new, &why));
            }
            quota::spend(&mut used, &growth);
            quota["status"] = quota::status(&quota, &used);
            charged.push((seen, quota));
        }
        Ok(charged)
    }

    /// What a quota's namespace uses of it now.
    pub(crate) fn used(&self, quota: &Value, namespace: &str) -> Amounts {
        quota::used(quota, &|resource| {
            Cluster::list(self, resource.group, resource.plural, namespace)
        })
    }
}
