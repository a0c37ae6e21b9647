//! The `AdmissionReview` that a webhook is sent.

use serde_json::{Value, json};

use super::{GroupVersionResource, Operation, ReviewVersion};

/// A kind with its group and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupVersionKind<'a> {
    /// API group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
}

/// The content of a review.
#[derive(Debug, Clone, Copy)]
pub struct Review<'a> {
    /// Identifies this exchange; the response must repeat it.
    pub uid: &'a str,
    pub operation: Operation,
    /// The kind of the objects in the review.
    pub kind: GroupVersionKind<'a>,
    /// The resource in the review.
    pub place: GroupVersionResource<'a>,
    /// The kind of the request.
    pub requested_kind: GroupVersionKind<'a>,
    /// The resource of the request.
    pub requested_place: GroupVersionResource<'a>,
    /// The subresource, or empty.
    pub subresource: &'a str,
    /// The object's name, unless it has none yet.
    pub name: &'a str,
    /// The object's namespace, or empty.
    pub namespace: &'a str,
    /// The requesting user.
    pub user: &'a Value,
    /// The options of the request.
    pub options: &'a Value,
    /// Whether nothing will be stored.
    pub dry_run: bool,
}

impl Review<'_> {
    /// The request without its objects, as match conditions see it.
    pub fn request(&self) -> Value {
        let kind = |of: &GroupVersionKind<'_>| json!({"group": of.group, "version": of.version, "kind": of.kind});
        let place = |of: &GroupVersionResource<'_>| json!({"group": of.group, "version": of.version, "resource": of.plural});
        let mut request = json!({
            "uid": self.uid,
            "kind": kind(&self.kind),
            "resource": place(&self.place),
            "requestKind": kind(&self.requested_kind),
            "requestResource": place(&self.requested_place),
            "operation": self.operation.word(),
            "userInfo": self.user,
            "dryRun": self.dry_run,
        });
        for (key, text) in [
            ("subResource", self.subresource),
            ("requestSubResource", self.subresource),
            ("name", self.name),
            ("namespace", self.namespace),
        ] {
            if !text.is_empty() {
                request[key] = json!(text);
            }
        }
        if !self.options.is_null() {
            request["options"] = self.options.clone();
        }
        request
    }
}

/// The whole review, as it is sent.
pub fn sent(version: ReviewVersion, mut request: Value, object: Value, old: Value) -> Value {
    request["object"] = object;
    request["oldObject"] = old;
    json!({
        "kind": "AdmissionReview",
        "apiVersion": version.api_version(),
        "request": request,
    })
}
