//! The installation of a cluster: what `neap status` and `neap explain` say about a ClusterDeployment of Hive.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use neap_kit::{
    area::{AreaKind, ResourceType},
    explain::{Assessment, Verdict},
};
use serde_json::Value;

pub(super) const KIND: AreaKind = AreaKind {
    resource: ResourceType::namespaced(
        "ClusterDeployment",
        "hive.openshift.io/v1",
        "clusterdeployments",
    ),
    title: "Clusters",
    key: "clusterDeployments",
    summary,
    assess,
    related: &[],
};

/// Hive's conditions that report a problem when they are True. It sets all of them on every ClusterDeployment, most
/// of them to False or Unknown.
const PROBLEMS: [&str; 18] = [
    "ProvisionStopped",
    "ProvisionFailed",
    "ClusterInstallStopped",
    "ClusterInstallFailed",
    "Unreachable",
    "AuthenticationFailure",
    "InstallerImageResolutionFailed",
    "InstallImagesNotResolved",
    "ClusterImageSetNotFound",
    "InstallLaunchError",
    "DeprovisionLaunchError",
    "DNSNotReady",
    "ControlPlaneCertificateNotFound",
    "IngressCertificateNotFound",
    "SyncSetFailed",
    "RelocationFailed",
    "AWSPrivateLinkFailed",
    "PrivateLinkFailed",
];

/// All conditions that the assessment covers: the problems, what must be True, and what is neither good nor bad.
const COVERED: &[&str] = &[
    "ProvisionStopped",
    "ProvisionFailed",
    "ClusterInstallStopped",
    "ClusterInstallFailed",
    "Unreachable",
    "AuthenticationFailure",
    "InstallerImageResolutionFailed",
    "InstallImagesNotResolved",
    "ClusterImageSetNotFound",
    "InstallLaunchError",
    "DeprovisionLaunchError",
    "DNSNotReady",
    "ControlPlaneCertificateNotFound",
    "IngressCertificateNotFound",
    "SyncSetFailed",
    "RelocationFailed",
    "AWSPrivateLinkFailed",
    "PrivateLinkFailed",
    "RequirementsMet",
    "ClusterInstallRequirementsMet",
    "Provisioned",
    "ClusterInstallCompleted",
    "Ready",
    "Hibernating",
    "ActiveAPIURLOverride",
    "AWSPrivateLinkReady",
    "PrivateLinkReady",
];

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn condition<'a>(deployment: &'a Value, name: &str) -> Option<&'a Value> {
    let all = deployment["status"]["conditions"].as_array()?;
    all.iter().find(|it| it["type"] == name)
}

fn has(deployment: &Value, name: &str, status: &str) -> bool {
    condition(deployment, name).is_some_and(|it| it["status"] == status)
}

/// What a condition says, such as `Unreachable is True (ErrorConnectingToCluster): no route`.
fn statement(condition: &Value) -> String {
    let (name, status) = (text(condition, "type"), text(condition, "status"));
    let reason = match text(condition, "reason") {
        "" => String::new(),
        reason => format!(" ({reason})"),
    };
    let message = match text(condition, "message") {
        "" => String::new(),
        message => format!(": {message}"),
    };
    format!("{name} is {status}{reason}{message}")
}

fn summary(deployment: &Value, _now: Timestamp) -> String {
    let name = text(&deployment["spec"], "clusterName");
    let state = match () {
        () if deployment["metadata"]["deletionTimestamp"].is_string() => "is being removed",
        () if is_asleep(deployment) => "hibernates",
        () if deployment["spec"]["installed"] == true => "is installed",
        () if has(deployment, "ProvisionFailed", "True") => "could not be installed",
        () => "is being installed",
    };
    format!("the cluster {name} {state}")
}

fn is_asleep(deployment: &Value) -> bool {
    has(deployment, "Hibernating", "True")
}

#[expect(clippy::unnecessary_wraps, reason = "kinds may have none")]
fn assess(deployment: &Value, _now: Timestamp) -> Option<Assessment> {
    let mut assessment = Assessment {
        verdict: Verdict::Healthy,
        why: Vec::new(),
        advice: Vec::new(),
        covers: COVERED,
    };
    let mut add = |verdict: Verdict, why: String| {
        assessment.verdict = assessment.verdict.or_worse(verdict);
        assessment.why.push(why);
    };
    let is_installed = deployment["spec"]["installed"] == true;
    // A cluster that hibernates does not answer.
    let expected = |name: &str| name == "Unreachable" && is_asleep(deployment);
    for name in PROBLEMS.iter().filter(|name| !expected(name)) {
        if let Some(problem) = condition(deployment, name).filter(|it| it["status"] == "True") {
            add(Verdict::Degraded, statement(problem));
        }
    }
    for name in ["RequirementsMet", "ClusterInstallRequirementsMet"] {
        if let Some(missing) = condition(deployment, name).filter(|it| it["status"] == "False") {
            add(Verdict::Degraded, statement(missing));
        }
    }
    if is_installed {
        let not_ready = condition(deployment, "Ready").filter(|it| it["status"] == "False");
        if let Some(not_ready) = not_ready.filter(|_| !is_asleep(deployment)) {
            add(Verdict::Degraded, statement(not_ready));
        }
    } else {
        let progress = condition(deployment, "Provisioned")
            .or_else(|| condition(deployment, "ClusterInstallCompleted"));
        let message = progress.map_or("", |it| text(it, "message"));
        let why = if message.is_empty() {
            "the cluster is not installed yet".to_owned()
        } else {
            format!("the cluster is not installed yet: {message}")
        };
        add(Verdict::Progressing, why);
    }
    Some(assessment)
}
