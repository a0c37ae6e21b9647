//! The built-in plugins, in the order of kube-apiserver. ResourceQuota comes last of all and has a
//! file of its own.

use serde_json::Value;

use super::{AdmissionWrite, service_account::named};
use crate::{
    admission::plugins::{limit_ranger, runtime_class},
    kinds::{Cluster, names, pod},
    rest::{Machine, metadata, update::ObjectPart},
    status::{ApiError, Result},
};

const PODS: &str = "/pods";
const CLAIMS: &str = "/persistentvolumeclaims";
const INGRESSES: &str = "networking.k8s.io/ingresses";

impl Machine {
    /// Runs the mutating plugins. They see writes that are not committed yet, so a refusal waits
    /// until these are.
    pub(super) async fn plug(&self, change: AdmissionWrite<'_>, new: &mut Value) -> Result<()> {
        if change.part != ObjectPart::Main || change.old.is_some() {
            return Ok(());
        }
        let done = match &*change.served.resource.bucket {
            PODS => {
                limit_ranger::fill(new, &self.ranges(change));
                self.give_account(change, new).await?;
                self.plug_pod(change, new)
            }
            // A default class is set before webhooks are called.
            CLAIMS | INGRESSES => match change.served.rules().admit {
                Some(admit) => admit(new, None, self),
                None => Ok(()),
            },
            _ => Ok(()),
        };
        self.after_settling(done).await
    }

    fn plug_pod(&self, change: AdmissionWrite<'_>, new: &mut Value) -> Result<()> {
        pod::use_priority(new, self)?;
        pod::tolerate(new);
        let class = match new["spec"]["runtimeClassName"].as_str() {
            None => None,
            Some("") => return Err(ApiError::failure("resource name may not be empty")),
            Some(name) => {
                let odd = names::path_segment(name);
                if !odd.is_empty() {
                    let why = format!("invalid resource name \"{name}\": [{}]", odd.join(" "));
                    return Err(ApiError::failure(why));
                }
                Cluster::get(self, "node.k8s.io", "runtimeclasses", "", name)
            }
        };
        runtime_class::apply(new, class.as_ref())
            .map_err(|why| ApiError::forbidden("", "pods", named(change, new), &why))
    }

    /// Runs the validating plugins, before validating webhooks.
    pub(super) async fn check_limits(&self, change: AdmissionWrite<'_>, new: &Value) -> Result<()> {
        let bucket = &*change.served.resource.bucket;
        let concerned = (bucket == PODS && change.old.is_none()) || bucket == CLAIMS;
        if change.part != ObjectPart::Main || !concerned {
            return Ok(());
        }
        if bucket == PODS {
            runtime_class::check(new).map_err(|why| refusal(change, new, &why))?;
        }
        let ranges = self.ranges(change);
        if ranges.is_empty() {
            return Ok(());
        }
        let told = limit_ranger::complaints(&change.served.resource.plural, new, &ranges);
        let checked = match told.as_slice() {
            [] => Ok(()),
            [one] => Err(refusal(change, new, one)),
            all => Err(refusal(change, new, &format!("[{}]", all.join(", ")))),
        };
        self.after_settling(checked).await
    }

    fn ranges(&self, change: AdmissionWrite<'_>) -> Vec<Value> {
        Cluster::list(self, "", "limitranges", &change.request.target.namespace)
    }

    /// Waits for pending commits before a refusal: a client that is refused because of other
    /// objects must find them.
    pub(super) async fn after_settling<T>(&self, outcome: Result<T>) -> Result<T> {
        if outcome.is_err() {
            self.settle_all().await?;
        }
        outcome
    }
}

/// 403 for the object of a write.
pub(super) fn refusal(change: AdmissionWrite<'_>, new: &Value, why: &str) -> ApiError {
    let resource = &change.served.resource;
    let name = metadata::text(new, "name");
    ApiError::forbidden(&resource.group, &resource.plural, name, why)
}
