//! Which webhooks are called for a write, in which order, and how their responses are applied.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};

use super::{
    call::add_warnings,
    reviewed_write::{ReviewedWrite, ShownForm, place},
};
use crate::{
    admission::{GroupVersionResource, Operation, Phase, Webhook, WriteAttributes},
    kinds::{NAMESPACES, scale},
    patch,
    rest::{Machine, Served},
    status::{ApiError, Result},
};

/// The versions of a resource and the labels of its namespace: what does not change while webhooks
/// are called for one write.
pub(super) struct ReviewContext {
    pub(super) versions: Vec<Arc<Served>>,
    labels: Option<Value>,
}

impl ReviewContext {
    /// The version in which this webhook gets the object, if it is called.
    fn version_for(
        &self,
        hook: &Webhook,
        matter: &ReviewedWrite<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Option<&Served> {
        let places: Vec<GroupVersionResource<'_>> =
            self.versions.iter().map(|served| place(served)).collect();
        let own = object.or(old).map(|value| &value["metadata"]["labels"]);
        let is_home = matter.served.is_namespace() && matter.subresource().is_empty();
        let index = hook.wants(&WriteAttributes {
            operation: matter.operation,
            places: &places,
            subresource: matter.subresource(),
            namespaced: matter.served.resource.namespaced,
            namespace_labels: if is_home { own } else { self.labels.as_ref() },
            object,
            old,
        })?;
        self.versions.get(index).map(|served| &**served)
    }
}

impl Machine {
    fn scene(&self, matter: &ReviewedWrite<'_>) -> ReviewContext {
        let home = match matter.served {
            served if served.is_namespace() => &matter.request.target.name,
            _ => &matter.request.target.namespace,
        };
        let labels = || {
            let head = self.view.store().head(NAMESPACES, home)?;
            Some(head.object?.value()["metadata"]["labels"].take())
        };
        ReviewContext {
            versions: matter.versions(self),
            labels: (!home.is_empty()).then(|| labels().unwrap_or_default()),
        }
    }

    /// Calls the mutating webhooks, one after the other. Those with `reinvocationPolicy: IfNeeded`
    /// are called once more if others changed the object after them. True if any changed it.
    pub(super) async fn call_mutating(
        &self,
        matter: &ReviewedWrite<'_>,
        object: &mut Value,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<bool> {
        let hooks = self.hooks.of(Phase::Mutating);
        if hooks.is_empty() {
            return Ok(false);
        }
        let scene = self.scene(matter);
        let mut seen = vec![ShownState::Never; hooks.len()];
        let mut changed = false;
        for round in 0..2 {
            for (index, hook) in hooks.iter().enumerate() {
                if round == 1 && !(hook.reinvoked && seen[index] == ShownState::Before) {
                    continue;
                }
                let given = Some(&*object).filter(|object| !object.is_null());
                let Some(version) = scene.version_for(hook, matter, given, old) else {
                    continue;
                };
                let answer = self
                    .call_webhook(
                        hook,
                        Phase::Mutating,
                        matter,
                        version,
                        (given, old),
                        warnings,
                    )
                    .await?;
                let Some(answer) = answer else { continue };
                seen[index] = ShownState::Now;
                if let Some(patch) = answer.patch
                    && change(matter, version, hook, object, patch, warnings)?
                {
                    changed = true;
                    for (other, seen) in seen.iter_mut().enumerate() {
                        if other != index && *seen == ShownState::Now {
                            *seen = ShownState::Before;
                        }
                    }
                }
            }
        }
        Ok(changed)
    }

    /// Calls the validating webhooks, all at once. The first refusal in order counts.
    pub(super) async fn call_validating(
        &self,
        matter: &ReviewedWrite<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let hooks = self.hooks.of(Phase::Validating);
        if hooks.is_empty() {
            return Ok(());
        }
        let scene = self.scene(matter);
        let scene = &scene;
        let asked = hooks.iter().filter_map(|hook| {
            let version = scene.version_for(hook, matter, object, old)?;
            Some(async move {
                let mut warnings = Vec::new();
                let answer = self
                    .call_webhook(
                        hook,
                        Phase::Validating,
                        matter,
                        version,
                        (object, old),
                        &mut warnings,
                    )
                    .await;
                (answer, warnings)
            })
        });
        let mut outcome = Ok(());
        for (answer, told) in join_all(asked).await {
            add_warnings(warnings, told);
            outcome = outcome.and(answer.map(|_| ()));
        }
        outcome
    }
}

/// Which state of the object a webhook has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShownState {
    /// None yet.
    Never,
    /// One that was changed since.
    Before,
    /// The present one, except for its own changes.
    Now,
}

/// Applies the patch of a webhook. True if it changed anything.
fn change(
    matter: &ReviewedWrite<'_>,
    version: &Served,
    hook: &Webhook,
    object: &mut Value,
    patch: Value,
    warnings: &mut Vec<String>,
) -> Result<bool> {
    if patch.as_array().is_some_and(Vec::is_empty) {
        return Ok(false);
    }
    if matter.operation == Operation::Delete {
        let name = &hook.name;
        return Err(ApiError::internal(format!(
            "admission webhook \"{name}\" attempted to modify the object, which is not supported for this operation"
        )));
    }
    let shown = matter.shown(version, object);
    let internal = |error: ApiError| ApiError::internal(error.message);
    let mut new = patch::json::apply(shown.clone(), patch).map_err(internal)?;
    if new == shown {
        return Ok(false);
    }
    match matter.face {
        ShownForm::Plain(_) => *object = new,
        ShownForm::Scale(paths) => {
            scale::write(object, &new, &paths);
        }
        ShownForm::Stored => {
            for field in ["kind", "apiVersion"] {
                if new[field] != shown[field] {
                    return Err(ApiError::internal(format!(
                        "no kind {} is registered for version {}",
                        new["kind"], new["apiVersion"]
                    )));
                }
            }
            keep_managed_fields(&mut new, &shown, warnings);
            version.conform(&mut new).map_err(internal)?;
            version.to_storage(&mut new);
            version.default(&mut new);
            *object = new;
        }
    }
    Ok(true)
}

/// Restores managedFields that a webhook made invalid; a webhook may rewrite them.
fn keep_managed_fields(new: &mut Value, shown: &Value, warnings: &mut Vec<String>) {
    let entries = &new["metadata"]["managedFields"];
    let sound = match entries {
        Value::Null => true,
        Value::Array(entries) => entries
            .iter()
            .all(|entry| entry["operation"] == "Apply" || entry["operation"] == "Update"),
        _ => false,
    };
    if sound || !new["metadata"].is_object() {
        return;
    }
    warnings.push(
        ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: operation must be `Apply` or `Update`".into(),
    );
    new["metadata"]["managedFields"] = match &shown["metadata"]["managedFields"] {
        Value::Null => json!([]),
        entries => entries.clone(),
    };
}
