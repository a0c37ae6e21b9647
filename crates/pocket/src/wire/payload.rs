//! Decodes the body of a request by its content type.

use http::StatusCode;

use super::{decode, form, protobuf};
use crate::{
    rest::{Payload, Served, Target, Verb},
    status::{ApiError, Result},
};

pub(super) fn payload(
    verb: Verb,
    form: form::Patch,
    content_type: &str,
    bytes: &[u8],
    served: &Served,
    target: &Target,
) -> Result<Option<Payload>> {
    if bytes.is_empty() {
        return nothing_sent(verb, form, content_type, served, target);
    }
    let lenient = form.is_lenient();
    let deletes = matches!(verb, Verb::Delete | Verb::DeleteCollection);
    let decoded = match content_type {
        _ if verb == Verb::Patch && !content_type.contains("patch+") => return Ok(None),
        "" | "application/json" => json(verb, lenient, bytes, served)?,
        "application/yaml" => yaml(verb, lenient, bytes, served)?,
        "application/apply-patch+yaml" => decode::yaml(bytes)?,
        // Delete options are of a built-in kind, whatever is deleted.
        protobuf::CONTENT_TYPE if !served.is_custom() || deletes => {
            let expected = (!deletes && target.subresource.is_none())
                .then_some((served.api_version.as_str(), served.resource.kind.as_str()));
            if !bytes.starts_with(protobuf::MAGIC) {
                let why = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
                return Err(form::unreadable(served, bytes, why));
            }
            let value = protobuf::decode(bytes, expected)?;
            return Ok(Some(Payload {
                value,
                ..Payload::default()
            }));
        }
        // The patch code decides which content types it supports.
        patch
            if patch.ends_with("+json")
                && form::is_readable(Verb::Patch, patch, served.is_custom())
                && verb == Verb::Patch =>
        {
            match decode::json(bytes) {
                Ok(decoded) => decoded,
                Err(error) => return Ok(Some(form.undecodable(&error.message))),
            }
        }
        _ if verb == Verb::Patch => return Ok(None),
        _ => return Err(unsupported()),
    };
    Ok(Some(Payload {
        value: decoded.value,
        duplicates: decoded.duplicates,
        problem: None,
    }))
}

fn json(verb: Verb, lenient: bool, bytes: &[u8], served: &Served) -> Result<decode::Decoded> {
    if !matches!(verb, Verb::Create | Verb::Update) {
        return decode::json(bytes);
    }
    let mut decoded =
        decode::json(bytes).map_err(|error| form::unreadable(served, bytes, &error.message))?;
    form::check(served, bytes, &decoded.value, lenient)?;
    if decoded.value.is_null() {
        decoded.value = serde_json::json!({});
    }
    Ok(decoded)
}

fn yaml(verb: Verb, lenient: bool, bytes: &[u8], served: &Served) -> Result<decode::Decoded> {
    let decoded = decode::yaml(bytes)?;
    if matches!(verb, Verb::Create | Verb::Update) && served.is_custom() {
        // Without field validation the patch is shown as JSON.
        let json = lenient.then(|| decoded.value.to_string());
        let shown = json.as_ref().map_or(bytes, |json| json.as_bytes());
        form::check(served, shown, &decoded.value, lenient)?;
    }
    Ok(decoded)
}

/// The value of an empty body.
fn nothing_sent(
    verb: Verb,
    form: form::Patch,
    content_type: &str,
    served: &Served,
    target: &Target,
) -> Result<Option<Payload>> {
    match verb {
        Verb::Create | Verb::Update if target.subresource.is_none() => Err(form::unreadable(
            served,
            &[],
            &form::parse_error(form::ENDED),
        )),
        Verb::Patch if content_type == "application/apply-patch+yaml" => {
            Ok(Some(Payload::default()))
        }
        Verb::Patch if form::is_readable(verb, content_type, served.is_custom()) => {
            Ok(Some(form.undecodable(form::ENDED)))
        }
        _ => Ok(None),
    }
}

fn unsupported() -> ApiError {
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "UnsupportedMediaType",
        format!(
            "the body of the request was in an unknown format - accepted media types include: \
             application/json, application/yaml, {}",
            protobuf::CONTENT_TYPE
        ),
    )
}
