//! Content negotiation by the `Accept` header.

use http::{HeaderMap, HeaderValue, StatusCode, header::ACCEPT};

use crate::{
    rest::{ObjectForm, Presentation, Verb},
    status::{ApiError, Result},
};

/// One entry of an `Accept` header.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct MediaRange<'a> {
    pub(super) media: &'a str,
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) shown: &'a str,
    /// How much less than the most preferred this is wanted, in thousandths.
    reluctance: u16,
}

/// The entries of `Accept`, most preferred first: by weight, and in their order where weights are
/// equal.
pub(super) fn accepted(headers: &HeaderMap) -> Vec<MediaRange<'_>> {
    let values = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let entries = values.flat_map(|value| value.split(','));
    let mut ranges: Vec<MediaRange<'_>> = entries
        .map(|entry| range(entry.trim()))
        // A weight of zero means not acceptable.
        .filter(|range| !range.media.is_empty() && range.reluctance < 1000)
        .collect();
    ranges.sort_by_key(|range| range.reluctance);
    ranges
}

fn range(entry: &str) -> MediaRange<'_> {
    let mut parts = entry.split(';').map(str::trim);
    let mut range = MediaRange {
        media: parts.next().unwrap_or_default(),
        ..MediaRange::default()
    };
    for part in parts {
        match part.split_once('=') {
            Some(("g", group)) => range.group = group,
            Some(("v", version)) => range.version = version,
            Some(("as", shown)) => range.shown = shown,
            Some(("q", weight)) => range.reluctance = reluctance(weight),
            _ => {}
        }
    }
    range
}

/// An invalid weight counts as full.
fn reluctance(weight: &str) -> u16 {
    let weight = weight.parse().unwrap_or(1.0_f32).clamp(0.0, 1.0);
    1000 - (weight * 1000.0) as u16
}

/// The form in which objects are returned. No acceptable one is a 406; a stream has no YAML form.
pub(super) fn presentation(headers: &HeaderMap, verb: Verb, custom: bool) -> Result<Presentation> {
    let stream = verb == Verb::Watch;
    let accepted = accepted(headers);
    let says = |value: &HeaderValue| value.to_str().is_ok_and(|text| !text.trim().is_empty());
    if !headers.get_all(ACCEPT).iter().any(says) {
        return Ok(Presentation::default());
    }
    let mut forms = accepted.iter().filter_map(form);
    forms.find(|form| !(stream && form.yaml)).ok_or_else(|| {
        let known = |range: &MediaRange<'_>| {
            form(&MediaRange {
                shown: "",
                ..range.clone()
            })
            .is_some()
        };
        if custom || accepted.iter().any(known) {
            not_acceptable(stream)
        } else {
            unavailable(matches!(verb, Verb::List | Verb::Watch))
        }
    })
}

fn form(range: &MediaRange<'_>) -> Option<Presentation> {
    let yaml = match range.media {
        "application/json" | "*/*" => false,
        "application/yaml" => true,
        _ => return None,
    };
    let shown = match (range.shown, range.group, range.version) {
        ("", _, _) => ObjectForm::Whole,
        ("Table", "meta.k8s.io", "v1") => ObjectForm::Table,
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => {
            ObjectForm::Metadata
        }
        _ => return None,
    };
    Some(Presentation { shown, yaml })
}

/// 406, listing the supported types.
fn not_acceptable(stream: bool) -> ApiError {
    let offered = if stream {
        "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    } else {
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    };
    ApiError::new(
        StatusCode::NOT_ACCEPTABLE,
        "NotAcceptable",
        format!("only the following media types are accepted: {offered}"),
    )
}

/// 406 for types that no built-in resource has, in any form.
fn unavailable(streams: bool) -> ApiError {
    let streams = if streams {
        ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    } else {
        ""
    };
    let text = format!(
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf{streams}"
    );
    ApiError::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", text).about("", "", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(accept: &str) -> Result<Presentation> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        presentation(&headers, Verb::Get, false)
    }

    #[test]
    fn kubectl_gets_a_table() {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(of(accept).unwrap().shown, ObjectForm::Table);
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
    fn weight_counts_before_order() {
        assert!(!of("application/yaml;q=0.5, application/json").unwrap().yaml);
        assert!(
            of("application/json;q=0.1, application/yaml;q=0.2")
                .unwrap()
                .yaml
        );
        assert!(of("application/yaml;q=odd, application/json").unwrap().yaml);
    }

    #[test]
    fn a_weight_of_zero_is_a_refusal() {
        assert_eq!(of("application/json;q=0").unwrap_err().code, 406);
        assert!(of("application/json;q=0.0, application/yaml").unwrap().yaml);
        assert!(!of("application/json;q=0.001").unwrap().yaml);
    }

    #[test]
    fn a_stream_passes_yaml_over() {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, "application/yaml, */*".parse().unwrap());
        assert!(!presentation(&headers, Verb::Watch, false).unwrap().yaml);
        headers.insert(ACCEPT, "application/yaml".parse().unwrap());
        assert_eq!(
            presentation(&headers, Verb::Watch, false).unwrap_err().code,
            406
        );
    }

    #[test]
    fn absent_accept_means_json() {
        assert_eq!(
            presentation(&HeaderMap::new(), Verb::Get, false).unwrap(),
            Presentation::default()
        );
    }
}
