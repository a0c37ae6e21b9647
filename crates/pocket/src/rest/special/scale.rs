//! The scale subresource: one number of many kinds, read and written the same way.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use crate::{
    kinds::scale::{self, Paths},
    patch::{json, merge},
    rest::{
        Machine, Reply, Request, Served, Verb,
        create::Booking,
        reply::finish,
        update::{Part, Proposal},
    },
    schema::{self, conform},
    status::{ApiError, Problems, Result},
    store::Object,
};

impl Machine {
    pub(super) async fn scale(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        let paths = served.scale().ok_or_else(crate::rest::registry::missing)?;
        if request.verb == Verb::Get {
            let object = self.read(request, served).await?;
            return show_scale(request, served, &paths, &object);
        }
        let mut payload = request.payload()?;
        if request.verb == Verb::Update
            && !served.is_custom()
            && let Some(schema) = schema::of_kind("autoscaling", "v1", "Scale")
        {
            conform::conform(schema, &mut payload.value, "Scale", "autoscaling/v1")?;
        }
        let change = |old: &Value| {
            let current = scale::read(&served.converted(old.clone()), &paths);
            let wanted = match (request.verb, request.content_type.as_str()) {
                (Verb::Update, _) => payload.value.clone(),
                (_, "application/json-patch+json") => json::apply(current, payload.value.clone())?,
                (_, "application/merge-patch+json" | "application/strategic-merge-patch+json") => {
                    merge::apply(current, payload.value.clone())?
                }
                (_, other) => return Err(unsupported(other)),
            };
            let mut problems = Problems::new();
            scale::validate(&wanted, &paths, served.is_custom(), &mut problems);
            if served.is_custom() {
                served.refuse(&request.target.name, &problems)?;
            } else if !problems.is_empty() {
                let name = &request.target.name;
                return Err(ApiError::invalid("autoscaling", "Scale", name, &problems));
            }
            let mut value = old.clone();
            scale::write(&mut value, &wanted, &paths);
            copy_preconditions(&mut value, &wanted);
            Ok(Proposal {
                value,
                booking: Booking::Whole,
            })
        };
        let mut warnings = Vec::new();
        let object = self
            .modify(request, served, Part::Other("scale"), &mut warnings, change)
            .await?;
        Ok(show_scale(request, served, &paths, &object)?.with_warnings(warnings))
    }
}

fn show_scale(
    request: &Request,
    served: &Served,
    paths: &Paths<'_>,
    object: &Arc<Object>,
) -> Result<Reply> {
    let scale = scale::read(&served.value(object), paths);
    finish(request, StatusCode::OK, scale.to_string().into())
}

/// A scale or binding that names a state of the object means that state.
pub(super) fn copy_preconditions(value: &mut Value, sent: &Value) {
    for field in ["resourceVersion", "uid"] {
        if let Some(named) = sent["metadata"].get(field) {
            value["metadata"][field] = named.clone();
        }
    }
}

fn unsupported(media_type: &str) -> ApiError {
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        format!("{media_type} cannot change a scale: use merge-patch+json or json-patch+json"),
    )
}
