//! Requests to a provider.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{Method, Request, Response};
use serde_json::{Value, json};
use tokio::time::sleep;

use std::time::Duration;

use super::WAIT_TIMEOUT;
use crate::{client::Connection, stopwatch::Stopwatch};

/// The subscription that `neap up` has from the start.
pub(super) const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000001";
/// The version of the API.
const API: &str = "api-version=2025-07-25";

/// The path of a cluster, or of something below it.
pub(super) fn cluster_path(name: &str, below: &str) -> String {
    format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/bench/providers/Microsoft.RedHatOpenShift/openShiftClusters/{name}{below}?{API}"
    )
}

/// The path of the clusters of the subscription.
pub(super) fn clusters_path() -> String {
    format!(
        "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.RedHatOpenShift/openShiftClusters?{API}"
    )
}

/// The body of a PUT; the number distinguishes what must be unique.
pub(super) fn cluster_body(name: &str, number: usize) -> Value {
    let group = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups");
    let subnet = |of: &str| {
        format!("{group}/network/providers/Microsoft.Network/virtualNetworks/fleet/subnets/{of}")
    };
    json!({
        "location": "local",
        "properties": {
            "clusterProfile": {
                "domain": name,
                "resourceGroupId": format!("{group}/aro-{name}"),
            },
            "servicePrincipalProfile": {
                "clientId": format!("00000000-0000-0000-0000-{number:012}"),
                "clientSecret": "of the bench",
            },
            "networkProfile": {"podCidr": "10.128.0.0/14", "serviceCidr": "172.30.0.0/16"},
            "masterProfile": {"vmSize": "Standard_D8s_v3", "subnetId": subnet("master")},
            "workerProfiles": [{
                "name": "worker", "vmSize": "Standard_D4s_v3", "diskSizeGB": 128,
                "subnetId": subnet("worker"), "count": 3,
            }],
            "apiserverProfile": {"visibility": "Public"},
            "ingressProfiles": [{"name": "default", "visibility": "Public"}],
        },
    })
}

/// The document of a version that can be installed.
pub(super) fn version_body() -> Value {
    json!({"properties": {
        "version": "4.19.9", "enabled": true, "default": true,
        "openShiftPullspec": "registry.example.com/release:1",
        "installerPullspec": "registry.example.com/installer:1",
    }})
}

/// Sends a JSON body.
pub(super) async fn send(
    api: &mut Connection,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<Response<Bytes>> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    api.exchange(request, body.to_string()).await
}

/// Asks for a cluster. Returns the path of the status of its operation.
pub(super) async fn create(api: &mut Connection, name: &str, number: usize) -> Result<String> {
    let path = cluster_path(name, "");
    let answer = send(api, Method::PUT, &path, &cluster_body(name, number)).await?;
    if answer.status() != 201 {
        bail!(
            "PUT of {name}: {} {}",
            answer.status(),
            String::from_utf8_lossy(answer.body())
        );
    }
    let link = answer.headers().get("azure-asyncoperation");
    let link = link.context("no operation")?.to_str()?;
    path_of(link)
}

/// The path and the query of a link.
pub(super) fn path_of(link: &str) -> Result<String> {
    let link: http::Uri = link.parse()?;
    let path = link.path_and_query().context("a link without a path")?;
    Ok(path.to_string())
}

/// The id in the path of the status of an operation.
pub(super) fn operation_id(path: &str) -> Result<&str> {
    let path = path.split('?').next().unwrap_or_default();
    let (_, id) = path.rsplit_once('/').context("no operation")?;
    Ok(id)
}

/// Waits for the end of an operation, which must succeed.
pub(super) async fn succeeded(api: &mut Connection, operation: &str) -> Result<()> {
    let watch = Stopwatch::start();
    loop {
        let answer = api.send(Method::GET, operation, "").await?.success()?;
        match answer["status"].as_str().unwrap_or_default() {
            "Succeeded" => return Ok(()),
            "Failed" | "Canceled" => bail!("the operation has failed: {answer}"),
            _ if watch.elapsed() > WAIT_TIMEOUT => bail!("the operation has no end: {answer}"),
            _ => sleep(Duration::from_millis(20)).await,
        }
    }
}
