//! What is asked: who wants to do what to which object or path.

use std::fmt;

use http::StatusCode;

use super::MASTERS;
use crate::{identity::User, status::ApiError};

/// Somebody, as far as roles are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who<'a> {
    /// Name.
    pub name: &'a str,
    /// Groups.
    pub groups: &'a [String],
}

impl User {
    /// The user as roles know them.
    pub fn who(&self) -> Who<'_> {
        Who {
            name: &self.name,
            groups: &self.groups,
        }
    }
}

impl Who<'_> {
    /// Whether they may do everything, whatever roles say.
    pub fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }
}

/// What something is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What<'a> {
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
    /// A path that leads to no resource.
    Path(&'a str),
}

/// Who wants to do what to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes<'a> {
    /// Who.
    pub who: Who<'a>,
    /// The verb; for a path the method in lower case.
    pub verb: &'a str,
    /// To what.
    pub what: What<'a>,
}

impl Attributes<'_> {
    /// 403, with what is said of the reason, if anything.
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
            What::Resource {
                group,
                resource,
                name,
                ..
            } => ApiError::forbidden(group, resource, name, &why),
            What::Path(_) => {
                let message = format!("forbidden: {why}");
                let error = ApiError::new(StatusCode::FORBIDDEN, "Forbidden", message);
                error.about("", "", "")
            }
        }
    }
}

/// As refusals name it: `resource "pods/log" in API group "" in the namespace "default"`.
impl fmt::Display for What<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, resource, subresource, namespace) = match *self {
            What::Path(path) => return write!(f, "path \"{path}\""),
            What::Resource {
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
