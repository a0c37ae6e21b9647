//! The namespace of a new object: it must exist and must not be terminating.

use http::StatusCode;
use serde_json::Value;

use super::{Machine, Request, Served};
use crate::{
    kinds::NAMESPACES,
    status::{ApiError, Result},
};

impl Machine {
    /// Refuses a new object in a missing or terminating namespace.
    pub(super) async fn check_namespace(&self, request: &Request, served: &Served) -> Result<()> {
        if !served.resource.namespaced {
            return Ok(());
        }
        let namespace = &request.target.namespace;
        // The newest state counts, not a lagging view: a terminating namespace accepts no more
        // objects.
        let head = self.view.store().head(NAMESPACES, namespace);
        if let Some(head) = &head {
            self.settled(head.revision).await?;
        }
        let Some(object) = head.and_then(|head| head.object) else {
            return Err(ApiError::not_found("", "namespaces", namespace));
        };
        if object.metadata().deletion_timestamp.is_none() {
            return Ok(());
        }
        Err(terminating(served, request, namespace))
    }
}

fn terminating(served: &Served, request: &Request, namespace: &str) -> ApiError {
    let name = request
        .body
        .as_ref()
        .map_or(&Value::Null, |body| &body.value["metadata"]["name"]);
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let resource = &served.resource;
    let name = name.as_str().unwrap_or_default();
    let error = ApiError::forbidden(&resource.group, &resource.plural, name, &why);
    debug_assert_eq!(error.code, StatusCode::FORBIDDEN);
    let message = format!("namespace {namespace} is being terminated");
    error.caused_by("NamespaceTerminating", "metadata.namespace", message)
}
