//! Checks of the objects in the cluster, derived from the report of `neap status`.

use neap_kit::{
    area::{Area, AreaKind, Finding},
    clock::Clock,
    explain::Verdict,
};

use crate::{
    areas,
    inspect::{
        cluster::Cluster,
        status::{
            CLAIMS, ClusterSnapshot, NODES, ObjectStatus, PODS, SERVICES, StatusReport, WORKLOADS,
            report,
        },
    },
};

/// Hint for objects that the user may not read.
const PERMISSION_HINT: &str = "request a role that may read them, or check as another user";
/// Objects with problems that are listed by name, per kind.
const MAX_LISTED: usize = 5;

/// Checks all namespaces.
pub(super) async fn check(cluster: &Cluster) -> Vec<Finding> {
    match ClusterSnapshot::read(cluster, None).await {
        Ok(snapshot) => findings(&report(&snapshot, Clock::system().now())),
        Err(failure) => vec![Finding::failed(
            "objects",
            failure.to_string(),
            failure.advice(),
        )],
    }
}

fn findings(report: &StatusReport) -> Vec<Finding> {
    let mut findings = Vec::new();
    findings.extend(related_hidden(report));
    let well_services = "all with ready endpoints";
    let mut lists = vec![
        ("nodes", &report.nodes, NODES, "ready".to_owned()),
        (
            "workloads",
            &report.workloads,
            WORKLOADS,
            "all ready".to_owned(),
        ),
        ("pods", &report.pods, PODS, "no problems".to_owned()),
        (
            "services",
            &report.services,
            SERVICES,
            well_services.to_owned(),
        ),
        ("claims", &report.claims, CLAIMS, "all bound".to_owned()),
    ];
    let names: Vec<_> = report
        .areas
        .0
        .iter()
        .map(|(kind, _)| [kind.resource.name])
        .collect();
    for ((kind, objects), name) in report.areas.0.iter().zip(&names) {
        // Not every server has the kinds of every area.
        if !objects.is_empty() {
            lists.push((kind.resource.plural, objects, name, no_problems(kind)));
        }
    }
    for (name, lines, kinds, well) in lists {
        findings.extend(findings_of_list(report, name, lines, kinds, &well));
    }
    findings
}

/// What is said about the objects of one list: in one line if all are well.
fn findings_of_list(
    report: &StatusReport,
    name: &str,
    lines: &[ObjectStatus],
    kinds: &[&str],
    well: &str,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let unseen = report.hidden(kinds);
    let (old, with_problems): (Vec<_>, Vec<_>) = lines
        .iter()
        .filter(|line| !line.is_fine())
        .partition(|line| line.is_superseded);
    if !unseen.is_empty() {
        let message = format!("skipped: you may not read {}", unseen.join(", "));
        findings.push(Finding::note(name, message, PERMISSION_HINT));
    } else if lines.is_empty() && name == "nodes" {
        let hint = "pods stay pending until a node joins";
        findings.push(Finding::note(name, "none", hint));
    } else if with_problems.is_empty() {
        let message = match (name, lines.len()) {
            ("pods" | "claims", _) => well.to_owned(),
            (_, 0) => "none".to_owned(),
            (_, count) => format!("{count}, {well}"),
        };
        findings.push(Finding::ok(name, message));
    }
    findings.extend(
        with_problems
            .iter()
            .take(MAX_LISTED)
            .map(|line| finding(name, line)),
    );
    findings.extend(more(name, with_problems.len()));
    if !old.is_empty() {
        let message = format!("{} of releases that newer ones have replaced", old.len());
        let hint = "they need nothing; list them with neap status -A";
        findings.push(Finding::note(name, message, hint));
    }
    findings
}

/// Says how many objects with problems are not listed by name, if there are any.
fn more(name: &str, with_problems: usize) -> Option<Finding> {
    let count = with_problems
        .checked_sub(MAX_LISTED)
        .filter(|count| *count > 0)?;
    let message = format!("and {count} more");
    let hint = "list them with neap status -A";
    Some(Finding::note(name, message, hint))
}

/// Says which kinds that other findings are derived from the user may not read, if there are any.
fn related_hidden(report: &StatusReport) -> Option<Finding> {
    let hidden = report.hidden(&["EndpointSlice", "StorageClass", "Event"]);
    if hidden.is_empty() {
        return None;
    }
    let message = format!("you may not read {}", hidden.join(", "));
    Some(Finding::note("permissions", message, PERMISSION_HINT))
}

/// What is said of a kind whose objects have no problems.
fn no_problems(kind: &AreaKind) -> String {
    let mut areas = areas::all().filter(|area| area.check.is_some());
    let of_kind = |area: &Area| area.kinds.iter().any(|one| one.resource == kind.resource);
    match areas.find(of_kind) {
        Some(area) => format!("no problems; neap check {} shows details", area.name),
        None => "no problems".to_owned(),
    }
}

