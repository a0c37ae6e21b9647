use serde_json::json;

use super::*;
use crate::store::encode;

mod first;

fn object(value: &Value) -> Object {
    Object::new(1, encode(value, 1))
}

fn role(name: &str, rules: &Value) -> Object {
    object(&json!({"metadata": {"name": name}, "rules": rules}))
}

fn binding(name: &str, namespace: &str, role: &str, subjects: &Value) -> Object {
    let metadata = match namespace {
        "" => json!({"name": name}),
        namespace => json!({"name": name, "namespace": namespace}),
    };
    object(&json!({
        "metadata": metadata,
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": subjects,
    }))
}

fn user(name: &str) -> Value {
    json!([{"kind": "User", "name": name}])
}

fn who<'a>(name: &'a str, groups: &'a [String]) -> Requester<'a> {
    Requester { name, groups }
}

fn pods<'a>(name: &'a str, namespace: &'a str) -> AccessTarget<'a> {
    AccessTarget::Resource {
        group: "",
        resource: "pods",
        subresource: "",
        name,
        namespace,
    }
}

fn may(policy: &Policy, name: &str, verb: &str, what: AccessTarget<'_>) -> bool {
    let who = who(name, &[]);
    decide(&Attributes { who, verb, what }, policy).allowed
}

/// A policy in which `bob` has a role with these rules, everywhere.
fn policy(rules: &Value) -> Policy {
    let mut policy = Policy::default();
    policy.take(PolicyUpdate::cluster_role(Change::Added, &role("r", rules)));
    policy.take(PolicyUpdate::binding(
        Change::Added,
        &binding("b", "", "r", &user("bob")),
    ));
    policy
}

#[test]
fn rules_match_by_group_resource_subresource_name_and_verb() {
    let rule = |resources: &[&str]| json!([{"apiGroups": ["apps"], "resources": resources, "verbs": ["get", "list"]}]);
    let what = |group, resource, subresource, name| AccessTarget::Resource {
        group,
        resource,
        subresource,
        name,
        namespace: "",
    };
    for (resources, verb, what, allowed) in [
        (vec!["sets"], "get", what("apps", "sets", "", ""), true),
        (vec!["sets"], "update", what("apps", "sets", "", ""), false),
        (vec!["sets"], "get", what("", "sets", "", ""), false),
        (
            vec!["sets"],
            "get",
            what("apps", "sets", "scale", ""),
            false,
        ),
        (
            vec!["sets/scale"],
            "get",
            what("apps", "sets", "scale", "x"),
            true,
        ),
        (
            vec!["sets/scale"],
            "get",
            what("apps", "sets", "", "x"),
            false,
        ),
        (
            vec!["*/scale"],
            "get",
            what("apps", "sets", "scale", "x"),
            true,
        ),
        (
            vec!["*/scale"],
            "get",
            what("apps", "sets", "status", "x"),
            false,
        ),
        (
            vec!["sets/*"],
            "get",
            what("apps", "sets", "scale", "x"),
            false,
        ),
        (vec!["*"], "get", what("apps", "sets", "scale", "x"), true),
        (vec!["*"], "get", AccessTarget::Path("/apps"), false),
    ] {
        let policy = policy(&rule(&resources));
        assert_eq!(
            may(&policy, "bob", verb, what),
            allowed,
            "{resources:?} {verb} {what}"
        );
        assert!(!may(&policy, "eve", verb, what));
    }
}

#[test]
fn a_rule_for_names_is_for_no_others_and_for_no_collection() {
    let rules =
        json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "resourceNames": ["x"]}]);
    let policy = policy(&rules);
    for (name, allowed) in [("x", true), ("y", false), ("", false)] {
        assert_eq!(
            may(&policy, "bob", "delete", pods(name, "d")),
            allowed,
            "{name}"
        );
    }
}

#[test]
fn paths_match_whole_or_by_how_they_begin() {
    for (pattern, path, allowed) in [
        ("/version", "/version", true),
        ("/version", "/version/", false),
        ("/api/*", "/api/v1", true),
        ("/api/*", "/api", false),
        ("*", "/anything", true),
    ] {
        let rules = json!([{"nonResourceURLs": [pattern], "verbs": ["get"]}]);
        let policy = policy(&rules);
        let path = AccessTarget::Path(path);
        assert_eq!(
            may(&policy, "bob", "get", path),
            allowed,
            "{pattern} {path}"
        );
        assert!(!may(&policy, "bob", "post", path));
    }
}

#[test]
fn a_binding_in_a_namespace_holds_there_alone() {
    let mut policy = Policy::default();
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}, {"nonResourceURLs": ["/x"], "verbs": ["get"]}]);
    policy.take(PolicyUpdate::cluster_role(
        Change::Added,
        &role("r", &rules),
    ));
    let account = json!([{"kind": "ServiceAccount", "name": "acc"}]);
    policy.take(PolicyUpdate::binding(
        Change::Added,
        &binding("b", "here", "r", &account),
    ));
    let acc = "system:serviceaccount:here:acc";
    assert!(may(&policy, acc, "get", pods("x", "here")));
    assert!(!may(&policy, acc, "get", pods("x", "there")));
    assert!(!may(&policy, acc, "get", pods("x", "")));
    assert!(!may(&policy, acc, "get", AccessTarget::Path("/x")));
}

