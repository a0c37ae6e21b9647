use serde_json::{Value, json};

use super::*;

fn boat() -> ApiResource {
    let subresource = |name: &str, (group, version, kind): (&str, &str, &str)| Subresource {
        name: name.into(),
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        verbs: ["get", "patch", "update"].map(Into::into).into(),
    };
    ApiResource {
        plural: "boats".into(),
        singular: "boat".into(),
        kind: "Boat".into(),
        namespaced: false,
        verbs: [
            "create",
            "delete",
            "deletecollection",
            "get",
            "list",
            "patch",
            "update",
            "watch",
        ]
        .map(Into::into)
        .into(),
        short_names: vec!["bo".into()],
        categories: vec!["all".into()],
        custom: true,
        subresources: vec![
            subresource("status", ("tide.dev", "v1", "Boat")),
            subresource("scale", ("autoscaling", "v1", "Scale")),
        ],
    }
}

fn everything() -> Vec<Group> {
    let wanted = ["autoscaling", "apps", ""];
    let builtins = builtins()
        .iter()
        .filter(|b| wanted.contains(&&*b.group))
        .map(|b| (&*b.group, &*b.version, b.resource.clone()));
    let custom = [
        ("tide.dev", "v1alpha1", boat()),
        ("tide.dev", "v1", boat()),
        ("boats.dev", "v1", boat()),
    ];
    gather(custom.into_iter().chain(builtins))
}

fn row<'a>(list: &'a Value, name: &str) -> &'a Value {
    let rows = list["resources"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap()
}

#[test]
fn every_served_resource_is_known_by_its_plural() {
    assert!(builtins().len() > 45);
    let pods = &builtin("", "v1", "pods").unwrap().resource;
    assert_eq!(
        (&*pods.kind, &*pods.singular, pods.namespaced),
        ("Pod", "pod", true)
    );
    assert_eq!(pods.short_names, ["po"]);
    assert_eq!(pods.categories, ["all"]);
    assert!(
        pods.subresources
            .iter()
            .any(|s| s.name == "eviction" && s.group == "policy")
    );
    assert!(builtin("", "v1", "componentstatuses").is_none());
}

#[test]
fn preferred_versions_come_first() {
    let mut names = vec![
        "v1alpha1",
        "foo10",
        "v1",
        "v11beta2",
        "v10",
        "v3beta1",
        "foo1",
        "v11alpha2",
        "v2",
        "v12alpha1",
        "v01",
    ];
    names.sort_by(|a, b| compare_versions(a, b));
    let expected = [
        "v10",
        "v2",
        "v1",
        "v11beta2",
        "v3beta1",
        "v12alpha1",
        "v11alpha2",
        "v1alpha1",
        "foo1",
        "foo10",
        "v01",
    ];
    assert_eq!(names, expected);
}

#[test]
fn groups_are_published_built_in_first_then_by_name() {
    let all = everything();
    let tide = all.last().unwrap().versions.iter().map(|v| &*v.name);
    assert_eq!(tide.collect::<Vec<_>>(), ["v1", "v1alpha1"]);
    let names: Vec<&str> = all.iter().map(|group| &*group.name).collect();
    assert_eq!(names, ["", "apps", "autoscaling", "boats.dev", "tide.dev"]);
    let list = group_list(&all);
    assert_eq!(list["groups"].as_array().unwrap().len(), 4);
    assert_eq!(
        list["groups"][1],
        json!({
            "name": "autoscaling",
            "versions": [
                {"groupVersion": "autoscaling/v2", "version": "v2"},
                {"groupVersion": "autoscaling/v1", "version": "v1"},
            ],
            "preferredVersion": {"groupVersion": "autoscaling/v2", "version": "v2"},
        })
    );
    assert_eq!(group(&all[1])["kind"], "APIGroup");
    assert_eq!(api_versions(&all, "h:1")["versions"], json!(["v1"]));
}

#[test]
fn a_resource_is_followed_by_its_subresources() {
    let all = everything();
    let list = resource_list("apps", &all[1].versions[0]);
    assert_eq!(list["groupVersion"], "apps/v1");
    let deployments = row(&list, "deployments");
    assert_eq!(deployments["shortNames"], json!(["deploy"]));
    assert!(deployments["storageVersionHash"].is_string());
    let scale = row(&list, "deployments/scale");
    assert_eq!(
        *scale,
        json!({
            "name": "deployments/scale", "singularName": "", "namespaced": true, "kind": "Scale",
            "group": "autoscaling", "version": "v1", "verbs": ["get", "patch", "update"],
        })
    );
    assert_eq!(row(&list, "deployments/status").get("group"), None);
}

#[test]
fn a_definition_declares_its_resource() {
    let boat = boat();
    assert_eq!((&*boat.singular, boat.namespaced), ("boat", false));
    assert_eq!(boat.short_names, ["bo"]);
    assert_eq!(boat.verbs.len(), 8);
    let names: Vec<&str> = boat.subresources.iter().map(|s| &*s.name).collect();
    assert_eq!(names, ["status", "scale"]);
    assert_eq!(
        (&*boat.subresources[0].group, &*boat.subresources[0].kind),
        ("tide.dev", "Boat")
    );
    assert_eq!(boat.subresources[1].group, "autoscaling");
}

#[test]
fn what_is_not_stored_has_no_storage_version() {
    let all = everything();
    let list = resource_list("", &all[0].versions[0]);
    assert_eq!(row(&list, "bindings").get("storageVersionHash"), None);
}

#[test]
fn the_aggregated_form_splits_core_from_the_rest() {
    let all = everything();
    let core = aggregated(&all, true);
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
    assert_eq!(core["items"][0]["metadata"], json!({}));
    let rest = aggregated(&all, false);
    assert_eq!(rest["items"][0]["metadata"]["name"], "apps");
    let resources = rest["items"][0]["versions"][0]["resources"]
        .as_array()
        .unwrap();
    let deployments = resources
        .iter()
        .find(|r| r["resource"] == "deployments")
        .unwrap();
    assert_eq!(deployments["scope"], "Namespaced");
    assert_eq!(
        deployments["subresources"][0]["responseKind"],
        json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
    );
}

#[test]
fn the_etag_follows_the_content() {
    let mut all = everything();
    let before = Document::new(&aggregated(&all, false));
    assert_eq!(before, Document::new(&aggregated(&everything(), false)));
    assert!(before.etag.starts_with('"') && before.etag.ends_with('"'));
    all[1].versions[0].resources[0].short_names.push("x".into());
    assert_ne!(before.etag, Document::new(&aggregated(&all, false)).etag);
}
