//! Where operations are recorded: documents of the provider of clusters, and Operation objects of the cluster.
//! Both are read into one form, that of the provider.

use http::Method;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use neap_kit::{
    clock::Clock,
    operation::{Operation, Phase, StepStatus},
};
use serde_json::{Value, json};

use super::text;
use crate::{
    areas::fleet::{Provider, ProviderArgs},
    exit::{Exit, Failure},
    inspect::{
        cluster::Cluster,
        read::{self, OPERATION},
    },
};

/// The sources of the operations that the flags lead to.
pub(super) struct Sources {
    /// None if the cluster of the kubeconfig runs no provider.
    provider: Option<Provider>,
    /// None if a provider was named instead of a cluster.
    cluster: Option<Cluster>,
    pub(super) clock: Clock,
}

impl Sources {
    pub(super) async fn connect(args: &ProviderArgs) -> Result<Self, Failure> {
        let clock = Clock::system();
        if args.is_named() {
            return Ok(Self {
                provider: Some(Provider::connect(args).await?),
                cluster: None,
                clock,
            });
        }
        let cluster = Cluster::connect(&args.cluster, None).await?;
        let provider = Provider::of_cluster(args, &cluster).await?;
        Ok(Self {
            provider,
            cluster: Some(cluster),
            clock,
        })
    }

    /// All operations, newest first.
    pub(super) async fn all(&self) -> Result<Vec<Value>, Failure> {
        let mut all = Vec::new();
        if let Some(provider) = &self.provider {
            let path = "/admin/operations";
            let answer = provider.call(Method::GET, path, None).await?;
            all.extend(answer.body["value"].as_array().cloned().unwrap_or_default());
        }
        if let Some(cluster) = &self.cluster {
            let objects = read::list(&cluster.client, OPERATION, None, None).await;
            let objects = objects.map_err(|error| cluster.failed("operations", &error))?;
            let operations = objects
                .into_iter()
                .filter_map(|it| serde_json::from_value::<Operation>(it).ok());
            all.extend(operations.map(|operation| shown(&operation)));
        }
        all.sort_by_key(|it| std::cmp::Reverse(text(it, "/startTime").to_owned()));
        Ok(all)
    }

    /// The newest state of an operation.
    pub(super) async fn read(&self, operation: &Value) -> Result<Value, Failure> {
        if let (Some(cluster), Some((namespace, name))) = (&self.cluster, object(operation)) {
            let api: Api<Operation> = Api::namespaced(cluster.client.clone(), namespace);
            let found = api.get(name).await;
            let found = found.map_err(|error| cluster.failed("the operation", &error))?;
            return Ok(shown(&found));
        }
        let provider = self.provider()?;
        let path = path(operation, "");
        Ok(provider.call(Method::GET, &path, None).await?.body)
    }

    pub(super) async fn cancel(&self, operation: &Value, reason: &str) -> Result<(), Failure> {
        if let (Some(cluster), Some((namespace, name))) = (&self.cluster, object(operation)) {
            let api: Api<Operation> = Api::namespaced(cluster.client.clone(), namespace);
            let patch = json!({"spec": {"cancel": true, "cancelReason": reason}});
            let (parameters, patch) = (PatchParams::default(), Patch::Merge(&patch));
            let patched = api.patch(name, &parameters, &patch).await.map(drop);
            return patched.map_err(|error| cluster.failed("the operation", &error));
        }
        let reason = neap_kit::client::percent_encoded(reason);
        let path = format!("{}?reason={reason}", path(operation, "/cancel"));
        let cancelled = self.provider()?.call(Method::POST, &path, None).await;
        cancelled.map(drop)
    }

    /// Runs a failed operation again. Returns the id of the new one, and whether it keeps the steps that are done.
    pub(super) async fn retry(&self, operation: &Value) -> Result<(String, bool), Failure> {
        if let (Some(cluster), Some((namespace, name))) = (&self.cluster, object(operation)) {
            if !matches!(text(operation, "/status"), "Failed" | "Cancelled") {
                let what = "the operation did not fail";
                let why = text(operation, "/status");
                return Err(Failure::new("NT-CLI-0006", Exit::Refused, what, why));
            }
            let api: Api<Operation> = Api::namespaced(cluster.client.clone(), namespace);
            let failed = api.get(name).await;
            let failed = failed.map_err(|error| cluster.failed("the operation", &error))?;
            let again = again(&failed);
            let created = api.create(&PostParams::default(), &again).await;
            created.map_err(|error| cluster.failed("the operation", &error))?;
            let name = again.metadata.name.unwrap_or_default();
            return Ok((format!("{namespace}/{name}"), false));
        }
        let path = path(operation, "/retry");
        let answer = self.provider()?.call(Method::POST, &path, None).await?;
        Ok((text(&answer.body, "/id").to_owned(), true))
    }

    fn provider(&self) -> Result<&Provider, Failure> {
        self.provider.as_ref().ok_or_else(|| {
            let what = "there is no provider of clusters";
            Failure::new("NT-FLEET-0011", Exit::Unreachable, what, "it was removed")
        })
    }
}

