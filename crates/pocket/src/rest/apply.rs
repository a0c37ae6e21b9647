//! Server-side apply: PATCH with the fields of one manager, whether the object exists or not.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::{
    Machine, Reply, Request, Served,
    create::FieldOwnership,
    hidden_parts::HiddenParts,
    incoming::{check_place, nameless},
    metadata,
    update::{ObjectPart, Proposal, requested_revision},
};
use crate::{
    kinds::{KindRole, event::convert::name_owned},
    patch::apply,
    status::{ApiError, Result},
    store::Object,
};

impl Machine {
    pub(super) async fn apply(
        &self,
        request: &Request,
        served: &Arc<Served>,
        part: ObjectPart,
    ) -> Result<Reply> {
        if !part.makes(served) {
            self.present(request, served).await?;
        }
        let mut warnings = Vec::new();
        let (kind, version) = (&served.resource.kind, &served.api_version);
        let mut config = applied_config(request, kind, version, &mut warnings)?;
        let unstorable = served.read_applied(&mut config);
        let dry_run = unstorable.is_some().then(|| request.as_dry_run());
        let request = dry_run.as_ref().unwrap_or(request);
        let created = self
            .apply_new(request, served, part, &config, &mut warnings)
            .await?;
        let (status, object) = if let Some(object) = created {
            (StatusCode::CREATED, object)
        } else {
            let change = |old: &Value| self.apply_over(request, served, part, old, &config);
            let object = self
                .modify(request, served, part, &mut warnings, change)
                .await
                .map_err(|error| error.warned(&warnings))?;
            (StatusCode::OK, object)
        };
        if let Some(why) = unstorable {
            return Err(ApiError::failure(why).warned(&warnings));
        }
        let reply = self.reply(request, served, status, &object)?;
        Ok(reply.with_warnings(warnings))
    }

    /// A missing object is reported before any error of the configuration.
    pub(super) async fn present(&self, request: &Request, served: &Served) -> Result<()> {
        let path = request.target.path();
        if self
            .head(served, &path)
            .is_some_and(|head| head.object.is_some())
        {
            return Ok(());
        }
        self.settle_head(served, &path).await?;
        Err(served.not_found(&request.target.name))
    }

    /// Creates the object if there is none. `None` if there is one, or a concurrent create was
    /// first.
    async fn apply_new(
        &self,
        request: &Request,
        served: &Served,
        part: ObjectPart,
        config: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Arc<Object>>> {
        let head = self.head(served, &request.target.path());
        if !part.makes(served) || head.is_some_and(|head| head.object.is_some()) {
            return Ok(None);
        }
        let owned = self.owned_stamp(request, served, part)?;
        let applied = apply::apply(served.schema(), None, config, &owned.stamp(), true)?;
        let (mut value, hidden) = fit(served, part, config, applied.object)?;
        if !metadata::text(config, "uid").is_empty() {
            self.settle_head(served, &request.target.path()).await?;
            let uid = metadata::text(config, "uid");
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            let (resource, name) = (&served.resource, &request.target.name);
            return Err(ApiError::conflict(
                &resource.group,
                &resource.plural,
                name,
                &why,
            ));
        }
        if metadata::text(config, "name").is_empty() {
            return Err(nameless(&request.target.name));
        }
        check_place(request, served, &mut value)?;
        requested_revision(config)?;
        let inserted = self
            .insert(
                request,
                served,
                value,
                FieldOwnership::Applied(hidden),
                warnings,
            )
            .await;
        match inserted {
            // A concurrent create was first: go on as if the object had existed.
            Err(error) if error.reason == "AlreadyExists" => Ok(None),
            other => other.map(Some),
        }
    }

    fn apply_over(
        &self,
        request: &Request,
        served: &Served,
        part: ObjectPart,
        old: &Value,
        config: &Value,
    ) -> Result<Proposal> {
        let owned = self.owned_stamp(request, served, part)?;
        let mut live = old.clone();
        served.from_storage(&mut live);
        if served.role == KindRole::Event {
            name_owned(&mut live, Some(&served.api_version));
        }
        if served.is_custom() {
            apply::check_typed(served.schema(), &live)?;
        }
        let force = request.flag("force");
        let applied = apply::apply(served.schema(), Some(&live), config, &owned.stamp(), force)?;
        let (mut value, hidden) = fit(served, part, config, applied.object)?;
        if metadata::text(&value, "name").is_empty() {
            return Err(nameless(&request.target.name));
        }
        check_place(request, served, &mut value)?;
        served.to_storage(&mut value);
        if served.role == KindRole::Event {
            name_owned(&mut value, None);
        }
        Ok(Proposal {
            value,
            ownership: FieldOwnership::Applied(hidden),
        })
    }
}

/// The merged object in the form of its kind, and what was dropped from it.
fn fit(
    served: &Served,
    part: ObjectPart,
    config: &Value,
    merged: Value,
) -> Result<(Value, HiddenParts)> {
    let mut value = merged;
    let applied = served.is_custom().then(|| value.clone());
    served
        .conform_merged(&mut value)
        .map_err(|why| unconvertible(served, config, &why))?;
    served.check_alias(&mut value)?;
    let hidden = applied.map(|applied| HiddenParts::between(served, part, &applied, &value));
    Ok((value, hidden.unwrap_or_default()))
}

/// The configuration, which must have apiVersion and kind. Its fields are as they were sent: the
/// claims are read from them, and unknown ones are refused with their path.
pub(super) fn applied_config(
    request: &Request,
    kind: &str,
    api_version: &str,
    warnings: &mut Vec<String>,
) -> Result<Value> {
    let payload = request.payload()?;
    let config = payload.value;
    if config["kind"] != kind || config["apiVersion"] != api_version {
        let given = |field: &str| config[field].as_str().unwrap_or_default();
        let (version, kind) = (given("apiVersion"), given("kind"));
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        return Err(ApiError::bad_request(format!(
            "invalid object type: {group}/{version}, Kind={kind}"
        )));
    }
    let mode = request.field_validation()?;
    warnings.extend(mode.check(&[], &payload.duplicates, kind, api_version)?);
    Ok(config)
}

/// 500, as in kube-apiserver, for an object that does not fit its kind after the apply.
fn unconvertible(served: &Served, config: &Value, why: &str) -> ApiError {
    let kind = format!("{}, Kind={}", shown_version(served), served.resource.kind);
    let (namespace, name) = (
        metadata::text(config, "namespace"),
        metadata::text(config, "name"),
    );
    ApiError::failure(format!(
        "failed to convert new object ({namespace}/{name}; {kind}) to proper version: \
         unable to convert unstructured object to {kind}: {why}"
    ))
}

/// `/v1` of the core group, `apps/v1` of others.
fn shown_version(served: &Served) -> String {
    format!("{}/{}", served.resource.group, served.version)
}