#[test]
fn a_binding_that_changes_or_goes_leaves_nothing_behind() {
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    let mut policy = policy(&rules);
    let changed = binding("b", "", "r", &json!([{"kind": "Group", "name": "devs"}]));
    policy.take(PolicyUpdate::binding(Change::Modified, &changed));
    assert!(!may(&policy, "bob", "get", pods("x", "d")));
    let devs = ["devs".to_owned()];
    let asked = Attributes {
        who: who("ann", &devs),
        verb: "get",
        what: pods("x", "d"),
    };
    assert!(decide(&asked, &policy).allowed);
    policy.take(PolicyUpdate::binding(Change::Deleted, &changed));
    assert!(!decide(&asked, &policy).allowed);
    policy.take(PolicyUpdate::cluster_role(
        Change::Deleted,
        &role("r", &rules),
    ));
    assert_eq!(format!("{policy:?}"), format!("{:?}", Policy::default()));
}

#[test]
fn a_decision_looks_at_no_bindings_of_others() {
    let mut policy = policy(&json!([]));
    for at in 0..5_000 {
        let name = format!("u{at}");
        let here = ["", "here", "there"][at % 3];
        policy.take(PolicyUpdate::binding(
            Change::Added,
            &binding(&name, here, "r", &user(&name)),
        ));
    }
    let devs = ["devs".to_owned()];
    assert_eq!(policy.bindings(who("bob", &devs), "here").count(), 1);
    assert_eq!(policy.bindings(who("u1", &devs), "here").count(), 1);
    assert_eq!(policy.bindings(who("u1", &devs), "there").count(), 0);
}

#[test]
fn a_decision_looks_at_no_bindings_in_other_namespaces() {
    let mut policy = policy(&json!([]));
    for at in 0..1_000 {
        let namespace = format!("n{at}");
        policy.take(PolicyUpdate::binding(
            Change::Added,
            &binding("b", &namespace, "r", &user("ann")),
        ));
    }
    let ann = who("ann", &[]);
    assert_eq!(policy.bindings(ann, "n7").count(), 1);
    assert_eq!(policy.bindings(ann, "").count(), 0);
}

#[test]
fn the_order_of_rules_is_no_difference() {
    let rule = |verb: &str| json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]});
    let rules = |verbs: &[&str]| rules_of(&verbs.iter().map(|verb| rule(verb)).collect());
    assert!(are_same(&rules(&["a", "b"]), &rules(&["b", "a"])));
    assert!(!are_same(&rules(&["a", "b"]), &rules(&["b"])));
    assert!(!are_same(&rules(&["b"]), &rules(&["a", "b"])));
}

#[test]
fn masters_need_no_role() {
    let masters = [MASTERS.to_owned()];
    let asked = Attributes {
        who: who("alice", &masters),
        verb: "get",
        what: AccessTarget::Path("/"),
    };
    let decision = decide(&asked, &Policy::default());
    assert_eq!((decision.allowed, &*decision.reason), (true, ""));
}

#[test]
fn held_rules_count_every_binding_once_in_the_order_of_names() {
    let rule = |verb: &str| json!([{"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}]);
    let mut policy = Policy::default();
    policy.take(PolicyUpdate::cluster_role(
        Change::Added,
        &role("r1", &rule("get")),
    ));
    policy.take(PolicyUpdate::cluster_role(
        Change::Added,
        &role("r2", &rule("list")),
    ));
    let both = json!([{"kind": "Group", "name": "devs"}, {"kind": "User", "name": "bob"}]);
    policy.take(PolicyUpdate::binding(
        Change::Added,
        &binding("b", "", "r2", &both),
    ));
    policy.take(PolicyUpdate::binding(
        Change::Added,
        &binding("a", "", "r1", &json!([{"kind": "Group", "name": "devs"}])),
    ));
    policy.take(PolicyUpdate::binding(
        Change::Added,
        &binding("c", "here", "none", &both),
    ));
    let devs = ["devs".to_owned()];
    let held = decision::held(who("bob", &devs), "here", &policy);
    let verbs: Vec<&str> = held.rules.iter().map(|rule| &*rule.verbs[0]).collect();
    assert_eq!(verbs, ["get", "list"]);
    let problems = held.problems();
    let told = "clusterrole.rbac.authorization.k8s.io \"none\" not found";
    assert_eq!(problems.as_deref(), Some(told));
}

#[test]
fn gathered_rules_come_in_the_order_of_names_and_each_once() {
    let labelled = |name: &str, labels: Value, verbs: &[&str]| {
        let rules: Vec<Value> = verbs
            .iter()
            .map(|verb| json!({"apiGroups": [""], "resources": ["pods"], "verbs": [verb]}))
            .collect();
        object(&json!({"metadata": {"name": name, "labels": labels}, "rules": rules}))
    };
    let access = Authorizer::default();
    for role in [
        labelled("b", json!({"to": "all"}), &["list", "get"]),
        labelled("a", json!({"to": "all"}), &["get"]),
        labelled("c", json!({"to": "none"}), &["delete"]),
        labelled("self", json!({"to": "all"}), &["patch"]),
    ] {
        access
            .policy
            .write()
            .take(PolicyUpdate::cluster_role(Change::Added, &role));
    }
    let selectors = [json!({"matchLabels": {"to": "all"}})];
    let gathered = access.gathered("self", &selectors);
    let verbs: Vec<&str> = gathered.iter().map(|rule| &*rule.verbs[0]).collect();
    assert_eq!(verbs, ["get", "list"]);
}
