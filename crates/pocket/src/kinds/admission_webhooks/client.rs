//! The client configuration of a webhook: a URL or a Service.

use serde_json::Value;

use super::super::{
    fields::{is_set, number, text},
    names,
    path::Path,
};
use crate::status::Problems;

/// Checks `clientConfig`.
pub(super) fn validate(client: &Value, path: &Path<'_>, problems: &mut Problems) {
    if client.is_null() {
        return;
    }
    match (client["url"].as_str(), is_set(client, "service")) {
        (Some(url), false) => validate_url(url, &path.field("url"), problems),
        (None, true) => validate_service(&client["service"], &path.field("service"), problems),
        _ => problems.required(path, "exactly one of url or service is required"),
    }
}

fn validate_url(text: &str, path: &Path<'_>, problems: &mut Problems) {
    const FORM: &str = "desired format: https://host[/path]";
    let Ok(url) = text.parse::<http::Uri>() else {
        let detail = format!("url must be a valid URL: {FORM}");
        return problems.required(path, detail);
    };
    if url.scheme_str() != Some("https") {
        let detail = format!("'https' is the only allowed URL scheme; {FORM}");
        problems.invalid(path, url.scheme_str().unwrap_or_default(), detail);
    }
    if url.host().unwrap_or_default().is_empty() {
        problems.invalid(path, "", format!("host must be specified; {FORM}"));
    }
    if let Some(authority) = url.authority()
        && let Some((user, _)) = authority.as_str().rsplit_once('@')
    {
        let detail = "user information is not permitted in the URL";
        problems.invalid(path, user, detail);
    }
    // `http::Uri` has dropped a fragment already.
    if let Some((_, fragment)) = text.split_once('#') {
        problems.invalid(path, fragment, "fragments are not permitted in the URL");
    }
    if let Some(query) = url.query() {
        let detail = "query parameters are not permitted in the URL";
        problems.invalid(path, query, detail);
    }
}

fn validate_service(service: &Value, path: &Path<'_>, problems: &mut Problems) {
    if is_set(service, "port") {
        let port = number(service, "port");
        for complaint in names::port_number(port) {
            let detail = format!("port is not valid: {complaint}");
            problems.invalid(path.field("port"), port, detail);
        }
    }
    let route = text(service, "path");
    if !route.is_empty() {
        validate_route(route, &path.field("path"), problems);
    }
}

fn validate_route(route: &str, path: &Path<'_>, problems: &mut Problems) {
    if route == "/" {
        return;
    }
    let Some(rest) = route.strip_prefix('/') else {
        return problems.invalid(path, route, "must start with a '/'");
    };
    let steps: Vec<&str> = rest.strip_suffix('/').unwrap_or(rest).split('/').collect();
    for (i, step) in steps.iter().enumerate() {
        if step.is_empty() {
            problems.invalid(path, route, format!("segment[{i}] may not be empty"));
            continue;
        }
        for complaint in names::subdomain(step) {
            problems.invalid(path, route, format!("segment[{i}]: {complaint}"));
        }
    }
}
