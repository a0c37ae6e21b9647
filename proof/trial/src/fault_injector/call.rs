//! Requests in the form in which plans describe them.

use http::{Method, request::Parts};
use serde::{Deserialize, Serialize};

use crate::plan::Verb;

/// The parts of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    pub verb: Verb,
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind in its plural, with the subresource after a slash.
    pub kind: String,
    /// Empty for a cluster-scoped object and for all namespaces.
    pub namespace: String,
    /// Empty for a list.
    pub name: String,
    /// Whether the caller accepts any version of the state (`resourceVersion=0`).
    pub any_age: bool,
    /// The version from which a watch without selectors resumes; none for any other request.
    pub after: Option<u64>,
}

impl Call {
    pub(super) fn of(parts: &Parts, body: &[u8]) -> Self {
        let mut words = parts.uri.path().split('/').filter(|word| !word.is_empty());
        let mut word = || words.next().unwrap_or_default().to_owned();
        let group = match word().as_str() {
            "apis" => word(),
            _ => String::new(),
        };
        let _version = word();
        let (mut kind, mut namespace, mut name) = (word(), String::new(), word());
        let mut part = word();
        let rest = word();
        if kind == "namespaces" && !matches!(part.as_str(), "" | "status" | "finalize") {
            (namespace, kind, name) = (name, part, rest);
            part = word();
        }
        if !part.is_empty() {
            kind = format!("{kind}/{part}");
        }
        if name.is_empty() && parts.method == Method::POST {
            name = name_in(body);
        }
        let query = Query::of(parts.uri.query().unwrap_or_default());
        Self {
            verb: verb(&parts.method, &name, query.watch),
            group,
            kind,
            namespace,
            name,
            any_age: query.any_age,
            after: query.after.filter(|_| query.watch && !query.selects),
        }
    }

    /// The kind without its subresource.
    pub fn resource(&self) -> &str {
        self.kind.split('/').next().unwrap_or_default()
    }
}

fn verb(method: &Method, name: &str, watch: bool) -> Verb {
    match *method {
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ if watch => Verb::Watch,
        _ if name.is_empty() => Verb::List,
        _ => Verb::Get,
    }
}

/// The name in the body of a create request.
fn name_in(body: &[u8]) -> String {
    #[derive(Deserialize, Default)]
    struct Named {
        #[serde(default)]
        metadata: Metadata,
    }
    #[derive(Deserialize, Default)]
    struct Metadata {
        #[serde(default)]
        name: String,
    }
    let named: Named = serde_json::from_slice(body).unwrap_or_default();
    named.metadata.name
}

#[derive(Default)]
struct Query {
    watch: bool,
    any_age: bool,
    selects: bool,
    after: Option<u64>,
}

impl Query {
    fn of(query: &str) -> Self {
        let pairs = form_urlencoded::parse(query.as_bytes());
        let mut said = Self::default();
        for (name, value) in pairs {
            match (&*name, &*value) {
                ("watch", "true" | "1") => said.watch = true,
                ("resourceVersion", "0") => said.any_age = true,
                ("resourceVersion", version) => said.after = version.parse().ok(),
                ("labelSelector" | "fieldSelector", _) => said.selects = true,
                _ => {}
            }
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn call(method: &str, uri: &str, body: &str) -> String {
        let request = Request::builder().method(method).uri(uri);
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let Call {
            verb,
            group,
            kind,
            namespace,
            name,
            any_age,
            ..
        } = Call::of(&parts, body.as_bytes());
        let age = if any_age { " any" } else { "" };
        format!("{} {group} {kind} {namespace} {name}{age}", verb.word())
    }

    #[test]
    fn requests_are_told_apart() {
        let pods = "/api/v1/namespaces/shop/pods";
        let made = r#"{"metadata": {"name": "a"}}"#;
        for (asked, told) in [
            (call("GET", "/api/v1/pods", ""), "list  pods  "),
            (
                call("GET", "/api/v1/pods?resourceVersion=0", ""),
                "list  pods   any",
            ),
            (
                call("GET", "/api/v1/pods?watch=true&resourceVersion=7", ""),
                "watch  pods  ",
            ),
            (call("POST", pods, made), "create  pods shop a"),
            (
                call("PATCH", &format!("{pods}/a/status"), ""),
                "patch  pods/status shop a",
            ),
            (
                call("PUT", "/apis/apps/v1/namespaces/n/replicasets/r", ""),
                "update apps replicasets n r",
            ),
            (
                call("DELETE", "/api/v1/namespaces/shop", ""),
                "delete  namespaces  shop",
            ),
            (
                call("PUT", "/api/v1/namespaces/shop/finalize", ""),
                "update  namespaces/finalize  shop",
            ),
            (
                call("GET", "/apis/storage.k8s.io/v1/storageclasses/c", ""),
                "get storage.k8s.io storageclasses  c",
            ),
        ] {
            assert_eq!(asked, told);
        }
    }
}
