//! Errors in the name of a resource.

use super::Served;
use crate::status::{ApiError, Problems, Result};

impl Served {
    /// The etcd key prefix of this resource in kube-apiserver; some errors show it.
    pub fn storage_key(&self) -> String {
        let resource = &self.resource;
        let plural = resource.plural.as_str();
        if self.is_custom() {
            return format!("/registry/{}/{plural}", resource.group);
        }
        let place = match plural {
            "services" => "services/specs",
            "endpoints" => "services/endpoints",
            "nodes" => "minions",
            "replicationcontrollers" => "controllers",
            "ingresses" => "ingress",
            "customresourcedefinitions" => "apiextensions.k8s.io/customresourcedefinitions",
            other => other,
        };
        format!("/registry/{place}")
    }

    /// 404 for an object.
    pub fn not_found(&self, name: &str) -> ApiError {
        ApiError::not_found(&self.resource.group, &self.resource.plural, name)
    }

    /// 409 for a name that is taken.
    pub fn already_exists(&self, name: &str) -> ApiError {
        ApiError::already_exists(&self.resource.group, &self.resource.plural, name)
    }

    /// 409 for an outdated resourceVersion.
    pub fn stale(&self, name: &str) -> ApiError {
        ApiError::stale(&self.resource.group, &self.resource.plural, name)
    }

    /// 422 for an update without a resourceVersion. kube-apiserver names the plural here, and not
    /// the kind as in every other error of this reason.
    pub fn unversioned(&self, name: &str) -> ApiError {
        let mut problems = Problems::new();
        let detail = "must be specified for an update";
        problems.invalid("metadata.resourceVersion", 0, detail);
        ApiError::invalid(&self.resource.group, &self.resource.plural, name, &problems)
    }

    /// 422 if there is any problem with `value`; the error names the kind that the object declares.
    pub fn refuse_object(
        &self,
        value: &serde_json::Value,
        name: &str,
        problems: &Problems,
    ) -> Result<()> {
        if problems.is_empty() || !self.is_foreign(value) {
            return self.refuse(name, problems);
        }
        let kind = value["kind"].as_str().unwrap_or_default();
        Err(ApiError::invalid(
            &self.resource.group,
            kind,
            name,
            problems,
        ))
    }

    /// 422 if there is any problem.
    pub fn refuse(&self, name: &str, problems: &Problems) -> Result<()> {
        if problems.is_empty() {
            return Ok(());
        }
        // Events are named by the group they are stored in.
        let group = match self.resource.group.as_str() {
            "events.k8s.io" => "",
            group => group,
        };
        Err(ApiError::invalid(
            group,
            &self.resource.kind,
            name,
            problems,
        ))
    }

    /// 403 for a delete of an object that must stay.
    pub fn may_delete(&self, value: &serde_json::Value) -> Result<()> {
        let name = value["metadata"]["name"].as_str().unwrap_or_default();
        let refuse =
            |why| ApiError::forbidden(&self.resource.group, &self.resource.plural, name, why);
        self.role.may_delete(value).map_err(refuse)
    }
}
