use serde_json::json;

use super::*;

fn read_as(
    version: ReviewVersion,
    phase: Phase,
    status: u16,
    body: &[u8],
) -> Result<AdmissionResponse, String> {
    let letter = WebhookResponse {
        status,
        body: body.to_vec().into(),
    };
    read(&letter, "u1", version, phase)
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "cases read better with the literal in place"
)]
fn parsed(phase: Phase, response: Value) -> Result<AdmissionResponse, String> {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    read_as(ReviewVersion::V1, phase, 200, review.to_string().as_bytes())
}

#[test]
fn answers_that_break_the_rules_are_failed_calls() {
    let patch = BASE64_STANDARD.encode("[]");
    for (phase, response, why) in [
        (
            Phase::Validating,
            Value::Null,
            "webhook response was absent",
        ),
        (
            Phase::Validating,
            json!({"uid": "other", "allowed": true}),
            "expected response.uid=\"u1\", got \"other\"",
        ),
        (
            Phase::Validating,
            json!({"allowed": true}),
            "expected response.uid=\"u1\", got \"\"",
        ),
        (
            Phase::Validating,
            json!({"uid": "u1", "allowed": true, "patch": patch}),
            "validating webhook may not return response.patch",
        ),
        (
            Phase::Validating,
            json!({"uid": "u1", "allowed": true, "patchType": "JSONPatch"}),
            "validating webhook may not return response.patchType",
        ),
        (
            Phase::Mutating,
            json!({"uid": "u1", "allowed": true, "patch": patch}),
            "webhook returned response.patch but not response.patchType",
        ),
        (
            Phase::Mutating,
            json!({"uid": "u1", "allowed": true, "patchType": "JSONPatch"}),
            "webhook returned response.patchType but not response.patch",
        ),
    ] {
        let expected = format!("received invalid webhook response: {why}");
        assert_eq!(parsed(phase, response.clone()), Err(expected), "{response}");
    }
}

#[test]
fn the_older_review_asks_less_of_its_answer() {
    let response = json!({"uid": "other", "allowed": true, "patch": BASE64_STANDARD.encode("[]")});
    let body = json!({ "response": response }).to_string();
    let answer = read_as(
        ReviewVersion::V1Beta1,
        Phase::Mutating,
        200,
        body.as_bytes(),
    )
    .unwrap();
    assert_eq!(answer.patch, Some(json!([])));
    let answer = read_as(
        ReviewVersion::V1Beta1,
        Phase::Validating,
        200,
        body.as_bytes(),
    )
    .unwrap();
    assert_eq!(answer.patch, None);
}

#[test]
fn what_is_no_review_is_a_failed_call() {
    for (status, body, why) in [
        (
            200,
            "",
            "0-length response with status code: 200 and content type: application/json",
        ),
        (
            204,
            "",
            "0-length response with status code: 204 and content type: application/json",
        ),
        (
            404,
            "nope",
            "the server could not find the requested resource",
        ),
        (403, "go away", "go away"),
        (
            500,
            "boom",
            "an error on the server (\"boom\") has prevented the request from succeeding",
        ),
        (503, r#"{"kind":"Status","message":"busy"}"#, "busy"),
        (
            503,
            "x",
            "the server is currently unable to handle the request",
        ),
        (
            302,
            "",
            "the server responded with the status code 302 but did not return more information",
        ),
        (
            200,
            r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#,
            "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        ),
    ] {
        let answer = read_as(ReviewVersion::V1, Phase::Mutating, status, body.as_bytes());
        assert_eq!(answer, Err(format!("failed to call webhook: {why}")));
    }
    for body in [
        "not json",
        "[]",
        r#"{"apiVersion":"v1","kind":"Pod"}"#,
        r#"{"response":{"status":{"message":5}}}"#,
    ] {
        let why = read_as(ReviewVersion::V1, Phase::Mutating, 200, body.as_bytes()).unwrap_err();
        assert!(why.starts_with("failed to call webhook: "), "{why}");
    }
    let nameless = read_as(
        ReviewVersion::V1,
        Phase::Mutating,
        200,
        br#"{"response":{"uid":"u1"}}"#,
    );
    assert_eq!(nameless, Err("received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=".into()));
}

#[test]
fn a_patch_must_be_a_list_of_operations() {
    let with = |patch: &str| {
        parsed(
            Phase::Mutating,
            json!({"uid": "u1", "allowed": true, "patchType": "JSONPatch", "patch": patch}),
        )
    };
    let encoded = |text: &str| BASE64_STANDARD.encode(text);
    assert!(
        with("***")
            .unwrap_err()
            .starts_with("failed to call webhook: illegal base64 data")
    );
    for text in ["nonsense", "{}"] {
        let why = with(&encoded(text)).unwrap_err();
        assert!(
            why.starts_with("received undecodable patch in webhook response: "),
            "{why}"
        );
    }
    assert_eq!(with(&encoded("[]")).unwrap().patch, Some(json!([])));
}

#[test]
fn a_refusal_says_what_the_webhook_said() {
    for (status, code, message, reason) in [
        (
            Value::Null,
            400,
            "denied the request without explanation",
            Value::Null,
        ),
        (
            json!({}),
            400,
            "denied the request without explanation",
            Value::Null,
        ),
        (
            json!({"message": "no tides"}),
            400,
            "denied the request: no tides",
            Value::Null,
        ),
        (
            json!({"reason": "BecauseISaySo"}),
            400,
            "denied the request: BecauseISaySo",
            json!("BecauseISaySo"),
        ),
        (
            json!({"message": "odd", "code": 422}),
            422,
            "denied the request: odd",
            Value::Null,
        ),
        (
            json!({"message": "odd", "code": 200, "status": "Success"}),
            400,
            "denied the request: odd",
            Value::Null,
        ),
        (
            json!({"message": "no", "reason": "Conflict", "code": 409}),
            409,
            "denied the request: no",
            json!("Conflict"),
        ),
    ] {
        let error = refused("h", status.clone());
        let shown = error.to_value();
        assert_eq!(error.code.as_u16(), code, "{status}");
        assert_eq!(shown["code"], code, "{status}");
        assert_eq!(shown["status"], "Failure", "{status}");
        assert_eq!(
            shown["message"],
            format!("admission webhook \"h\" {message}")
        );
        assert_eq!(
            shown.get("reason").cloned().unwrap_or_default(),
            reason,
            "{status}"
        );
    }
}
