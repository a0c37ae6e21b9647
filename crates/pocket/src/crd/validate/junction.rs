//! `allOf`, `anyOf`, `oneOf` and `not`.
//!
//! The API server names no field for these: their path is `<nil>` and the field is in the message.

use serde_json::Value;

use super::{FieldPath, Findings, ObjectLevel, walk};
use crate::{
    schema::{Limits, NodeId, Schema, Type},
    status::FieldErrorKind,
};

pub(super) fn check(
    schema: Schema<'_>,
    limits: &Limits,
    value: &Value,
    at: &FieldPath<'_>,
    findings: &mut Findings,
) {
    for &id in &limits.all_of {
        let mut branch = try_branch(schema, id, value, at);
        if !branch.0.is_empty() {
            findings.0.append(&mut branch.0);
            no_field(findings, at, "must validate all the schemas (allOf)");
        }
    }
    if !limits.any_of.is_empty() {
        let (valid, best) = try_all(schema, &limits.any_of, value, at);
        if valid == 0 {
            findings.0.extend(best.0);
            no_field(findings, at, "must validate at least one schema (anyOf)");
        }
    }
    if !limits.one_of.is_empty() {
        let (valid, best) = try_all(schema, &limits.one_of, value, at);
        let words = "must validate one and only one schema (oneOf). Found";
        match valid {
            1 => {}
            0 => {
                findings.0.extend(best.0);
                no_field(findings, at, &format!("{words} none valid"));
            }
            many => no_field(findings, at, &format!("{words} {many} valid alternatives")),
        }
    }
    if let Some(id) = limits.not
        && try_branch(schema, id, value, at).0.is_empty()
    {
        no_field(findings, at, "must not validate the schema (not)");
    }
}

fn try_branch(schema: Schema<'_>, id: NodeId, value: &Value, at: &FieldPath<'_>) -> Findings {
    let mut findings = Findings::default();
    walk(
        schema.sibling(id),
        value,
        None,
        at,
        ObjectLevel::No,
        &mut findings,
    );
    findings
}

/// Counts the branches that hold, and returns the problems of the branch that came nearest: one
/// that applies to the value's type before one that does not, and then the one with the fewest.
fn try_all(
    schema: Schema<'_>,
    ids: &[NodeId],
    value: &Value,
    at: &FieldPath<'_>,
) -> (usize, Findings) {
    let mut valid = 0;
    let mut best: Option<((bool, usize), Findings)> = None;
    for &id in ids {
        let branch = try_branch(schema, id, value, at);
        let distance = (!is_about(schema.sibling(id), value), branch.0.len());
        if branch.0.is_empty() {
            valid += 1;
        } else if best.as_ref().is_none_or(|(least, _)| distance < *least) {
            best = Some((distance, branch));
        }
    }
    (valid, best.map(|(_, best)| best).unwrap_or_default())
}

/// Whether a branch has limits for a number, although its type may be another.
fn is_about(schema: Schema<'_>, value: &Value) -> bool {
    value.is_number() && matches!(schema.node().ty, Type::Integer | Type::Number)
}

fn no_field(findings: &mut Findings, at: &FieldPath<'_>, words: &str) {
    let nowhere = FieldPath::At("<nil>");
    let detail = format!("\"{at}\" {words}");
    findings.add(FieldErrorKind::Invalid, &nowhere, Some("".into()), detail);
}
