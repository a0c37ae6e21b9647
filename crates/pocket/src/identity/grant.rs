//! A request for a service account token: its duration, audiences and bound object.

use serde_json::Value;

use super::Reference;
use crate::status::{ApiError, Problems, Result};

/// The group and version of requests for tokens.
const API: (&str, &str) = ("authentication.k8s.io", "TokenRequest");
/// The kubelet requests this many seconds for a pod that did not choose a duration: a process that
/// reads its token once and never again must not be locked out after an hour.
const KUBELET_TOKEN_SECONDS: i64 = 3607;
/// The lifetime of such a token.
const EXTENDED_TOKEN_SECONDS: i64 = 365 * 24 * 60 * 60;
const MIN_TOKEN_SECONDS: i64 = 10 * 60;
const MAX_TOKEN_SECONDS: i64 = 1 << 32;
/// Audiences of a token, and their bytes together, at most. kube-apiserver has no such bound, but
/// such a token fits in no header.
const MAX_AUDIENCES: usize = 100;
const MAX_AUDIENCES_BYTES: usize = 16 << 10;

/// A parsed token request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    /// The audiences that the token is valid for.
    pub audiences: Vec<String>,
    /// The requested lifetime, in seconds.
    pub seconds: i64,
    /// The node it is bound to; for a pod, the node the pod runs on.
    pub node: Option<Reference>,
    /// The pod it is bound to.
    pub pod: Option<Reference>,
    /// The secret it is bound to.
    pub secret: Option<Reference>,
}

/// The kinds of objects a token may be bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundObjectKind {
    /// The token is valid as long as the pod exists.
    Pod,
    /// The token is valid as long as the secret exists.
    Secret,
    /// The token is valid as long as the node exists.
    Node,
}

impl BoundObjectKind {
    /// The kind of `spec.boundObjectRef`, if it is set.
    pub fn of(reference: &Value) -> Result<Option<Self>> {
        if reference.is_null() {
            return Ok(None);
        }
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        match (group, kind) {
            ("", "Pod") => Ok(Some(Self::Pod)),
            ("", "Secret") => Ok(Some(Self::Secret)),
            ("", "Node") => Ok(Some(Self::Node)),
            _ => Err(ApiError::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            ))),
        }
    }

    pub fn plural(self) -> &'static str {
        match self {
            Self::Pod => "pods",
            Self::Secret => "secrets",
            Self::Node => "nodes",
        }
    }

    pub fn kind(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::Secret => "Secret",
            Self::Node => "Node",
        }
    }
}

impl Grant {
    /// The lifetime in seconds of a token whose request sets none.
    pub const DEFAULT_SECONDS: i64 = 3600;

    /// Parses the lifetime and the audiences of a `TokenRequest`.
    pub fn read(request: &Value, usual_audiences: &[String]) -> Result<Self> {
        let spec = &request["spec"];
        let seconds = spec["expirationSeconds"]
            .as_i64()
            .unwrap_or(Self::DEFAULT_SECONDS);
        let mut problems = Problems::new();
        let field = "spec.expirationSeconds";
        if seconds < MIN_TOKEN_SECONDS {
            let detail = "may not specify a duration less than 10 minutes";
            problems.invalid(field, seconds, detail);
        }
        if seconds > MAX_TOKEN_SECONDS {
            let detail = "may not specify a duration larger than 2^32 seconds";
            problems.invalid(field, seconds, detail);
        }
        let audiences = spec["audiences"].as_array().into_iter().flatten();
        let audiences: Vec<&str> = audiences.filter_map(Value::as_str).collect();
        check_audiences(&audiences, &mut problems);
        if !problems.is_empty() {
            return Err(ApiError::invalid(API.0, API.1, "", &problems));
        }
        let mut audiences: Vec<String> = audiences.into_iter().map(Into::into).collect();
        if audiences.is_empty() {
            audiences = usual_audiences.to_vec();
        }
        Ok(Self {
            audiences,
            seconds,
            ..Self::default()
        })
    }

    /// Binds the token to an object.
    pub fn bind(&mut self, to: BoundObjectKind, object: Reference) {
        match to {
            BoundObjectKind::Pod => self.pod = Some(object),
            BoundObjectKind::Secret => self.secret = Some(object),
            BoundObjectKind::Node => self.node = Some(object),
        }
    }

    /// The lifetime of the token in seconds, and, if it is longer than requested, after how many
    /// seconds its holder should renew it.
    pub(super) fn lasts(&self, usual_audiences: &[String]) -> (i64, Option<i64>) {
        let kubelets = self.seconds == KUBELET_TOKEN_SECONDS && self.pod.is_some();
        if kubelets && self.audiences == usual_audiences {
            return (EXTENDED_TOKEN_SECONDS, Some(KUBELET_TOKEN_SECONDS));
        }
        (self.seconds, None)
    }
}

fn check_audiences(audiences: &[&str], problems: &mut Problems) {
    let field = "spec.audiences";
    if audiences.len() > MAX_AUDIENCES {
        problems.too_many(field, audiences.len(), MAX_AUDIENCES);
    }
    if audiences.iter().map(|name| name.len()).sum::<usize>() > MAX_AUDIENCES_BYTES {
        problems.too_long(field, MAX_AUDIENCES_BYTES);
    }
}

/// Refuses a request for another account than its URL names.
pub(crate) fn check_name(request: &Value, account: &str) -> Result<()> {
    let name = request["metadata"]["name"].as_str().unwrap_or_default();
    if name.is_empty() || name == account {
        return Ok(());
    }
    let mut problems = Problems::new();
    let detail = "must match the service account name if specified";
    problems.invalid("metadata.name", name, detail);
    Err(ApiError::invalid(API.0, API.1, account, &problems))
}

/// Refuses a request bound to another object than the existing one.
pub(crate) fn check_uid(to: BoundObjectKind, reference: &Value, found: &Reference) -> Result<()> {
    let uid = reference["uid"].as_str().unwrap_or_default();
    if uid.is_empty() || uid == found.uid {
        return Ok(());
    }
    let why = format!(
        "the UID in the bound object reference ({uid}) does not match the UID in record. \
         The object might have been deleted and then recreated"
    );
    Err(ApiError::conflict("", to.kind(), &found.name, &why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audiences_are_few_and_short() {
        let read = |count: usize, length: usize| {
            let audiences = vec!["x".repeat(length); count];
            let request = serde_json::json!({"spec": {"audiences": audiences}});
            Grant::read(&request, &[]).map(|grant| grant.audiences.len())
        };
        assert_eq!(read(100, 100).ok(), Some(100));
        for (count, length) in [(101, 1), (1, (16 << 10) + 1)] {
            let refused = read(count, length).unwrap_err();
            assert_eq!(refused.code, 422, "{}", refused.message);
        }
    }
}
