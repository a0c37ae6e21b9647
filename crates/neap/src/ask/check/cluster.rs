//! What runs on the cluster: made of the survey that `neap status` shows.

use neap_kit::{clock::Clock, explain::Verdict};

use super::Finding;
use crate::ask::{
    cluster::Cluster,
    status::{CLAIMS, Line, NODES, PODS, SERVICES, SLEEPERS, Seen, Survey, WORKLOADS, survey},
};

/// What to do about what may not be read.
const RIGHTS: &str = "ask for a role that may, or check as somebody else";
/// So many of a kind are named.
const NAMED: usize = 5;

/// Looks at all namespaces.
pub(super) async fn check(cluster: &Cluster) -> Vec<Finding> {
    match Seen::read(cluster, None).await {
        Ok(seen) => judge(&survey(&seen, Clock::system().now())),
        Err(failure) => vec![Finding::failed(
            "objects",
            failure.to_string(),
            failure.advice(),
        )],
    }
}

fn judge(survey: &Survey) -> Vec<Finding> {
    let mut findings = Vec::new();
    let beside = survey.hidden(&["EndpointSlice", "StorageClass", "Event"]);
    if !beside.is_empty() {
        let says = format!("{} may not be read", beside.join(", "));
        findings.push(Finding::note("rights", says, RIGHTS));
    }
    for (name, lines, kinds, well) in [
        ("nodes", &survey.nodes, NODES, "ready"),
        (
            "workloads",
            &survey.workloads,
            WORKLOADS,
            "with all their pods",
        ),
        ("pods", &survey.pods, PODS, "all as they should be"),
        (
            "services",
            &survey.services,
            SERVICES,
            "with somebody behind each",
        ),
        (
            "sleepers",
            &survey.sleepers,
            SLEEPERS,
            "looked after; neap check idle says more",
        ),
        ("claims", &survey.claims, CLAIMS, "all bound"),
    ] {
        if name == "sleepers" && lines.is_empty() {
            // Not every server has the kind.
            continue;
        }
        let unseen = survey.hidden(kinds);
        let unwell: Vec<_> = lines.iter().filter(|line| !line.is_fine()).collect();
        if !unseen.is_empty() {
            let says = format!("not looked at: {} may not be read", unseen.join(", "));
            findings.push(Finding::note(name, says, RIGHTS));
        } else if lines.is_empty() && name == "nodes" {
            let hint = "pods run once a node has joined";
            findings.push(Finding::note(name, "there is none", hint));
        } else if unwell.is_empty() {
            let says = match (name, lines.len()) {
                ("pods" | "claims", _) => well.to_owned(),
                (_, 0) => "there is none".to_owned(),
                (_, count) => format!("{count}, {well}"),
            };
            findings.push(Finding::ok(name, says));
        }
        findings.extend(unwell.iter().take(NAMED).map(|line| told(name, line)));
        if unwell.len() > NAMED {
            let says = format!("and {} more", unwell.len() - NAMED);
            findings.push(Finding::note(name, says, "neap status -A shows them"));
        }
    }
    findings
}

fn told(name: &str, line: &Line) -> Finding {
    let kind = line.kind.to_ascii_lowercase();
    let (place, option) = if line.namespace.is_empty() {
        (String::new(), String::new())
    } else {
        (
            format!("{}/", line.namespace),
            format!(" -n {}", line.namespace),
        )
    };
    let why: Vec<_> = line.why.iter().take(2).map(String::as_str).collect();
    let why = why.join("; ");
    let says = format!("{place}{}: {why}", line.name);
    let hint = format!("neap explain {kind}/{}{option}", line.name);
    if line.verdict == Verdict::Troubled {
        Finding::failed(name, says, &hint)
    } else {
        Finding::note(name, says, &hint)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::Level, *};

    fn levels(objects: Vec<serde_json::Value>) -> Vec<(String, Level)> {
        let seen = Seen {
            objects: objects.into(),
            ..Seen::default()
        };
        let survey = survey(&seen, "2026-01-01T12:00:00Z".parse().unwrap());
        judge(&survey)
            .into_iter()
            .map(|one| (one.name, one.level))
            .collect()
    }

    #[test]
    fn trouble_fails_and_what_is_on_its_way_is_noted() {
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
    fn what_may_not_be_read_is_not_said_to_be_well() {
        let seen = Seen {
            hidden: vec!["Pod", "Job", "Event"],
            ..Seen::default()
        };
        let found = judge(&survey(&seen, "2026-01-01T12:00:00Z".parse().unwrap()));
        let notes: Vec<_> = found
            .iter()
            .filter(|one| one.level == Level::Note && one.says.contains("may not be read"))
            .map(|one| &*one.name)
            .collect();
        assert_eq!(notes, ["rights", "workloads", "pods"]);
    }

    #[test]
    fn a_pod_that_ends_in_time_is_no_news() {
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
