//! Migration from KubeElasti 0.1.30: for a while no process needs a token, with Kustomize as with Helm.

use super::{
    chart::{container, rendered, variable},
    *,
};

const OPERATOR: &str = "elasti-operator-controller-manager";
const RESOLVER: &str = "elasti-resolver";

/// The variables and arguments of the container of Deployment `name` with the overlay.
fn overlaid(name: &str) -> (BTreeMap<String, String>, Vec<String>) {
    let overlay: Value =
        serde_saphyr::from_str(&text("kustomize-moving/kustomization.yaml")).unwrap();
    assert_eq!(overlay["resources"], json!(["../kustomize"]));
    let (mut variables, mut words) = started(name);
    let patches = overlay["patches"].as_array().unwrap().iter();
    let target = json!({"kind": "Deployment", "name": name});
    for patch in patches.filter(|patch| patch["target"] == target) {
        let steps: Value = serde_saphyr::from_str(patch["patch"].as_str().unwrap()).unwrap();
        for step in steps.as_array().unwrap() {
            assert_eq!(step["op"], "add");
            let value = &step["value"];
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            match step["path"].as_str().unwrap() {
                "/spec/template/spec/containers/0/args/-" => words.push(text(value)),
                "/spec/template/spec/containers/0/env/-" => {
                    variables.insert(text(&value["name"]), text(&value["value"]));
                }
                path => panic!("{path}"),
            }
        }
    }
    (variables, words)
}

#[test]
fn the_overlay_requires_no_tokens() {
    let (variables, words) = overlaid(OPERATOR);
    let operator = OperatorOptions::read(words, &|name| variables.get(name).cloned()).unwrap();
    assert!(operator.allow_unauthenticated_resolvers);
    let (variables, _) = overlaid(RESOLVER);
    let resolver = ResolverOptions::read(&|name| variables.get(name).cloned()).unwrap();
    assert!(resolver.allow_unauthenticated_operators);
}

#[test]
fn the_chart_without_authentication_matches_the_overlay() {
    let test = "deploy::moving::the_chart_without_authentication_matches_the_overlay";
    let Some(chart) = rendered(test, &["global.authentication=false"]) else {
        return;
    };
    let (_, words) = overlaid(OPERATOR);
    assert_eq!(container(&chart, OPERATOR)["args"], json!(words));
    let name = "ELASTI_ALLOW_UNAUTHENTICATED_OPERATORS";
    let (variables, _) = overlaid(RESOLVER);
    assert_eq!(variable(&chart, RESOLVER, name), variables[name].as_str());
}
