use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::{
    ClusterDeployment, HiveOptions,
    decide::{FINALIZER, NextAction, decide},
    definitions,
};

fn deployment(name: &str) -> ClusterDeployment {
    let spec =
        json!({"clusterName": name, "baseDomain": "example.com", "provisioning": {"x": [1]}});
    let mut deployment = ClusterDeployment::new("cluster", serde_json::from_value(spec).unwrap());
    deployment.metadata.namespace = Some("aro-1".to_owned());
    deployment.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    deployment
}

#[test]
fn a_deployment_is_taken_over_installed_settled_and_kept() {
    let options = HiveOptions {
        settle: Duration::from_mins(1),
        ..HiveOptions::default()
    };
    let mut blue = deployment("blue");
    blue.metadata.finalizers = None;
    assert_eq!(decide(&blue, &options, false), NextAction::AddFinalizer);
    let mut blue = deployment("blue");
    assert_eq!(decide(&blue, &options, false), NextAction::Install);
    blue.spec.installed = true;
    blue.status.get_or_insert_default().installed_timestamp = "2026-01-01T00:00:00Z".to_owned();
    let settles = "2026-01-01T00:01:00Z".parse().unwrap();
    assert_eq!(decide(&blue, &options, false), NextAction::Settle(settles));
    assert_eq!(decide(&blue, &options, true), NextAction::Keep);
    blue.metadata.deletion_timestamp = Some(Time("2026-01-02T00:00:00Z".parse().unwrap()));
    assert_eq!(decide(&blue, &options, true), NextAction::Deprovision);
    blue.metadata.finalizers = None;
    assert_eq!(decide(&blue, &options, true), NextAction::Nothing);
}

#[test]
fn faults_are_chosen_by_name() {
    let options = HiveOptions {
        refuse: vec![("red".to_owned(), "AzureZonalAllocationFailed".to_owned())],
        hang: vec!["green".to_owned()],
        ..HiveOptions::default()
    };
    let refused = NextAction::Refuse("AzureZonalAllocationFailed".to_owned());
    assert_eq!(decide(&deployment("red"), &options, false), refused);
    assert_eq!(
        decide(&deployment("green"), &options, false),
        NextAction::Nothing
    );
}

#[test]
fn fields_that_the_emulator_does_not_use_are_kept() {
    let text = serde_json::to_value(deployment("blue")).unwrap();
    assert_eq!(text["spec"]["provisioning"], json!({"x": [1]}));
    let kinds = definitions().into_iter().map(|it| it.spec.names.kind);
    let expected = [
        "ClusterDeployment",
        "SyncSet",
        "SelectorSyncSet",
        "ClusterSync",
    ];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
}

#[test]
fn lists_show_more_than_names() {
    let columns = |kind: &str| -> Vec<String> {
        let mut definitions = definitions().into_iter();
        let definition = definitions.find(|it| it.spec.names.kind == kind).unwrap();
        let columns = definition.spec.versions[0]
            .additional_printer_columns
            .clone();
        columns.unwrap().into_iter().map(|it| it.name).collect()
    };
    let expected = ["ClusterName", "Installed", "Platform", "Version", "Age"];
    assert_eq!(columns("ClusterDeployment"), expected);
    assert_eq!(columns("ClusterSync"), ["Failed", "Age"]);
    assert_eq!(columns("SyncSet"), ["Age"]);
}
