//! The manifests of deploy/farm are those of the registration. `NEAP_UPDATE=1` writes them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{fs, path::PathBuf};

use kube::CustomResourceExt;
use neap_farm::{api::OPERATOR_NAMESPACE, area::AREA};
use neap_kit::operation::Operation;
use serde_json::Value;

fn deploy() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/farm")
}

fn documents(values: &[Value]) -> String {
    let texts = values
        .iter()
        .map(|value| serde_saphyr::to_string(value).unwrap());
    let texts: Vec<_> = texts.collect();
    format!(
        "# Generated from crates/farm; NEAP_UPDATE=1 cargo test -p neap-farm --test deploy\n{}",
        texts.join("---\n")
    )
}

fn holds(path: &str, text: &str) {
    let path = deploy().join(path);
    if std::env::var_os("NEAP_UPDATE").is_some() {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "{} differs from what the registration says",
        path.display()
    );
}

#[test]
fn the_definitions_are_those_of_the_types() {
    let mut definitions = (AREA.definitions)();
    // Roll-outs are recorded in Operations, which belong to no area.
    definitions.push(Operation::crd());
    let values: Vec<_> = definitions
        .iter()
        .map(|definition| serde_json::to_value(definition).unwrap())
        .collect();
    let text = documents(&values);
    assert!(
        text.len() < 200_000,
        "the definitions fit into an annotation: {}",
        text.len()
    );
    holds("kustomize/crd.yaml", &text);
    holds("chart/templates/crd.yaml", &text);
}

#[test]
fn the_rights_are_those_of_the_registration() {
    let roles = AREA.roles.iter();
    let values: Vec<_> = roles
        .flat_map(|role| role.objects(OPERATOR_NAMESPACE))
        .collect();
    let text = documents(&values);
    holds("kustomize/rbac.yaml", &text);
    let chart = text.replace(
        &format!("namespace: {OPERATOR_NAMESPACE}"),
        "namespace: {{ .Release.Namespace }}",
    );
    holds("chart/templates/rbac.yaml", &chart);
}

#[test]
fn every_right_is_used_and_no_write_lacks_one() {
    use neap_farm::farm::objects::owned_kinds;
    let manager = AREA.roles[0];
    for kind in owned_kinds() {
        let right = manager.rights.iter().find(|right| {
            right.group == kind.resource.group
                && right.resources.contains(&kind.resource.plural.as_str())
        });
        let right = right.unwrap_or_else(|| panic!("no right for {}", kind.resource.plural));
        for verb in ["create", "delete", "get", "list", "patch", "watch"] {
            assert!(
                right.verbs.contains(&verb),
                "{verb} {}",
                kind.resource.plural
            );
        }
    }
    let all: Vec<_> = manager
        .rights
        .iter()
        .flat_map(|right| right.resources)
        .collect();
    let known = owned_kinds().len() + 3 + 2 + 5 + 10;
    assert_eq!(
        all.len(),
        known,
        "events, claims and pods, operations, five kinds and their subresources"
    );
}
