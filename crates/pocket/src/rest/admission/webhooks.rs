//! Which webhooks are asked about a write, in which order, and what becomes of their answers.

use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};

use super::{
    call::tell,
    matter::{Face, Matter, place},
};
use crate::{
    admission::{Ask, Hook, Operation, Phase, Place},
    kinds::{NAMESPACES, scale},
    patch,
    rest::{Machine, Served},
    status::{ApiError, Result},
};

/// The versions of a resource and the labels of its home: what does not change while webhooks are
/// asked about one write.
pub(super) struct Scene {
    pub(super) versions: Vec<Arc<Served>>,
    labels: Option<Value>,
}

impl Scene {
    /// The version in which this webhook wants to see the object, if it wants to see it.
    fn version_for(
        &self,
        hook: &Hook,
        matter: &Matter<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Option<&Served> {
        let places: Vec<Place<'_>> = self.versions.iter().map(|served| place(served)).collect();
        let own = object.or(old).map(|value| &value["metadata"]["labels"]);
        let is_home = matter.served.is_namespace() && matter.subresource().is_empty();
        let index = hook.wants(&Ask {
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
    fn scene(&self, matter: &Matter<'_>) -> Scene {
        let home = match matter.served {
            served if served.is_namespace() => &matter.request.target.name,
            _ => &matter.request.target.namespace,
        };
        let labels = || {
            let head = self.view.store().head(NAMESPACES, home)?;
            Some(head.object?.value()["metadata"]["labels"].take())
        };
        Scene {
            versions: matter.versions(self),
            labels: (!home.is_empty()).then(|| labels().unwrap_or_default()),
        }
    }

    /// Asks the webhooks that may change the object, one after the other. Those that want to see
    /// what others changed after them are asked once more. True if any changed it.
    pub(super) async fn ask_to_change(
        &self,
        matter: &Matter<'_>,
        object: &mut Value,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<bool> {
        let hooks = self.hooks.of(Phase::Mutating);
        if hooks.is_empty() {
            return Ok(false);
        }
        let scene = self.scene(matter);
        let mut seen = vec![Seen::Never; hooks.len()];
        let mut changed = false;
        for round in 0..2 {
            for (index, hook) in hooks.iter().enumerate() {
                if round == 1 && !(hook.reinvoked && seen[index] == Seen::Before) {
                    continue;
                }
                let given = Some(&*object).filter(|object| !object.is_null());
                let Some(version) = scene.version_for(hook, matter, given, old) else {
                    continue;
                };
                let answer = self
                    .ask_one(
                        hook,
                        Phase::Mutating,
                        matter,
                        version,
                        (given, old),
                        warnings,
                    )
                    .await?;
                let Some(answer) = answer else { continue };
                seen[index] = Seen::Now;
                if let Some(patch) = answer.patch
                    && change(matter, version, hook, object, patch, warnings)?
                {
                    changed = true;
                    for (other, seen) in seen.iter_mut().enumerate() {
                        if other != index && *seen == Seen::Now {
                            *seen = Seen::Before;
                        }
                    }
                }
            }
        }
        Ok(changed)
    }

    /// Asks the webhooks that may only refuse, all at once. The first in order is heard.
    pub(super) async fn ask_to_agree(
        &self,
        matter: &Matter<'_>,
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
                    .ask_one(
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
            tell(warnings, told);
            outcome = outcome.and(answer.map(|_| ()));
        }
        outcome
    }
}

/// Which state of the object a webhook was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// None yet.
    Never,
    /// One that was changed since.
    Before,
    /// The present one, but for its own changes.
    Now,
}

/// Applies the patch of a webhook. True if it changed anything.
fn change(
    matter: &Matter<'_>,
    version: &Served,
    hook: &Hook,
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
        Face::Plain(_) => *object = new,
        Face::Scale(paths) => {
            scale::write(object, &new, &paths);
        }
        Face::Stored => {
            for field in ["kind", "apiVersion"] {
                if new[field] != shown[field] {
                    return Err(ApiError::internal(format!(
                        "no kind {} is registered for version {}",
                        new["kind"], new["apiVersion"]
                    )));
                }
            }
            keep_bookings(&mut new, &shown, warnings);
            version.conform(&mut new).map_err(internal)?;
            version.to_storage(&mut new);
            version.default(&mut new);
            *object = new;
        }
    }
    Ok(true)
}

/// A webhook may rewrite who owns which field, but not make nonsense of it.
fn keep_bookings(new: &mut Value, shown: &Value, warnings: &mut Vec<String>) {
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
