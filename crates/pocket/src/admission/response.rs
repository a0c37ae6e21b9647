//! Parsing the response of a webhook.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::{Phase, ReviewVersion, webhook_client::WebhookResponse};
use crate::status::ApiError;

/// The decision of a webhook.
#[derive(Debug, Clone, PartialEq)]
pub struct AdmissionResponse {
    /// The `Status` of a refusal, or `None` if the write is allowed.
    pub refusal: Option<Value>,
    /// A JSON patch for the object.
    pub patch: Option<Value>,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
}

/// Parses the response to the review `uid`. An `Err` is a failed call: the reason, to follow the
/// words `failed calling webhook "x": `.
pub fn read(
    reply: &WebhookResponse,
    uid: &str,
    version: ReviewVersion,
    phase: Phase,
) -> Result<AdmissionResponse, String> {
    let review = decode(reply, version).map_err(|why| format!("failed to call webhook: {why}"))?;
    understand(&review, uid, version, phase)
}

fn decode(reply: &WebhookResponse, version: ReviewVersion) -> Result<Value, String> {
    if !(200..=206).contains(&reply.status) {
        return Err(complaint(reply));
    }
    if reply.body.is_empty() {
        return Err(format!(
            "0-length response with status code: {} and content type: application/json",
            reply.status
        ));
    }
    let review: Value = serde_json::from_slice(&reply.body)
        .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
    if !review.is_object() {
        return Err("couldn't get version/kind; json parse error: not an object".into());
    }
    let text = |key: &str| review[key].as_str().unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        ("", "") => {}
        (api_version, "AdmissionReview") if api_version == version.api_version() => {}
        (api_version, "AdmissionReview") if api_version.starts_with("admission.k8s.io/") => {
            let short = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
            return Err(format!(
                "converting ({}.AdmissionReview) to ({}.AdmissionReview): unknown conversion",
                short(api_version),
                short(version.api_version())
            ));
        }
        (api_version, kind) => {
            return Err(format!(
                "no kind \"{kind}\" is registered for version \"{api_version}\""
            ));
        }
    }
    check_types(&review["response"])?;
    Ok(review)
}

/// Refuses the whole response if a field has a wrong type.
fn check_types(response: &Value) -> Result<(), String> {
    let text = |value: &Value| value.is_null() || value.is_string();
    let status = &response["status"];
    let right = text(&response["uid"])
        && (response["allowed"].is_null() || response["allowed"].is_boolean())
        && text(&response["patch"])
        && text(&response["patchType"])
        && (status.is_null() || status.is_object())
        && text(&status["message"])
        && text(&status["reason"])
        && (status["code"].is_null() || status["code"].is_i64());
    if right {
        Ok(())
    } else {
        Err("json: a field of the response has another type than it should".into())
    }
}

fn understand(
    review: &Value,
    uid: &str,
    version: ReviewVersion,
    phase: Phase,
) -> Result<AdmissionResponse, String> {
    let invalid = |why: &str| Err(format!("received invalid webhook response: {why}"));
    let response = &review["response"];
    if response.is_null() {
        return invalid("webhook response was absent");
    }
    let text = |key: &str| response[key].as_str().unwrap_or_default();
    let (patch, kind) = (text("patch"), text("patchType"));
    if version == ReviewVersion::V1 {
        if review["kind"].is_null() {
            return invalid(
                "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
            );
        }
        if text("uid") != uid {
            return invalid(&format!(
                "expected response.uid=\"{uid}\", got \"{}\"",
                text("uid")
            ));
        }
        match (phase, patch.is_empty(), kind.is_empty()) {
            (Phase::Validating, false, _) => {
                return invalid("validating webhook may not return response.patch");
            }
            (Phase::Validating, _, false) => {
                return invalid("validating webhook may not return response.patchType");
            }
            (Phase::Mutating, false, true) => {
                return invalid("webhook returned response.patch but not response.patchType");
            }
            (Phase::Mutating, true, false) => {
                return invalid("webhook returned response.patchType but not response.patch");
            }
            _ => {}
        }
    }
    let refused = response["allowed"] != true;
    let changes = phase == Phase::Mutating && !refused;
    Ok(AdmissionResponse {
        refusal: refused.then(|| response["status"].clone()),
        patch: if changes { decode_patch(patch)? } else { None },
        warnings: response["warnings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|warning| warning.as_str().map(Into::into))
            .collect(),
    })
}

fn decode_patch(text: &str) -> Result<Option<Value>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let bytes = BASE64_STANDARD
        .decode(text)
        .map_err(|error| format!("failed to call webhook: illegal base64 data: {error}"))?;
    let undecodable = |why: &str| format!("received undecodable patch in webhook response: {why}");
    let patch: Value =
        serde_json::from_slice(&bytes).map_err(|error| undecodable(&error.to_string()))?;
    if !patch.is_array() {
        return Err(undecodable("a JSON patch is a list of operations"));
    }
    Ok(Some(patch))
}

/// The error for a webhook that did not return 200. For some status codes the body is not quoted.
fn complaint(reply: &WebhookResponse) -> String {
    let body = String::from_utf8_lossy(&reply.body);
    if let Ok(status) = serde_json::from_slice::<Value>(&reply.body)
        && status["kind"] == "Status"
        && let Some(message) = status["message"].as_str()
    {
        return message.to_owned();
    }
    let words = match reply.status {
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 406 | 415 => &*body,
        404 => "the server could not find the requested resource",
        405 => "the server does not allow this method on the requested resource",
        409 => "the server reported a conflict",
        422 => "the server rejected our request due to an error in our request",
        429 => "the server has received too many requests and has asked us to try again later",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be processing the request"
        }
        code if code >= 500 => {
            return format!(
                "an error on the server (\"{}\") has prevented the request from succeeding",
                body.escape_debug()
            );
        }
        code => {
            return format!(
                "the server responded with the status code {code} but did not return more information"
            );
        }
    };
    words.to_owned()
}

/// The refusal of a webhook, with its own message.
pub fn refused(hook: &str, mut status: Value) -> ApiError {
    let given = |key: &str| {
        let text = status[key].as_str().unwrap_or_default();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let begin = format!("admission webhook \"{hook}\" denied the request");
    let message = match given("message").or_else(|| given("reason")) {
        Some(why) => format!("{begin}: {why}"),
        None => format!("{begin} without explanation"),
    };
    let code = status["code"]
        .as_u64()
        .filter(|code| (400..600).contains(code))
        .unwrap_or(400);
    let code = u16::try_from(code)
        .ok()
        .and_then(|code| http::StatusCode::from_u16(code).ok())
        .unwrap_or(http::StatusCode::BAD_REQUEST);
    if !status.is_object() {
        status = Value::Object(serde_json::Map::new());
    }
    status["kind"] = "Status".into();
    status["apiVersion"] = "v1".into();
    status["metadata"] = serde_json::json!({});
    status["status"] = "Failure".into();
    status["message"] = message.clone().into();
    status["code"] = code.as_u16().into();
    ApiError {
        verbatim: Some(Box::new(status)),
        ..ApiError::new(code, "", message)
    }
}

/// The refusal of a write because a webhook could not be called.
pub fn failed(hook: &str, why: &str) -> ApiError {
    ApiError::internal(format!("failed calling webhook \"{hook}\": {why}"))
}

#[cfg(test)]
mod tests;
