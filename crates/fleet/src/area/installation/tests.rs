use std::sync::Arc;

use neap_kit::{
    explain::{Facts, explain},
    key::Key,
    why::Catalogue,
};
use serde_json::json;

use super::*;

const NOW: &str = "2026-01-01T12:00:00Z";

/// The verdict and the reasons of `neap explain` about a ClusterDeployment with these conditions.
fn explained(installed: bool, conditions: &[(&str, &str)]) -> (Verdict, Vec<String>) {
    let conditions: Vec<_> = conditions
        .iter()
        .map(
            |(name, status)| json!({"type": name, "status": status, "reason": "R", "message": "m"}),
        )
        .collect();
    let object = json!({
        "metadata": {"name": "cluster", "namespace": "aro-1"},
        "spec": {"clusterName": "blue", "installed": installed},
        "status": {"conditions": conditions},
    });
    let now = NOW.parse().unwrap();
    let explanation = explain(&Facts {
        kind: "ClusterDeployment".into(),
        key: Key::new("aro-1", "cluster"),
        assessment: assess(&object, now),
        object: Some(object),
        related: Arc::default(),
        unreadable: Vec::new(),
        events: Vec::new(),
        related_events: Arc::default(),
        operations: Vec::new(),
        catalogue: Catalogue::default(),
        now,
    });
    (explanation.verdict, explanation.why)
}

#[test]
fn every_problem_is_covered_and_listed_once() {
    for (at, name) in PROBLEMS.iter().enumerate() {
        assert!(COVERED.contains(name), "{name}");
        assert!(!PROBLEMS[..at].contains(name), "{name}");
    }
}

#[test]
fn a_condition_that_reports_a_problem_is_well_when_false_or_unknown() {
    for name in PROBLEMS {
        for status in ["False", "Unknown"] {
            let found = explained(true, &[(name, status)]);
            assert_eq!(found, (Verdict::Healthy, Vec::new()), "{name} {status}");
        }
        let found = explained(true, &[(name, "True")]);
        let why = vec![format!("{name} is True (R): m")];
        assert_eq!(found, (Verdict::Degraded, why));
    }
}

#[test]
fn what_must_hold_is_bad_when_false() {
    let why = |text: &str| vec![text.to_owned()];
    for (conditions, expected) in [
        (
            vec![
                ("RequirementsMet", "True"),
                ("Ready", "True"),
                ("Provisioned", "True"),
            ],
            (Verdict::Healthy, Vec::new()),
        ),
        (
            vec![("RequirementsMet", "False")],
            (Verdict::Degraded, why("RequirementsMet is False (R): m")),
        ),
        (
            vec![("Ready", "False")],
            (Verdict::Degraded, why("Ready is False (R): m")),
        ),
        // A cluster that hibernates is not ready, and does not answer.
        (
            vec![
                ("Hibernating", "True"),
                ("Ready", "False"),
                ("Unreachable", "True"),
            ],
            (Verdict::Healthy, Vec::new()),
        ),
    ] {
        assert_eq!(explained(true, &conditions), expected, "{conditions:?}");
    }
}

#[test]
fn a_cluster_that_is_being_installed_is_progressing_until_hive_gives_up() {
    let initial = [
        ("Provisioned", "Unknown"),
        ("Ready", "Unknown"),
        ("Unreachable", "Unknown"),
    ];
    let waits = "the cluster is not installed yet: m".to_owned();
    assert_eq!(
        explained(false, &initial),
        (Verdict::Progressing, vec![waits])
    );
    assert_eq!(explained(false, &[]).0, Verdict::Progressing);
    let failed = explained(false, &[("ProvisionFailed", "True")]);
    assert_eq!(failed.0, Verdict::Degraded);
}

#[test]
fn the_summary_names_the_cluster_and_its_state() {
    let of = |spec: Value, conditions: Value| {
        let object = json!({"metadata": {}, "spec": spec, "status": {"conditions": conditions}});
        summary(&object, NOW.parse().unwrap())
    };
    let installed = json!({"clusterName": "blue", "installed": true});
    assert_eq!(of(installed, json!([])), "the cluster blue is installed");
    let failed = json!([{"type": "ProvisionFailed", "status": "True"}]);
    let new = json!({"clusterName": "blue"});
    assert_eq!(
        of(new.clone(), failed),
        "the cluster blue could not be installed"
    );
    assert_eq!(of(new, json!([])), "the cluster blue is being installed");
}
