//! PATCH: four patch types, and one loop that applies them.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::{
    Machine, Reply, Request, Served,
    create::FieldOwnership,
    incoming::{Origin, Payload, shape},
    request::APPLY_YAML,
    update::{ObjectPart, Proposal},
};
use crate::{
    patch::{json, merge, strategic},
    schema::{
        Schema,
        conform::{FieldValidation, unreadable_patch},
    },
    status::{ApiError, Result},
};

/// The patch types that describe a change. Apply describes the wanted state, and is handled
/// elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Json,
    Merge,
    Strategic,
}

/// The error for a list that should be an object.
const NO_OBJECT: &str = "json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

impl Language {
    /// Applies the patch to a value.
    ///
    /// An empty body changes nothing, except for a merge patch. The error for a malformed patch
    /// depends on whether field validation is requested, since that parses the patch first.
    pub(super) fn change(
        self,
        request: &Request,
        schema: Schema<'_>,
        live: Value,
        patch: &Value,
    ) -> Result<Value> {
        let lenient = request.field_validation()? == FieldValidation::Ignore;
        match (self, patch) {
            (Self::Json | Self::Strategic, Value::Null) => return Ok(live),
            (Self::Merge, Value::Object(_)) => {}
            (Self::Merge, Value::Array(_)) if lenient => {
                return Err(unreadable_patch(&format!(
                    "couldn't get version/kind; json parse error: {NO_OBJECT}"
                )));
            }
            (Self::Merge, other) if lenient || other.is_null() => {
                return Err(ApiError::bad_request("Invalid JSON Patch"));
            }
            (Self::Json, other) if lenient => json::check_lenient(other)?,
            _ => {}
        }
        Ok(match self {
            Self::Json => json::apply(live, patch.clone())?,
            Self::Merge => merge::apply(live, patch.clone())?,
            Self::Strategic => strategic::apply(schema, live, patch.clone())?,
        })
    }
}

impl Machine {
    pub(super) async fn patch(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        self.patch_part(request, served, ObjectPart::Main).await
    }

    /// PATCH on the main resource or on status.
    pub(super) async fn patch_part(
        &self,
        request: &Request,
        served: &Arc<Served>,
        part: ObjectPart,
    ) -> Result<Reply> {
        if request.content_type == APPLY_YAML {
            return self.apply(request, served, part).await;
        }
        let language = language(request, served)?;
        let mut warnings = Vec::new();
        let payload = match request.payload() {
            Ok(payload) => payload,
            Err(error) => {
                self.present(request, served).await?;
                return Err(error);
            }
        };
        let mut strict = Vec::new();
        let object = self
            .modify(request, served, part, &mut warnings, |old| {
                strict.clear();
                let value = patched(request, served, language, old, &payload, &mut strict)?;
                Ok(Proposal {
                    value,
                    ownership: FieldOwnership::Whole,
                })
            })
            .await;
        // Problems of the patch itself are reported first.
        strict.append(&mut warnings);
        let warnings = strict;
        let object = object.map_err(|error| error.warned(&warnings))?;
        let reply = self.reply(request, served, StatusCode::OK, &object)?;
        Ok(reply.with_warnings(warnings))
    }
}

/// The stored object with the patch applied, normalized and in the storage version again.
fn patched(
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
    let value = language.change(request, served.schema(), live, patch)?;
    let payload = Payload {
        value,
        duplicates: payload.duplicates.clone(),
        problem: None,
    };
    let mut value = shape(request, served, payload, Origin::Patch, warnings)?;
    served.to_storage(&mut value);
    Ok(value)
}

pub(super) fn language(request: &Request, served: &Served) -> Result<Language> {
    let custom = served.is_custom();
    match request.content_type.as_str() {
        JSON_PATCH => Ok(Language::Json),
        MERGE_PATCH => Ok(Language::Merge),
        STRATEGIC_PATCH if !custom => Ok(Language::Strategic),
        _ if custom => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: \
                 {JSON_PATCH}, {MERGE_PATCH}, {APPLY_YAML}"
            ),
        )),
        _ => Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            "415: Unsupported Media Type",
        )
        .about("", "", "")),
    }
}