fn finding(name: &str, line: &ObjectStatus) -> Finding {
    let kind = line.kind.to_ascii_lowercase();
    let (prefix, option) = if line.namespace.is_empty() {
        (String::new(), String::new())
    } else {
        (
            format!("{}/", line.namespace),
            format!(" -n {}", line.namespace),
        )
    };
    let why: Vec<_> = line.why.iter().take(2).map(String::as_str).collect();
    let why = why.join("; ");
    let message = format!("{prefix}{}: {why}", line.name);
    let hint = format!("neap explain {kind}/{}{option}", line.name);
    if line.verdict == Verdict::Degraded {
        Finding::failed(name, message, &hint)
    } else {
        Finding::note(name, message, &hint)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use neap_kit::area::Level;

    use super::*;

    fn levels(objects: Vec<serde_json::Value>) -> Vec<(String, Level)> {
        let snapshot = ClusterSnapshot {
            objects: objects.into(),
            ..ClusterSnapshot::default()
        };
        let report = report(&snapshot, "2026-01-01T12:00:00Z".parse().unwrap());
        findings(&report)
            .into_iter()
            .map(|one| (one.name, one.level))
            .collect()
    }

    #[test]
    fn troubled_objects_fail_and_progressing_ones_are_notes() {
        let well = levels(vec![
            json!({"kind": "Node", "metadata": {"name": "here"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        ]);
        assert!(
            well.iter().all(|(_, level)| *level == Level::Ok) && well.len() == 5,
            "{well:?}"
        );
        let bad = levels(vec![
            json!({"kind": "Node", "metadata": {"name": "here"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}),
            json!({"kind": "Deployment", "metadata": {"name": "web"}}),
            json!({"kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}}}),
        ]);
        for expected in [
            ("nodes", Level::Failed),
            ("workloads", Level::Note),
            ("services", Level::Failed),
            ("pods", Level::Ok),
        ] {
            assert!(
                bad.contains(&(expected.0.to_owned(), expected.1)),
                "{expected:?} {bad:?}"
            );
        }
        assert_eq!(levels(vec![])[0], ("nodes".to_owned(), Level::Note));
    }

    #[test]
    fn a_rejected_release_that_is_not_the_newest_is_at_most_a_note() {
        let release = |name: &str, day: u32| {
            json!({
                "kind": "ReleasePayload", "apiVersion": "release.openshift.io/v1alpha1",
                "metadata": {
                    "name": name, "namespace": "ocp",
                    "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z"),
                },
                "spec": {"payloadCoordinates": {"streamName": "nightly"}},
                "status": {"conditions": [{
                    "type": "PayloadRejected", "status": "True", "reason": "x", "message": "jobs failed",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }]},
            })
        };
        let of_releases = |objects| -> Vec<Level> {
            let all = levels(objects).into_iter();
            let own = all.filter(|(name, _)| name == "releasepayloads");
            own.map(|(_, level)| level).collect()
        };
        assert_eq!(of_releases(vec![release("n-1", 1)]), [Level::Failed]);
        let both = of_releases(vec![release("n-1", 1), release("n-2", 2)]);
        assert_eq!(both, [Level::Failed, Level::Note]);
    }

    #[test]
    fn kinds_that_may_not_be_read_are_notes() {
        let snapshot = ClusterSnapshot {
            hidden: vec!["Pod", "Job", "Event"],
            ..ClusterSnapshot::default()
        };
        let found = findings(&report(&snapshot, "2026-01-01T12:00:00Z".parse().unwrap()));
        let notes: Vec<_> = found
            .iter()
            .filter(|one| one.level == Level::Note && one.message.contains("you may not read"))
            .map(|one| &*one.name)
            .collect();
        assert_eq!(notes, ["permissions", "workloads", "pods"]);
    }

    #[test]
    fn a_pod_that_terminates_in_time_is_ok() {
        let leaving = |due: &str| {
            let levels = levels(vec![json!({
                "kind": "Pod", "metadata": {"name": "a", "namespace": "b", "deletionTimestamp": due},
                "status": {"phase": "Running"},
            })]);
            levels
                .into_iter()
                .find(|(name, _)| name == "pods")
                .unwrap()
                .1
        };
        assert_eq!(leaving("2026-01-01T12:00:20Z"), Level::Ok);
        assert_eq!(leaving("2026-01-01T11:59:50Z"), Level::Ok);
        assert_eq!(leaving("2026-01-01T11:55:00Z"), Level::Note);
    }
}
