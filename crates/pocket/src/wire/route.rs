//! Routing: from method and path to a route.

use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::{
    rest::{Target, Verb},
    status::{ApiError, Result},
};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Route {
    /// `/api`: the versions of the core group.
    CoreVersions,
    /// `/apis`: all groups.
    Groups,
    /// `/apis/G`.
    Group(String),
    /// `/api/V` or `/apis/G/V`: group and version.
    Version(String, String),
    /// `/openapi/v2`.
    Swagger,
    /// `/openapi/v3`.
    OpenApiIndex,
    /// `/openapi/v3/...`: group and version.
    OpenApi(String, String),
    /// `/.well-known/openid-configuration`: the issuer of service account tokens.
    TokenIssuer,
    /// `/openid/v1/jwks`: the keys of these tokens.
    TokenKeys,
    /// `/version`.
    ServerVersion,
    /// `/metrics`: counts of requests and objects, for Prometheus.
    Metrics,
    /// `/livez`: whether the process responds.
    Alive,
    /// `/healthz`, `/readyz`: whether requests can be handled.
    Ready,
    /// A resource.
    Resource(Target),
    /// An unknown path in an API group.
    Nowhere(String),
    /// An unknown path.
    Unknown,
}

/// The unescaped path. Authorization and handling both use this and nothing else: an escaped slash
/// must not be part of a name to one and a separator to the other.
pub(super) fn meant(path: &str) -> Cow<'_, str> {
    percent_decode_str(path).decode_utf8_lossy()
}

/// The route of a request's path.
pub(super) fn route(path: &str) -> Route {
    let path = &*meant(path);
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    // An empty segment must not change the meaning of the rest.
    if path.split('/').any(str::is_empty) {
        let mut parts = path.split('/');
        return match (parts.next(), parts.next()) {
            (Some("api"), _) => Route::Nowhere(String::new()),
            (Some("apis"), Some(group)) => Route::Nowhere(group.into()),
            _ => Route::Unknown,
        };
    }
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["api", version] => Route::Version(String::new(), (*version).into()),
        ["apis", group] => Route::Group((*group).into()),
        ["apis", group, version] => Route::Version((*group).into(), (*version).into()),
        ["api", version, rest @ ..] => {
            target("", version, rest).map_or(Route::Nowhere(String::new()), Route::Resource)
        }
        ["apis", group, version, rest @ ..] => {
            target(group, version, rest).map_or(Route::Nowhere((*group).into()), Route::Resource)
        }
        ["openapi", "v2"] => Route::Swagger,
        ["openapi", "v3"] => Route::OpenApiIndex,
        ["openapi", "v3", "api", version] => Route::OpenApi(String::new(), (*version).into()),
        ["openapi", "v3", "apis", group, version] => {
            Route::OpenApi((*group).into(), (*version).into())
        }
        [".well-known", "openid-configuration"] => Route::TokenIssuer,
        ["openid", "v1", "jwks"] => Route::TokenKeys,
        ["version"] => Route::ServerVersion,
        ["metrics"] => Route::Metrics,
        ["livez", ..] => Route::Alive,
        ["healthz" | "readyz", ..] => Route::Ready,
        _ => Route::Unknown,
    }
}

fn target(group: &str, version: &str, rest: &[&str]) -> Option<Target> {
    let place = |namespace: &str, rest: &[&str]| {
        let (plural, rest) = rest.split_first()?;
        let (name, rest) = rest
            .split_first()
            .map_or(("", rest), |(name, rest)| (*name, rest));
        let subresource = match rest {
            [] => None,
            // No resource is that deep; the error depends on the resource.
            parts => Some(parts.join("/")),
        };
        Some(Target {
            group: group.into(),
            version: version.into(),
            plural: (*plural).into(),
            namespace: namespace.into(),
            name: name.into(),
            subresource,
        })
    };
    match rest {
        // Subresources of a namespace look like resources inside it.
        ["namespaces", _, "status" | "finalize"] => place("", rest),
        ["namespaces", namespace, inside @ ..] if !inside.is_empty() => place(namespace, inside),
        _ => place("", rest),
    }
}

/// The verb of a request for `target`.
pub(super) fn verb(method: &Method, target: &Target, watch: bool) -> Result<Verb> {
    let named = !target.name.is_empty();
    match (method.as_str(), named) {
        // A single object is watched by a field selector on its collection.
        ("GET" | "HEAD", true) => Ok(Verb::Get),
        ("GET" | "HEAD", false) if watch => Ok(Verb::Watch),
        ("GET" | "HEAD", false) => Ok(Verb::List),
        ("POST", false) => Ok(Verb::Create),
        ("POST", true) if target.subresource.is_some() => Ok(Verb::Create),
        ("PUT", true) => Ok(Verb::Update),
        ("PATCH", true) => Ok(Verb::Patch),
        ("DELETE", true) => Ok(Verb::Delete),
        ("DELETE", false) => Ok(Verb::DeleteCollection),
        _ => Err(ApiError::method_not_allowed()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> Target {
        match route(path) {
            Route::Resource(target) => target,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn namespaced_objects_and_their_subresources() {
        let target = resource("/apis/apps/v1/namespaces/d/deployments/web/scale");
        assert_eq!(target.path(), "d/web");
        assert_eq!(
            (target.plural.as_str(), target.subresource.as_deref()),
            ("deployments", Some("scale"))
        );
    }

    #[test]
    fn a_namespace_is_an_object_of_its_own() {
        let target = resource("/api/v1/namespaces/d/finalize");
        assert_eq!(
            (target.plural.as_str(), target.name.as_str()),
            ("namespaces", "d")
        );
        assert!(target.namespace.is_empty());
        let inside = resource("/api/v1/namespaces/d/pods");
        assert_eq!(
            (inside.plural.as_str(), inside.namespace.as_str()),
            ("pods", "d")
        );
    }

    #[test]
    fn a_slash_at_the_end_changes_nothing() {
        assert_eq!(route("/api/v1/pods/"), route("/api/v1/pods"));
        assert_eq!(route("/api/"), Route::CoreVersions);
    }

    #[test]
    fn escaped_names_are_read() {
        let target = resource("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode");
        assert_eq!(target.name, "system:node");
    }

    #[test]
    fn an_escaped_slash_is_a_slash() {
        assert_eq!(
            route("/api/v1/namespaces/a%2Fsecrets%2fb"),
            route("/api/v1/namespaces/a/secrets/b")
        );
        assert_eq!(
            route("/api/v1/namespaces/a%2F%2Fb"),
            Route::Nowhere(String::new())
        );
        // A path that is escaped twice is unescaped once.
        assert_eq!(resource("/api/v1/namespaces/a%252Fb").name, "a%2Fb");
    }

    #[test]
    fn paths_that_lead_nowhere() {
        for path in ["/", "/foo", "/openapi/v4", "//api/v1/pods"] {
            assert_eq!(route(path), Route::Unknown, "{path}");
        }
        for path in ["/api/v1/namespaces//pods", "/api/v1/namespaces/a//b"] {
            assert_eq!(route(path), Route::Nowhere(String::new()), "{path}");
        }
    }
}
