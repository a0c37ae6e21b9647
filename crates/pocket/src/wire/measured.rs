//! What requests are counted by, and `/metrics`.

use http::{HeaderValue, Request as HttpRequest, Response, StatusCode, header::CONTENT_TYPE};

use super::{
    Body, Service,
    request_metrics::RequestLabels,
    responses::text,
    route::{Route, route},
    service::{media_type, parse_query},
};
use crate::rest::is_yes;

impl Service {
    /// What a request is counted by.
    pub(super) fn labels<B>(&self, request: &HttpRequest<B>) -> RequestLabels {
        let method = match request.method().as_str() {
            method @ ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE") => method,
            _ => "other",
        };
        let labels = RequestLabels {
            verb: method.into(),
            ..RequestLabels::default()
        };
        let Route::Resource(target) = route(request.uri().path()) else {
            return labels;
        };
        let Ok(served) = self.machine().registry.find(&target) else {
            return labels;
        };
        let query = parse_query(request.uri().query());
        let watches = query
            .iter()
            .any(|(key, value)| key == "watch" && is_yes(value));
        let one = !target.name.is_empty();
        let applies = media_type(request.headers()).starts_with("application/apply-patch");
        let verb = match method {
            "GET" | "HEAD" if watches && !one => "WATCH",
            "GET" | "HEAD" if !one => "LIST",
            "DELETE" if !one => "DELETECOLLECTION",
            "PATCH" if applies => "APPLY",
            method => method,
        };
        RequestLabels {
            verb: verb.into(),
            group: target.group,
            version: target.version,
            resource: target.plural,
            subresource: target
                .subresource
                .filter(|name| served.subresource(name).is_some())
                .unwrap_or_default(),
            scope: match (one, target.namespace.is_empty()) {
                (true, _) => "resource",
                (false, false) => "namespace",
                (false, true) => "cluster",
            },
        }
    }

    /// The metrics of this server.
    pub(super) fn prometheus(&self) -> Response<Body> {
        let store = self.machine().view.store();
        let stored = self.machine().registry.stored();
        let objects = stored.iter().map(|served| {
            let resource = &served.resource;
            let name = match resource.group.as_str() {
                "" => resource.plural.clone(),
                group => format!("{}.{group}", resource.plural),
            };
            (name, store.count(&resource.bucket))
        });
        let mut response = text(StatusCode::OK, self.metrics.text(&objects.collect()));
        let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}
