//! Parses a request from its method and URL.

use crate::{Filter, watch::Start};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    /// A change through a subresource whose answers do not show the object.
    Subresource,
}

/// A request for a resource.
#[derive(Debug, Clone)]
pub(super) struct ParsedRequest {
    pub(super) verb: Verb,
    /// `group/plural`.
    pub(super) resource: String,
    pub(super) namespace: String,
    pub(super) name: String,
    query: Vec<(String, String)>,
    /// The request in one line.
    pub(super) text: String,
}

impl ParsedRequest {
    /// None if no oracle judges the request.
    pub(super) fn parse(method: &str, path: &str, query: Option<&str>) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, inside @ ..] if !inside.is_empty() => (*namespace, inside),
            _ => ("", rest),
        };
        let (plural, name, is_subresource) = match rest {
            [plural] => (*plural, "", false),
            [plural, name] | [plural, name, "status"] => (*plural, *name, false),
            [plural, name, _] if method != "GET" => (*plural, *name, true),
            _ => return None,
        };
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        let mut request = Self {
            verb: Verb::Get,
            resource: format!("{group}/{plural}"),
            namespace: namespace.into(),
            name: name.replace("%3A", ":"),
            query: pairs.into_owned().collect(),
            text: format!("{method} {path}?{}", query.unwrap_or_default()),
        };
        request.verb = if is_subresource {
            Verb::Subresource
        } else {
            request.verb_of(method)?
        };
        Some(request)
    }

    fn verb_of(&self, method: &str) -> Option<Verb> {
        let named = !self.name.is_empty();
        Some(match (method, named) {
            ("GET", _) if self.flag("watch") => Verb::Watch,
            ("GET", true) => Verb::Get,
            ("GET", false) => Verb::List,
            ("POST", false) => Verb::Create,
            ("PUT", true) => Verb::Update,
            ("PATCH", true) => Verb::Patch,
            ("DELETE", true) => Verb::Delete,
            _ => return None,
        })
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        let mut query = self.query.iter();
        query
            .find(|(key, value)| key == name && !value.is_empty())
            .map(|(_, value)| value.as_str())
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        let mut query = self.query.iter();
        query.any(|(key, value)| key == name && value != "false" && value != "0")
    }

    pub(super) fn filter(&self) -> Filter {
        Filter::within(&self.namespace, &self.name)
            .labels(self.parameter("labelSelector").unwrap_or_default())
            .fields(self.parameter("fieldSelector").unwrap_or_default())
    }

    pub(super) fn start(&self) -> Start {
        let revision = self
            .parameter("resourceVersion")
            .and_then(|r| r.parse().ok());
        let revision = revision.filter(|&revision| revision > 0);
        let speaks_of_state = self.query.iter().any(|(key, _)| key == "sendInitialEvents");
        if speaks_of_state && self.flag("sendInitialEvents") {
            return if self.flag("allowWatchBookmarks") {
                Start::MarkedState
            } else {
                Start::State
            };
        }
        match revision {
            Some(revision) => Start::After(revision),
            None if speaks_of_state => Start::Now,
            None => Start::State,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_understood() {
        for (method, url, expected) in [
            (
                "GET",
                "/api/v1/namespaces/d/configmaps/x",
                Some((Verb::Get, "/configmaps", "d", "x")),
            ),
            (
                "GET",
                "/api/v1/configmaps?limit=1",
                Some((Verb::List, "/configmaps", "", "")),
            ),
            (
                "GET",
                "/api/v1/configmaps?watch=1",
                Some((Verb::Watch, "/configmaps", "", "")),
            ),
            (
                "DELETE",
                "/api/v1/namespaces/d",
                Some((Verb::Delete, "/namespaces", "", "d")),
            ),
            (
                "PUT",
                "/apis/apps/v1/namespaces/d/deployments/x/status",
                Some((Verb::Update, "apps/deployments", "d", "x")),
            ),
            (
                "PUT",
                "/apis/apps/v1/namespaces/d/deployments/x/scale",
                Some((Verb::Subresource, "apps/deployments", "d", "x")),
            ),
            ("DELETE", "/api/v1/namespaces/d/configmaps", None),
            ("GET", "/version", None),
        ] {
            let (path, query) = url.split_once('?').unwrap_or((url, ""));
            let request = ParsedRequest::parse(method, path, Some(query));
            let request = request.as_ref().map(|request| {
                let (namespace, name) = (request.namespace.as_str(), request.name.as_str());
                (request.verb, request.resource.as_str(), namespace, name)
            });
            assert_eq!(request, expected, "{method} {url}");
        }
    }

    #[test]
    fn a_watch_begins_where_its_url_says() {
        for (query, start) in [
            ("watch=1", Start::State),
            ("watch=1&resourceVersion=0", Start::State),
            ("watch=1&resourceVersion=7", Start::After(7)),
            (
                "watch=1&sendInitialEvents=true&resourceVersion=7",
                Start::State,
            ),
            (
                "watch=1&sendInitialEvents=true&allowWatchBookmarks=true",
                Start::MarkedState,
            ),
            (
                "watch=1&sendInitialEvents=false&resourceVersion=7",
                Start::After(7),
            ),
            ("watch=1&sendInitialEvents=false", Start::Now),
        ] {
            let request = ParsedRequest::parse("GET", "/api/v1/pods", Some(query)).unwrap();
            assert_eq!(request.start(), start, "{query}");
        }
    }
}
