//! PATCH: four languages for a change, one loop that carries it out.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::{
    Machine, Reply, Request, Served,
    create::Booking,
    incoming::Payload,
    metadata,
    update::{Part, Proposal},
};
use crate::{
    patch::{apply, json, merge, strategic},
    status::{ApiError, Problems, Result},
    store::Object,
};

/// The language of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Json,
    Merge,
    Strategic,
    Apply,
}

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
const APPLY_YAML: &str = "application/apply-patch+yaml";

impl Machine {
    pub(super) async fn patch(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        self.patch_part(request, served, Part::Main).await
    }

    /// PATCH on the main resource or on status.
    pub(super) async fn patch_part(
        &self,
        request: &Request,
        served: &Arc<Served>,
        part: Part,
    ) -> Result<Reply> {
        let language = language(request, served)?;
        let mut warnings = Vec::new();
        if language == Language::Apply {
            return self.apply(request, served, part).await;
        }
        if request.parameter("force").is_some() {
            let mut problems = Problems::new();
            problems.forbidden("force", "may not be specified for non-apply patch");
            return Err(super::request::option_error("patch", &problems));
        }
        let payload = request.payload()?;
        let mut strict = Vec::new();
        let object = self
            .modify(request, served, part, &mut warnings, |old| {
                strict.clear();
                let value = self.patched(request, served, language, old, &payload, &mut strict)?;
                Ok(Proposal {
                    value,
                    booking: Booking::Whole,
                })
            })
            .await?;
        warnings.extend(strict);
        let reply = self.reply(request, served, StatusCode::OK, &object)?;
        Ok(reply.with_warnings(warnings))
    }

    /// The stored object with the patch applied, in shape and in the storage version again.
    fn patched(
        &self,
        request: &Request,
        served: &Served,
        language: Language,
        old: &Value,
        payload: &Payload,
        warnings: &mut Vec<String>,
    ) -> Result<Value> {
        let mut live = old.clone();
        served.from_storage(&mut live);
        let patch = &payload.value;
        let value = match language {
            Language::Json => json::apply(live, patch.clone())?,
            Language::Merge => merge::apply(live, patch.clone())?,
            Language::Strategic => strategic::apply(served.schema(), live, patch.clone())?,
            Language::Apply => unreachable!("apply has a path of its own"),
        };
        let payload = Payload {
            value,
            duplicates: payload.duplicates.clone(),
        };
        let mut value = self.shape(request, served, payload, warnings)?;
        served.to_storage(&mut value);
        Ok(value)
    }

    async fn apply(&self, request: &Request, served: &Arc<Served>, part: Part) -> Result<Reply> {
        let mut warnings = Vec::new();
        let config = self.applied_config(request, served, &mut warnings)?;
        if self
            .head(served, &request.target.path())
            .is_none_or(|head| head.object.is_none())
        {
            if part != Part::Main {
                self.settle_head(served, &request.target.path()).await?;
                return Err(served.not_found(&request.target.name));
            }
            if !metadata::text(&config, "uid").is_empty() {
                let why = "uid mismatch: the provided object specified a uid, and no existing object was found";
                let resource = &served.resource;
                return Err(ApiError::conflict(
                    &resource.group,
                    &resource.plural,
                    &request.target.name,
                    why,
                ));
            }
            let booked = self.booked(request, served, part)?;
            let applied =
                apply::apply(served.schema(), None, &config, &booked.stamp(), true)?.object;
            match self
                .insert(request, served, applied, Booking::Done, &mut warnings)
                .await
            {
                // Somebody created it meanwhile: go on as if it had been there.
                Err(error) if error.reason == "AlreadyExists" => {}
                Err(error) => return Err(error),
                Ok(object) => {
                    return self.applied(request, served, StatusCode::CREATED, &object, warnings);
                }
            }
        }
        let force = request.flag("force");
        let object = self
            .modify(request, served, part, &mut warnings, |old| {
                let booked = self.booked(request, served, part)?;
                let mut live = old.clone();
                served.from_storage(&mut live);
                let applied = apply::apply(
                    served.schema(),
                    Some(&live),
                    &config,
                    &booked.stamp(),
                    force,
                )?;
                let mut value = applied.object;
                served.to_storage(&mut value);
                Ok(Proposal {
                    value,
                    booking: Booking::Done,
                })
            })
            .await?;
        self.applied(request, served, StatusCode::OK, &object, warnings)
    }

    fn applied(
        &self,
        request: &Request,
        served: &Served,
        status: StatusCode,
        object: &Arc<Object>,
        warnings: Vec<String>,
    ) -> Result<Reply> {
        let reply = self.reply(request, served, status, object)?;
        Ok(reply.with_warnings(warnings))
    }

    /// The configuration of an apply, which must say what it is and claim no managed fields.
    fn applied_config(
        &self,
        request: &Request,
        served: &Served,
        warnings: &mut Vec<String>,
    ) -> Result<Value> {
        if request.parameter("fieldManager").is_none() {
            let mut problems = Problems::new();
            problems.required("fieldManager", "is required for apply patch");
            return Err(super::request::option_error("patch", &problems));
        }
        let payload = request.payload()?;
        for field in ["apiVersion", "kind"] {
            if !payload.value[field].is_string() {
                return Err(ApiError::bad_request(format!(
                    "an applied configuration must have {field} set"
                )));
            }
        }
        if payload.value["metadata"]
            .get("managedFields")
            .is_some_and(|fields| !fields.is_null())
        {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        self.shape(request, served, payload, warnings)
    }
}

fn language(request: &Request, served: &Served) -> Result<Language> {
    let custom = served.is_custom();
    match request.content_type.as_str() {
        JSON_PATCH => Ok(Language::Json),
        MERGE_PATCH => Ok(Language::Merge),
        STRATEGIC_PATCH if !custom => Ok(Language::Strategic),
        APPLY_YAML => Ok(Language::Apply),
        _ => {
            let mut accepted = vec![JSON_PATCH, MERGE_PATCH];
            if !custom {
                accepted.push(STRATEGIC_PATCH);
            }
            accepted.push(APPLY_YAML);
            Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "UnsupportedMediaType",
                format!(
                    "the body of the request was in an unknown format - accepted media types include: {}",
                    accepted.join(", ")
                ),
            ))
        }
    }
}