/// Namespace and name of an operation that is an object.
fn object(operation: &Value) -> Option<(&str, &str)> {
    text(operation, "/id").split_once('/')
}

/// The path of an operation of the provider.
fn path(operation: &Value, action: &str) -> String {
    let mut parts = text(operation, "/cluster").split('/');
    let subscription = parts.nth(2).unwrap_or_default();
    let id = text(operation, "/id");
    format!("/admin/operations/{subscription}/{id}{action}")
}

/// An Operation object in the form of the provider.
fn shown(operation: &Operation) -> Value {
    let metadata = &operation.metadata;
    let status = operation.status.clone().unwrap_or_default();
    let spec = &operation.spec;
    let created = metadata
        .creation_timestamp
        .as_ref()
        .map(|it| it.0.to_string());
    let is_ended = matches!(
        status.phase,
        Phase::Succeeded | Phase::Failed | Phase::Cancelled
    );
    let ended = status.steps.iter().filter_map(|step| step.ended).max();
    let ended = ended.map_or(created.clone(), |time| Some(time.to_string()));
    let error = status.cause.as_ref().map(|cause| {
        json!({
            "code": cause.code.clone().unwrap_or_else(|| format!("{:?}", status.phase)),
            "message": cause.message,
        })
    });
    let of = |name: &Option<String>| name.clone().unwrap_or_default();
    json!({
        "id": format!("{}/{}", of(&metadata.namespace), of(&metadata.name)),
        "cluster": format!("{}/{}", spec.target.kind, spec.target.name),
        "work": spec.work,
        "status": format!("{:?}", status.phase),
        "startTime": created,
        "endTime": if is_ended { ended } else { None },
        "error": error,
        "cancelRequested": spec.cancel_reason,
        "stepsTotal": spec.steps.len(),
        "timeline": {"steps": status.steps.iter().map(step).collect::<Vec<_>>()},
    })
}

fn step(step: &StepStatus) -> Value {
    json!({
        "name": step.name,
        "state": step.state,
        "attempts": step.attempts,
        "began": step.started,
        "ended": step.ended,
        "cause": step.cause,
    })
}

/// Another operation with the work of one that failed. It begins with the first step: a finished timeline does
/// not change, and steps may be repeated.
fn again(failed: &Operation) -> Operation {
    let name = failed.metadata.name.clone().unwrap_or_default();
    let (base, number) = match name.rsplit_once("-retry-") {
        Some((base, number)) => (base.to_owned(), number.parse().unwrap_or(1_u32)),
        None => (name, 0),
    };
    let mut again = Operation::new(&format!("{base}-retry-{}", number + 1), failed.spec.clone());
    again
        .metadata
        .namespace
        .clone_from(&failed.metadata.namespace);
    again.metadata.labels.clone_from(&failed.metadata.labels);
    again.spec.cancel = false;
    again.spec.cancel_reason = None;
    again.spec.deadline = None;
    again
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(status: &Value) -> Operation {
        serde_json::from_value(json!({
            "apiVersion": "neaptide.dev/v1alpha1", "kind": "Operation",
            "metadata": {"namespace": "shop", "name": "roll", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {
                "work": "roll-out", "target": {"kind": "Deployment", "name": "web"},
                "steps": ["pull", "swap"], "cancel": true, "cancelReason": "late",
            },
            "status": status,
        }))
        .unwrap()
    }

    #[test]
    fn objects_are_shown_like_operations_of_the_provider() {
        let seen = shown(&operation(&json!({
            "phase": "Failed",
            "steps": [
                {"name": "pull", "state": "Succeeded", "attempts": 1, "started": "2026-01-01T00:00:01Z", "ended": "2026-01-01T00:00:05Z"},
                {"name": "swap", "state": "Failed", "attempts": 2, "started": "2026-01-01T00:00:05Z", "ended": "2026-01-01T00:00:09Z", "cause": {"message": "no room"}},
            ],
            "cause": {"code": "NT-KIT-005", "message": "no room"},
        })));
        assert_eq!(seen["id"], "shop/roll");
        assert_eq!(seen["cluster"], "Deployment/web");
        assert_eq!(
            (&seen["status"], &seen["stepsTotal"]),
            (&json!("Failed"), &json!(2))
        );
        assert_eq!(seen["endTime"], "2026-01-01T00:00:09Z");
        assert_eq!(seen["error"]["code"], "NT-KIT-005");
        assert_eq!(seen["timeline"]["steps"][1]["cause"]["message"], "no room");
        let running = shown(&operation(&json!({"phase": "Running", "steps": []})));
        assert!(running["endTime"].is_null() && running["error"].is_null());
    }

    #[test]
    fn another_run_has_the_same_work_and_its_own_name() {
        let first = again(&operation(&json!({"phase": "Failed"})));
        assert_eq!(first.metadata.name.as_deref(), Some("roll-retry-1"));
        assert_eq!(first.metadata.namespace.as_deref(), Some("shop"));
        assert!(!first.spec.cancel && first.status.is_none());
        assert_eq!(first.spec.steps, ["pull", "swap"]);
        let second = again(&first);
        assert_eq!(second.metadata.name.as_deref(), Some("roll-retry-2"));
    }
}
