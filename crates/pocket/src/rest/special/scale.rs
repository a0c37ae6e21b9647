//! The scale subresource: one number of many kinds, read and written the same way.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use crate::{
    kinds::scale::ScalePaths,
    patch::{json, merge},
    rest::{
        Machine, Reply, Request, Served, Verb,
        create::Booking,
        reply::finish,
        update::{Part, Proposal},
    },
    status::{ApiError, Result},
    store::Object,
};

impl Machine {
    pub(super) async fn scale(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        let paths = served.scale().ok_or_else(crate::rest::registry::missing)?;
        if request.verb == Verb::Get {
            let object = self.read(request, served).await?;
            return self.show_scale(request, served, &paths, &object);
        }
        let payload = request.payload()?;
        let change = |old: &Value| {
            let current = paths.read(&served.converted(old.clone()));
            let wanted = match (request.verb, request.content_type.as_str()) {
                (Verb::Update, _) => payload.value.clone(),
                (_, "application/json-patch+json") => json::apply(current, &payload.value)?,
                (_, "application/merge-patch+json" | "application/strategic-merge-patch+json") => {
                    merge::apply(current, &payload.value)?
                }
                (_, other) => return Err(unsupported(other)),
            };
            let value = paths.write(old, &wanted).map_err(|problems| {
                ApiError::invalid("autoscaling", "Scale", &request.target.name, &problems)
            })?;
            Ok(Proposal {
                value,
                booking: Booking::Whole,
            })
        };
        let object = self.modify(request, served, Part::Other("scale"), &mut Vec::new(), change).await?;
        self.show_scale(request, served, &paths, &object)
    }

    fn show_scale(&self, request: &Request, served: &Served, paths: &ScalePaths, object: &Arc<Object>) -> Result<Reply> {
        let scale = paths.read(&served.value(object));
        finish(request, StatusCode::OK, scale.to_string().into())
    }
}

fn unsupported(media_type: &str) -> ApiError {
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        format!("{media_type} cannot change a scale: use merge-patch+json or json-patch+json"),
    )
}
