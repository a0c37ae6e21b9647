//! Kinds that are answered and never stored: reviews of identity and access, and bindings of pods
//! to nodes. Only `create` is served; `rest/special/reviews.rs` computes the answers.

use serde_json::Value;

use super::{
    BuiltinKind, Rules, Traits,
    fields::{is_set, list, text},
};
use crate::status::Problems;

/// The group of access reviews.
const AUTHORIZATION: &str = "authorization.k8s.io";
/// The group of token reviews.
const AUTHENTICATION: &str = "authentication.k8s.io";

const fn row(group: &'static str, plural: &'static str, validate: ValidateFn) -> BuiltinKind {
    BuiltinKind {
        group,
        version: "v1",
        plural,
        rules: Rules {
            validate,
            traits: Traits {
                status: false,
                ..Traits::USUAL
            },
            ..Rules::SHAPE_ONLY
        },
    }
}

type ValidateFn = fn(&Value, &mut Problems);

static KINDS: [BuiltinKind; 7] = [
    row("", "bindings", |_, _| {}),
    row(AUTHENTICATION, "selfsubjectreviews", |_, _| {}),
    row(AUTHENTICATION, "tokenreviews", |_, _| {}),
    row(AUTHORIZATION, "localsubjectaccessreviews", local),
    row(AUTHORIZATION, "selfsubjectaccessreviews", own),
    row(AUTHORIZATION, "selfsubjectrulesreviews", |_, _| {}),
    row(AUTHORIZATION, "subjectaccessreviews", any),
];

/// The rows of the kinds that are answered and never stored.
pub(super) fn review_kinds() -> &'static [BuiltinKind] {
    &KINDS
}

/// Whether objects of this kind are answered and never stored.
pub(super) fn is_answered(group: &str, plural: &str) -> bool {
    let is = |kind: &BuiltinKind| kind.group == group && kind.plural == plural;
    KINDS.iter().any(is)
}

fn any(review: &Value, problems: &mut Problems) {
    question(review, problems);
    subject(review, problems);
    nameless(review, &["managedFields"], problems);
}

fn own(review: &Value, problems: &mut Problems) {
    question(review, problems);
    nameless(review, &["managedFields"], problems);
}

fn local(review: &Value, problems: &mut Problems) {
    question(review, problems);
    subject(review, problems);
    nameless(review, &["managedFields", "namespace"], problems);
    let spec = &review["spec"];
    let namespace = text(&spec["resourceAttributes"], "namespace");
    if is_set(spec, "resourceAttributes") && namespace != text(&review["metadata"], "namespace") {
        let field = "spec.resourceAttributes.namespace";
        problems.invalid(field, namespace, "must match metadata.namespace");
    }
    if is_set(spec, "nonResourceAttributes") {
        let detail = "disallowed on this kind of request";
        let found = spec["nonResourceAttributes"].clone();
        problems.invalid("spec.nonResourceAttributes", found, detail);
    }
}

fn subject(review: &Value, problems: &mut Problems) {
    let spec = &review["spec"];
    if text(spec, "user").is_empty() && list(spec, "groups").is_empty() {
        let detail = "at least one of user or group must be specified";
        problems.invalid("spec.user", "", detail);
    }
}

fn question(review: &Value, problems: &mut Problems) {
    let spec = &review["spec"];
    for selector in ["fieldSelector", "labelSelector"] {
        selected(&spec["resourceAttributes"], selector, problems);
    }
    let is = |field| is_set(spec, field);
    match (is("resourceAttributes"), is("nonResourceAttributes")) {
        (true, true) => {
            let asked = &spec["nonResourceAttributes"];
            let found =
                serde_json::json!({"Path": text(asked, "path"), "Verb": text(asked, "verb")});
            let detail = "cannot be specified in combination with resourceAttributes";
            problems.invalid("spec.nonResourceAttributes", found, detail);
        }
        (false, false) => {
            let detail =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            problems.invalid("spec.resourceAttributes", Value::Null, detail);
        }
        _ => {}
    }
}

/// Validates the selector of a review, which is given in one of two forms.
fn selected(attributes: &Value, field: &str, problems: &mut Problems) {
    if !is_set(attributes, field) {
        return;
    }
    let selector = &attributes[field];
    let raw = text(selector, "rawSelector");
    let path = format!("spec.resourceAttributes.{field}");
    match (raw, list(selector, "requirements")) {
        ("", []) => {
            let detail =
                format!("when {path} is specified, requirements or rawSelector is required");
            problems.required(format!("{path}.requirements"), detail);
        }
        (raw, [_, ..]) if !raw.is_empty() => {
            let detail = "may not specified at the same time as requirements";
            problems.invalid(format!("{path}.rawSelector"), raw, detail);
        }
        _ => {}
    }
}

/// Refuses metadata in a review other than what the server itself adds.
fn nameless(review: &Value, added: &[&str], problems: &mut Problems) {
    let fields = review["metadata"].as_object();
    let mut fields = fields.into_iter().flatten();
    if fields.any(|(field, _)| !added.contains(&field.as_str())) {
        problems.invalid("metadata", review["metadata"].clone(), "must be empty");
    }
}
