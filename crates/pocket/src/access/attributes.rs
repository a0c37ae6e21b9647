//! The attributes of a request that authorization decides on: user, verb, and resource or path.

use std::fmt;

use http::StatusCode;

use super::MASTERS;
use crate::{identity::User, status::ApiError};

/// A user as RBAC sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requester<'a> {
    pub name: &'a str,
    pub groups: &'a [String],
}

impl User {
    /// The user as RBAC sees them.
    pub fn who(&self) -> Requester<'_> {
        Requester {
            name: &self.name,
            groups: &self.groups,
        }
    }
}

impl Requester<'_> {
    /// Whether the user is in `system:masters`, which is allowed everything, whatever the roles
    /// grant.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

/// The target of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessTarget<'a> {
    /// An object or a collection. Absent parts are empty.
    Resource {
        /// API group.
        group: &'a str,
        /// Plural resource name.
        resource: &'a str,
        /// Subresource.
        subresource: &'a str,
        /// Object name.
        name: &'a str,
        /// Namespace.
        namespace: &'a str,
    },
    /// A path that is not a resource.
    Path(&'a str),
}

/// A request: who wants to do what, to which target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes<'a> {
    pub who: Requester<'a>,
    /// The verb; for a path the method in lower case.
    pub verb: &'a str,
    pub what: AccessTarget<'a>,
}

impl Attributes<'_> {
    /// 403, with the reason, if there is one.
    pub fn forbidden(&self, reason: &str) -> ApiError {
        let mut why = format!(
            "User \"{}\" cannot {} {}",
            self.who.name, self.verb, self.what
        );
        if !reason.is_empty() {
            why.push_str(": ");
            why.push_str(reason);
        }
        match self.what {
            AccessTarget::Resource {
                group,
                resource,
                name,
                ..
            } => ApiError::forbidden(group, resource, name, &why),
            AccessTarget::Path(_) => {
                let message = format!("forbidden: {why}");
                let error = ApiError::new(StatusCode::FORBIDDEN, "Forbidden", message);
                error.about("", "", "")
            }
        }
    }
}

/// As refusals name it: `resource "pods/log" in API group "" in the namespace "default"`.
impl fmt::Display for AccessTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, resource, subresource, namespace) = match *self {
            AccessTarget::Path(path) => return write!(f, "path \"{path}\""),
            AccessTarget::Resource {
                group,
                resource,
                subresource,
                namespace,
                ..
            } => (group, resource, subresource, namespace),
        };
        let slash = if subresource.is_empty() { "" } else { "/" };
        write!(
            f,
            "resource \"{resource}{slash}{subresource}\" in API group \"{group}\" "
        )?;
        match namespace {
            "" => f.write_str("at the cluster scope"),
            namespace => write!(f, "in the namespace \"{namespace}\""),
        }
    }
}
