//! Checks of the server: reachability, credentials and readiness.

use serde_json::{Value, json};

use crate::{
    exit::Failure,
    inspect::{cluster::Cluster, read},
};
use neap_kit::area::Finding;

/// Runs the checks; also returns whether the server accepts the credentials.
pub(super) async fn check(cluster: &Cluster) -> (Vec<Finding>, bool) {
    let mut findings = Vec::new();
    match cluster.client.apiserver_version().await {
        Ok(version) => {
            let message = format!(
                "{} responds: Kubernetes {}",
                cluster.address, version.git_version
            );
            findings.push(Finding::ok("reachable", message));
        }
        // A server that refuses to report its version is reachable nevertheless.
        Err(kube::Error::Api(status)) if matches!(status.code, 401 | 403) => {
            findings.push(Finding::ok(
                "reachable",
                format!("{} responds", cluster.address),
            ));
        }
        Err(error) => {
            findings.push(failed_finding(
                "reachable",
                &cluster.failed("the version", &error),
            ));
            return (findings, false);
        }
    }
    let (who, known) = match whoami(cluster).await {
        Ok(name) => (
            Finding::ok("credentials", format!("authenticated as {name}")),
            true,
        ),
        Err(error) => (
            failed_finding("credentials", &cluster.failed("your user name", &error)),
            false,
        ),
    };
    findings.push(who);
    findings.push(ready(cluster).await);
    (findings, known)
}

/// Reports that no cluster is configured; only a note if the user did not name one.
pub(super) fn no_cluster(failure: &Failure, named: bool) -> Finding {
    let finding = failed_finding("reachable", failure);
    if named {
        finding
    } else {
        Finding::note(
            "reachable",
            format!("skipped: {}", failure.why()),
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
        // An old server has no SelfSubjectReview; whether it serves /api shows if the credentials work.
        Err(kube::Error::Api(status)) if status.code == 404 => {
            read::get(&cluster.client, "/api").await?;
            return Ok("a known user".to_owned());
        }
        answer => answer?,
    };
    let name = answer["status"]["userInfo"]["username"].as_str();
    Ok(name.unwrap_or("a user without a name").to_owned())
}

async fn ready(cluster: &Cluster) -> Finding {
    let request = http::Request::get("/readyz").body(Vec::new());
    let response = match request {
        Ok(request) => cluster.client.request_text(request).await,
        Err(error) => Err(kube::Error::HttpError(error)),
    };
    match response {
        Ok(_) => Finding::ok("ready", "the server is ready"),
        Err(error) => failed_finding("ready", &cluster.failed("the readiness", &error)),
    }
}

fn failed_finding(name: &str, failure: &Failure) -> Finding {
    Finding::failed(name, failure.to_string(), failure.advice())
}
