use serde_json::{Value, json};

use crate::access::{
    CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, PolicyRule, ROLE_BINDINGS, ROLES,
    bootstrap::{BootstrapObject, first, refers_elsewhere, restored},
    rules_of,
};

fn find(bucket: &str, name: &str) -> BootstrapObject {
    let mut all = first().into_iter();
    all.find(|first| first.bucket == bucket && first.name() == name)
        .unwrap()
}

#[test]
fn a_server_has_as_many_as_the_real_one() {
    let all = first();
    for (bucket, count) in [
        (CLUSTER_ROLES, 69),
        (CLUSTER_ROLE_BINDINGS, 50),
        (ROLES, 7),
        (ROLE_BINDINGS, 7),
    ] {
        let found = all.iter().filter(|first| first.bucket == bucket);
        assert_eq!(found.count(), count, "{bucket}");
    }
}

#[test]
fn those_that_gather_have_gathered_from_those_that_gather_too() {
    let rules = |name| rules_of(&find(CLUSTER_ROLES, name).gathered.unwrap());
    let (view, edit, admin) = (rules("view"), rules("edit"), rules("admin"));
    let within =
        |small: &[PolicyRule], large: &[PolicyRule]| small.iter().all(|rule| large.contains(rule));
    assert!(!view.is_empty() && within(&view, &edit) && within(&edit, &admin));
    assert!(view.len() < edit.len() && edit.len() < admin.len());
}

#[test]
fn what_is_lacking_comes_back_and_what_was_added_stays() {
    let wanted = find(CLUSTER_ROLES, "system:basic-user").object;
    assert_eq!(restored(&wanted, &wanted), None);
    let mut poor = wanted.clone();
    poor["rules"].as_array_mut().unwrap().pop();
    let added = json!({"apiGroups": ["x"], "resources": ["y"], "verbs": ["z"]});
    poor["rules"].as_array_mut().unwrap().push(added.clone());
    poor["metadata"]["labels"] = json!({"mine": "yes"});
    let rich = restored(&poor, &wanted).unwrap();
    let rules = rich["rules"].as_array().unwrap();
    assert!(rules.contains(&added));
    let wanted_rules = wanted["rules"].as_array().unwrap();
    assert!(
        wanted_rules.iter().all(|rule| rules.contains(rule)),
        "{rich}"
    );
    let labels = json!({"mine": "yes", "kubernetes.io/bootstrapping": "rbac-defaults"});
    assert_eq!(rich["metadata"]["labels"], labels);
    assert_eq!(restored(&rich, &wanted), None, "it comes to rest");
}

#[test]
fn one_that_shall_not_be_updated_is_left_alone() {
    let wanted = find(CLUSTER_ROLES, "system:basic-user").object;
    let mut kept = wanted.clone();
    kept["rules"] = Value::Null;
    assert!(restored(&kept, &wanted).is_some());
    kept["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = json!("false");
    assert_eq!(restored(&kept, &wanted), None);
}

#[test]
fn subjects_come_back_and_another_role_is_noticed() {
    let wanted = find(CLUSTER_ROLE_BINDINGS, "system:basic-user").object;
    let mut stored = wanted.clone();
    stored["subjects"] = json!([{"kind": "User", "name": "added"}]);
    let rich = restored(&stored, &wanted).unwrap();
    assert_eq!(rich["subjects"].as_array().unwrap().len(), 2);
    assert!(!refers_elsewhere(&stored, &wanted));
    stored["roleRef"]["name"] = json!("cluster-admin");
    assert!(refers_elsewhere(&stored, &wanted));
}
