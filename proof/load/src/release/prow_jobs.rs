//! The process that gives verdicts, beside very many ProwJobs.

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{
    background::{BackgroundProcess, free_address},
    imports::install,
};
use crate::{
    bulk::{BulkRequest, send_all},
    measure::{CONNECTIONS, Figure},
    objects::served,
    process::{peak_bytes, resident_bytes},
    server::Server,
};

const JOBS: usize = 100_000;
/// Bytes of each as JSON.
const SIZE: usize = 8 << 10;
const COLLECTION: &str = "/apis/prow.k8s.io/v1/namespaces/default/prowjobs";
/// Time until the process has read all.
const WAIT_TIMEOUT: Duration = Duration::from_mins(5);
/// Time after the start for a process to release memory.
const RELEASE_TIME: Duration = Duration::from_secs(5);

/// The memory of the process that follows 100,000 ProwJobs, above that of one that follows none.
pub async fn prow_jobs(neap: &Path) -> Result<Vec<Figure>> {
    let server = Server::start(neap, None)?;
    install(neap, "release", server.kubeconfig())?;
    let client = server.client()?;
    let mut connection = client.connect().await?;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = connection.send(Method::POST, definitions, definition().to_string());
    made.await?.success()?;
    served(&mut connection, COLLECTION).await?;
    let (without, _) = follow(neap, server.kubeconfig()).await?;
    send_all(&client, CONNECTIONS, JOBS, |number| BulkRequest {
        method: Method::POST,
        path: COLLECTION.to_owned(),
        content_type: "application/json",
        body: job(number).to_string(),
    })
    .await?;
    let path = format!("{COLLECTION}/{}", name(7));
    // The server has closed connections that were idle for so long.
    let mut connection = client.connect().await?;
    let size = connection.send(Method::GET, &path, "").await?.body.len();
    ensure!(size >= SIZE, "a ProwJob has {size} bytes");
    let (with, peak) = follow(neap, server.kubeconfig()).await?;
    Ok(vec![
        ("cache", with - without),
        ("process", with),
        ("peak", peak),
        ("bytes of a ProwJob", size as f64),
    ])
}

/// Memory of the process once it has read everything and has nothing to do, and its peak until then.
async fn follow(neap: &Path, kubeconfig: &Path) -> Result<(f64, f64)> {
    let listen = free_address()?;
    let mut command = Command::new(neap);
    command.args(["release", "payloads", "--leader-elect=false"]);
    command.args(["--release-namespace", "default", "--kubeconfig"]);
    command
        .arg(kubeconfig)
        .arg("--listen")
        .arg(listen.to_string());
    let mut process = BackgroundProcess::start(&mut command, listen)?;
    process.ready("/readyz", WAIT_TIMEOUT).await?;
    sleep(RELEASE_TIME).await;
    Ok((
        resident_bytes(process.id())? as f64,
        peak_bytes(process.id())? as f64,
    ))
}

fn name(number: usize) -> String {
    format!("0b5e2a1c-3d4f-11f0-8f3a-{number:012}")
}

/// A ProwJob as Prow makes it: most of it is the pod.
fn job(number: usize) -> Value {
    let release = number / 20;
    let tag = format!("4.21.0-0.nightly-2026-01-02-{release:06}");
    let job = format!(
        "periodic-ci-openshift-release-master-nightly-4.21-e2e-{}",
        number % 20
    );
    let mut object = json!({
        "apiVersion": "prow.k8s.io/v1", "kind": "ProwJob",
        "metadata": {
            "name": name(number),
            "labels": {
                "prow.k8s.io/job": job, "prow.k8s.io/type": "periodic", "created-by-prow": "true",
                "release.openshift.io/verify": "true", "release.openshift.io/payload": tag,
            },
            "annotations": {
                "prow.k8s.io/job": job, "release.openshift.io/source": "ocp/4.21-art-latest",
                "release.openshift.io/tag": tag,
            },
        },
        "spec": {
            "type": "periodic", "agent": "kubernetes", "cluster": "build05", "namespace": "ci", "job": job,
            "pod_spec": {"containers": [{"name": "", "image": "ci-operator:latest", "env": []}]},
        },
        "status": {
            "startTime": "2026-01-02T03:04:05Z", "pendingTime": "2026-01-02T03:04:10Z",
            "completionTime": "2026-01-02T04:04:05Z", "state": "success", "description": "Job succeeded.",
            "url": format!("https://prow.example.com/view/gs/test-platform-results/logs/{job}/{number}"),
            "build_id": format!("{:019}", 1_900_000_000_000_000_000_u64 + number as u64),
        },
    });
    let missing = SIZE.saturating_sub(object.to_string().len());
    let text = format!("{number:08}").repeat(missing / 8);
    object["spec"]["pod_spec"]["containers"][0]["env"] =
        json!([{"name": "UNRESOLVED_CONFIG", "value": text}]);
    object
}

pub(super) fn definition() -> Value {
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "prowjobs.prow.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/test-infra/pull/8669"},
        },
        "spec": {
            "group": "prow.k8s.io", "scope": "Namespaced",
            "names": {"kind": "ProwJob", "plural": "prowjobs"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
        },
    })
}
