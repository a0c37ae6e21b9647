//! What runs on the cluster: made of the survey that `neap status` shows.

use neap_kit::{clock::Clock, explain::Verdict};

use super::Finding;
use crate::ask::{
    cluster::Cluster,
    status::{Line, Seen, Survey, survey},
};

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
    if !survey.hidden.is_empty() {
        let says = format!("{} may not be read", survey.hidden.join(", "));
        let hint = "ask for a role that may, or check as somebody else";
        findings.push(Finding::note("rights", says, hint));
    }
    if survey.nodes.is_empty() && !survey.hidden.contains(&"Node") {
        let hint = "pods run once a node has joined";
        findings.push(Finding::note("nodes", "there is none", hint));
    }
    for (name, lines, well) in [
        ("nodes", &survey.nodes, "ready"),
        ("workloads", &survey.workloads, "with all their pods"),
        ("pods", &survey.pods, "all as they should be"),
        ("services", &survey.services, "with somebody behind each"),
        ("claims", &survey.claims, "all bound"),
    ] {
        let unwell: Vec<_> = lines
            .iter()
            .filter(|line| line.verdict != Verdict::Well)
            .collect();
        if unwell.is_empty() && !(name == "nodes" && lines.is_empty()) {
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
}
