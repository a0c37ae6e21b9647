//! The server: whether it answers, to whom, and whether it is ready.

use serde_json::{Value, json};

use super::Finding;
use crate::{
    ask::{cluster::Cluster, read},
    exit::Failure,
};

/// Asks the server; whether it answers to these credentials.
pub(super) async fn check(cluster: &Cluster) -> (Vec<Finding>, bool) {
    let mut findings = Vec::new();
    match cluster.client.apiserver_version().await {
        Ok(version) => {
            let says = format!(
                "{} answers: Kubernetes {}",
                cluster.address, version.git_version
            );
            findings.push(Finding::ok("reachable", says));
        }
        // Somebody who may not even ask for the version was reached nevertheless.
        Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => {
            findings.push(Finding::ok(
                "reachable",
                format!("{} answers", cluster.address),
            ));
        }
        Err(error) => {
            findings.push(told("reachable", &cluster.failed("the version", &error)));
            return (findings, false);
        }
    }
    let (who, known) = match whoami(cluster).await {
        Ok(name) => (Finding::ok("credentials", format!("you are {name}")), true),
        Err(error) => (
            told("credentials", &cluster.failed("who you are", &error)),
            false,
        ),
    };
    findings.push(who);
    findings.push(ready(cluster).await);
    (findings, known)
}

/// There is no cluster to ask; that is no failure if nobody named one.
pub(super) fn unnamed(failure: &Failure, named: bool) -> Finding {
    let finding = told("reachable", failure);
    if named {
        finding
    } else {
        Finding::note(
            "reachable",
            format!("not asked: {}", failure.why()),
            &finding.hint,
        )
    }
}

async fn whoami(cluster: &Cluster) -> Result<String, kube::Error> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header("content-type", "application/json")
        .body(review.to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    let answer: Value = match cluster.client.request(request).await {
        // An old server, which has no such review, tells by what it refuses.
        Err(kube::Error::Api(status)) if status.code == 404 => {
            read::get(&cluster.client, "/api").await?;
            return Ok("somebody whom the server knows".to_owned());
        }
        answer => answer?,
    };
    let name = answer["status"]["userInfo"]["username"].as_str();
    Ok(name.unwrap_or("somebody without a name").to_owned())
}

async fn ready(cluster: &Cluster) -> Finding {
    let request = http::Request::get("/readyz").body(Vec::new());
    let asked = match request {
        Ok(request) => cluster.client.request_text(request).await,
        Err(error) => Err(kube::Error::HttpError(error)),
    };
    match asked {
        Ok(_) => Finding::ok("ready", "it is ready to serve"),
        Err(error) => told("ready", &cluster.failed("whether it is ready", &error)),
    }
}

fn told(name: &str, failure: &Failure) -> Finding {
    Finding::failed(name, failure.to_string(), failure.advice())
}
