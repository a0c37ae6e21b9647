//! Subresources: status and scale of any kind, and those that single kinds have.

mod access;
mod identity;
mod pods;
mod reviews;
mod scale;

use std::sync::Arc;

use super::{Machine, Reply, Request, Served, Verb, registry::missing, update::ObjectPart};
use crate::status::{ApiError, Result};

impl Machine {
    pub(super) async fn subresource(
        &self,
        request: &Request,
        served: &Arc<Served>,
    ) -> Result<Reply> {
        let mut name = request.target.subresource.as_deref().unwrap_or_default();
        if served.is_custom() {
            // The rest of the path is ignored.
            name = name.split('/').next().unwrap_or_default();
        }
        let Some(subresource) = served.subresource(name) else {
            // A custom object is reported as missing, whether it exists or not.
            return Err(if served.is_custom() {
                served.not_found(&request.target.name)
            } else {
                missing()
            });
        };
        super::check_segment(request)?;
        if !subresource
            .verbs
            .iter()
            .any(|verb| verb == request.verb.name())
        {
            return Err(ApiError::method_not_allowed());
        }
        match (name, request.verb) {
            ("status", Verb::Get) => self.get(request, served).await,
            ("status", Verb::Update) => self.replace(request, served, ObjectPart::Status).await,
            ("status", Verb::Patch) => self.patch_part(request, served, ObjectPart::Status).await,
            ("scale", _) => self.scale(request, served).await,
            ("finalize", _) => {
                self.replace(request, served, ObjectPart::Other("finalize"))
                    .await
            }
            ("binding", _) => self.bind(request, served).await,
            ("eviction", _) => self.evict(request, served).await,
            ("log", _) => self.log(request, served).await,
            ("token", _) => self.request_token(request, served).await,
            _ => Err(missing()),
        }
    }
}
