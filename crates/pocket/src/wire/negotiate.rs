//! What a client wants back, from its `Accept` header.

use http::{HeaderMap, StatusCode, header::ACCEPT};

use crate::{
    rest::{Presentation, Shown},
    status::{ApiError, Result},
};

/// One entry of an `Accept` header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Range<'a> {
    pub(super) media: &'a str,
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) shown: &'a str,
}

/// The entries of `Accept`, most wanted first; the order stands for the weight, as clients of this
/// API write it.
pub(super) fn accepted(headers: &HeaderMap) -> Vec<Range<'_>> {
    let values = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let entries = values.flat_map(|value| value.split(','));
    entries
        .map(|entry| range(entry.trim()))
        .filter(|range| !range.media.is_empty())
        .collect()
}

fn range(entry: &str) -> Range<'_> {
    let mut parts = entry.split(';').map(str::trim);
    let mut range = Range {
        media: parts.next().unwrap_or_default(),
        ..Range::default()
    };
    for part in parts {
        match part.split_once('=') {
            Some(("g", group)) => range.group = group,
            Some(("v", version)) => range.version = version,
            Some(("as", shown)) => range.shown = shown,
            _ => {}
        }
    }
    range
}

/// The form in which objects are answered. Nothing acceptable is a 406.
pub(super) fn presentation(headers: &HeaderMap) -> Result<Presentation> {
    let accepted = accepted(headers);
    if accepted.is_empty() {
        return Ok(Presentation::default());
    }
    accepted.iter().find_map(form).ok_or_else(not_acceptable)
}

fn form(range: &Range<'_>) -> Option<Presentation> {
    let yaml = match range.media {
        "application/json" | "application/*" | "*/*" => false,
        "application/yaml" => true,
        _ => return None,
    };
    let shown = match (range.shown, range.group, range.version) {
        ("", _, _) => Shown::Whole,
        ("Table", "meta.k8s.io", "v1") => Shown::Table,
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => {
            Shown::Metadata
        }
        _ => return None,
    };
    Some(Presentation { shown, yaml })
}

/// 406, naming what is offered.
pub(super) fn not_acceptable() -> ApiError {
    ApiError::new(
        StatusCode::NOT_ACCEPTABLE,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(accept: &str) -> Result<Presentation> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        presentation(&headers)
    }

    #[test]
    fn kubectl_gets_a_table() {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(of(accept).unwrap().shown, Shown::Table);
    }

    #[test]
    fn protobuf_falls_back_to_json() {
        let accept = "application/vnd.kubernetes.protobuf, application/json";
        assert_eq!(of(accept).unwrap(), Presentation::default());
    }

    #[test]
    fn protobuf_alone_is_not_acceptable() {
        assert_eq!(
            of("application/vnd.kubernetes.protobuf").unwrap_err().code,
            406
        );
    }

    #[test]
    fn absent_accept_means_json() {
        assert_eq!(
            presentation(&HeaderMap::new()).unwrap(),
            Presentation::default()
        );
    }
}
