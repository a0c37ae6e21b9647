//! What somebody asks a token for: how long, before whom, bound to what.

use serde_json::Value;

use super::Reference;
use crate::status::{ApiError, Problems, Result};

/// The group and version of requests for tokens.
const API: (&str, &str) = ("authentication.k8s.io", "TokenRequest");
/// A request for this many seconds comes from a kubelet of a pod that chose nothing: whoever reads
/// its token once and never again must not be locked out after an hour.
const KUBELETS: i64 = 3607;
/// What such a token gets.
const YEAR: i64 = 365 * 24 * 60 * 60;
const SHORTEST: i64 = 10 * 60;
const LONGEST: i64 = 1 << 32;
/// The most audiences of a token, and the longest that they may be together. There is no such bound
/// elsewhere, but such a token fits in no header.
const MOST_AUDIENCES: usize = 100;
const LONGEST_AUDIENCES: usize = 16 << 10;

/// A request for a token, understood.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grant {
    /// Before whom the token counts.
    pub audiences: Vec<String>,
    /// How long it is asked for, in seconds.
    pub seconds: i64,
    /// The node it is for; with a pod, the one that the pod is on.
    pub node: Option<Reference>,
    /// The pod it is for.
    pub pod: Option<Reference>,
    /// The secret it is for.
    pub secret: Option<Reference>,
}

/// What a token may be bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// It ends with the pod.
    Pod,
    /// It ends with the secret.
    Secret,
    /// It ends with the node.
    Node,
}

impl Bound {
    /// What `spec.boundObjectRef` is about, if it is there.
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

    /// Its plural.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Pod => "pods",
            Self::Secret => "secrets",
            Self::Node => "nodes",
        }
    }

    /// Its kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::Secret => "Secret",
            Self::Node => "Node",
        }
    }
}

impl Grant {
    /// Seconds of a token whose length nobody chose.
    pub const USUAL: i64 = 3600;

    /// The length of a token and its audiences from a `TokenRequest`.
    pub fn read(request: &Value, usual_audiences: &[String]) -> Result<Self> {
        let spec = &request["spec"];
        let seconds = spec["expirationSeconds"].as_i64().unwrap_or(Self::USUAL);
        let mut problems = Problems::new();
        let field = "spec.expirationSeconds";
        if seconds < SHORTEST {
            let detail = "may not specify a duration less than 10 minutes";
            problems.invalid(field, seconds, detail);
        }
        if seconds > LONGEST {
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
    pub fn bind(&mut self, to: Bound, object: Reference) {
        match to {
            Bound::Pod => self.pod = Some(object),
            Bound::Secret => self.secret = Some(object),
            Bound::Node => self.node = Some(object),
        }
    }

    /// How many seconds the token gets, and after how many its holder should have had a new one if
    /// it gets more than were asked for.
    pub(super) fn lasts(&self, usual_audiences: &[String]) -> (i64, Option<i64>) {
        let kubelets = self.seconds == KUBELETS && self.pod.is_some();
        if kubelets && self.audiences == usual_audiences {
            return (YEAR, Some(KUBELETS));
        }
        (self.seconds, None)
    }
}

fn check_audiences(audiences: &[&str], problems: &mut Problems) {
    let field = "spec.audiences";
    if audiences.len() > MOST_AUDIENCES {
        problems.too_many(field, audiences.len(), MOST_AUDIENCES);
    }
    if audiences.iter().map(|name| name.len()).sum::<usize>() > LONGEST_AUDIENCES {
        problems.too_long(field, LONGEST_AUDIENCES);
    }
}

/// Refuses a request that names another account than its URL.
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

/// Refuses a request that names another object than the one that is there.
pub(crate) fn check_uid(to: Bound, reference: &Value, found: &Reference) -> Result<()> {
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
