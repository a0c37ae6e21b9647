//! Validation of resource claims (devices): those of a pod, and their use by containers.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value, json};

use crate::{
    kinds::{
        field_rules::obeys,
        fields::{is_set, list, text},
        names,
        path::Path,
    },
    status::{FieldError, FieldErrorKind, Problems},
};

/// Validates `resourceClaims` of a pod.
pub(super) fn check(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let all = path.field("resourceClaims");
    let mut seen = HashSet::new();
    for (index, claim) in list(spec, "resourceClaims").iter().enumerate() {
        let path = all.index(index);
        let name = text(claim, "name");
        if name.is_empty() {
            problems.required(path.field("name"), "");
        } else if !seen.insert(name) {
            problems.duplicate(path.field("name"), name);
        } else {
            obeys(names::label, name, &path.field("name"), problems);
        }
        check_source(claim, &path, problems);
    }
}

fn check_source(claim: &Value, path: &Path<'_>, problems: &mut Problems) {
    let sources = ["resourceClaimName", "resourceClaimTemplateName"];
    let detail = match sources
        .iter()
        .filter(|source| is_set(claim, source))
        .count()
    {
        0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        1 => "",
        _ => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
    };
    if !detail.is_empty() {
        let [name, own, template] = ["name", sources[0], sources[1]].map(|field| &claim[field]);
        let name = json!(name.as_str().unwrap_or_default());
        let shown = format!(
            r#"{{"Name":{name},"ResourceClaimName":{own},"ResourceClaimTemplateName":{template}}}"#
        );
        problems.written(FieldErrorKind::Invalid, path, &shown, detail);
    }
    for source in sources {
        if let Some(name) = claim[source].as_str() {
            obeys(names::subdomain, name, &path.field(source), problems);
        }
    }
}

/// The names of the claims of a pod.
pub(super) type ClaimNames<'a> = BTreeSet<&'a str>;

pub(super) fn names(spec: &Value) -> ClaimNames<'_> {
    let claims = list(spec, "resourceClaims").iter();
    let names = claims.map(|claim| text(claim, "name"));
    names.filter(|name| !name.is_empty()).collect()
}

/// Validates `claims` of a container's resources: the pod must have the claims they name.
pub(super) fn check_uses(
    resources: &Value,
    known: &ClaimNames<'_>,
    path: &Path<'_>,
    problems: &mut Problems,
) {
    let all = path.field("claims");
    let mut seen = HashSet::new();
    for (index, claim) in list(resources, "claims").iter().enumerate() {
        let (path, name) = (all.index(index), text(claim, "name"));
        if name.is_empty() {
            problems.required(path, "");
            continue;
        }
        let request = text(claim, "request");
        let asked = (name, request);
        if !request.is_empty() {
            obeys(names::label, request, &path.field("request"), problems);
        }
        if seen.contains(&asked) && !request.is_empty() {
            problems.duplicate(path, format!("{name}/{request}"));
        } else if seen.contains(&asked) || seen.contains(&(name, "")) {
            problems.duplicate(path, name);
        }
        seen.insert(asked);
        if !known.contains(name) && !problems.is_full() {
            let names: Vec<&str> = known.iter().copied().collect();
            let which = match names.as_slice() {
                [] => " which is empty".to_owned(),
                names => format!(": {}", names.join(", ")),
            };
            problems.push(FieldError {
                kind: FieldErrorKind::NotFound,
                path: path.to_string(),
                value: Some(name.into()),
                detail: format!("must be one of the names in pod.spec.resourceClaims{which}"),
            });
        }
    }
}
