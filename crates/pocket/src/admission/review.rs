//! What a webhook is told: the `AdmissionReview`.

use serde_json::{Value, json};

use super::{Operation, Place, ReviewVersion};

/// A kind with its group and version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindName<'a> {
    /// API group.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
}

/// Everything a webhook is told of a write.
#[derive(Debug, Clone, Copy)]
pub struct Review<'a> {
    /// Names this exchange; the answer must repeat it.
    pub uid: &'a str,
    /// What is done.
    pub operation: Operation,
    /// The kind of the objects as they are shown.
    pub kind: KindName<'a>,
    /// The resource as it is shown.
    pub place: Place<'a>,
    /// The kind that was asked for.
    pub requested_kind: KindName<'a>,
    /// The resource that was asked for.
    pub requested_place: Place<'a>,
    /// The subresource, or nothing.
    pub subresource: &'a str,
    /// The object's name, unless it has none yet.
    pub name: &'a str,
    /// The object's namespace, or nothing.
    pub namespace: &'a str,
    /// Who asks.
    pub user: &'a Value,
    /// The options of the request.
    pub options: &'a Value,
    /// Whether nothing will be stored.
    pub dry_run: bool,
}

impl Review<'_> {
    /// The request without its objects, as conditions see it.
    pub fn request(&self) -> Value {
        let kind =
            |of: &KindName<'_>| json!({"group": of.group, "version": of.version, "kind": of.kind});
        let place = |of: &Place<'_>| json!({"group": of.group, "version": of.version, "resource": of.plural});
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
