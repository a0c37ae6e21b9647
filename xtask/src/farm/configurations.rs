//! Farms with other settings than the example: what is rendered starts, and Bazel builds.

use std::{fs, process::Command};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{
    bazel::Bazel,
    platform::{COMPONENTS, Platform},
};
use crate::process;

/// Settings of some components.
struct Variant {
    name: &'static str,
    changes: Vec<(&'static str, Value)>,
    /// Further flags of Bazel.
    flags: Vec<String>,
}

/// Applies one variant after the other to the farm.
pub(super) fn start(platform: &Platform, bazel: &Bazel) -> Result<String> {
    let mut names = Vec::new();
    for variant in [queues(), instances(), own(platform)?, encrypted(platform)?] {
        build(&variant, platform, bazel).with_context(|| variant.name)?;
        names.push(variant.name);
    }
    Ok(names.join("; "))
}

fn build(variant: &Variant, platform: &Platform, bazel: &Bazel) -> Result<()> {
    for (component, change) in &variant.changes {
        platform.patch(component, &json!({"spec": change}))?;
    }
    platform.settled()?;
    bazel.take_flags(platform)?;
    bazel.clean()?;
    let salt = format!("--action_env=VARIANT={}", variant.name);
    let flags = variant.flags.iter().map(String::as_str);
    let arguments: Vec<_> = flags.chain([&*salt, "//..."]).collect();
    bazel.run("test", &arguments)?.flawless()?;
    for (component, change) in &variant.changes {
        platform.patch(component, &json!({"spec": undone(change)}))?;
    }
    platform.settled()?;
    bazel.take_flags(platform)
}

/// The fields of a change, each removed. Platforms stay: the example has one.
fn undone(change: &Value) -> Value {
    let fields = change.as_object().into_iter().flatten();
    fields
        .map(|(field, _)| (field.clone(), Value::Null))
        .collect()
}

/// Predeclared queues with size classes, other bounds, and all settings of workers.
fn queues() -> Variant {
    Variant {
        name: "queues, size classes, bounds and settings of workers",
        changes: vec![
            (
                "buildbarnscheduler/scheduler",
                json!({
                    "execution": {"defaultTimeoutSeconds": 600, "maximumTimeoutSeconds": 1200},
                    "noWorkersTimeoutSeconds": 60,
                    "predeclaredQueues": [
                        {"platform": [{"name": "OSFamily", "value": "linux"}]},
                        {"platform": [{"name": "OSFamily", "value": "windows"}], "sizeClasses": [1, 2, 4]},
                        {"instanceNamePrefix": "ci/main"},
                    ],
                }),
            ),
            (
                "buildbarnworker/linux",
                json!({
                    "inputDownloadConcurrency": 2, "outputUploadConcurrency": 3,
                    "cacheSize": "64Mi", "cacheFileCount": 500, "drain": {"timeoutSeconds": 120},
                    "environmentVariables": {"QUOTED": "a 'b' \"c\" \\ $D %s"},
                }),
            ),
        ],
        flags: Vec::new(),
    }
}

/// The configuration of a user for every component, in ConfigMaps: copies of what is rendered.
fn own(platform: &Platform) -> Result<Variant> {
    let mut changes = Vec::new();
    for component in COMPONENTS {
        let (kind, name) = component.split_once('/').context("a name without a kind")?;
        let workload = if kind == "buildbarnstorage" {
            "statefulset"
        } else {
            "deployment"
        };
        let workload = platform.get(&format!("{workload}/{name}"))?;
        let volumes = &workload["spec"]["template"]["spec"]["volumes"];
        let mut volumes = volumes.as_array().into_iter().flatten();
        let rendered = volumes.find_map(|it| it["configMap"]["name"].as_str());
        let rendered = rendered.context("a workload without a configuration")?;
        let rendered = platform.get(&format!("configmap/{rendered}"))?;
        let copy = format!("own-{name}");
        platform.apply(&json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": copy},
            "data": rendered["data"],
        }))?;
        changes.push((component, json!({"configMapName": copy})));
    }
    Ok(Variant {
        name: "a user's own configuration of every component",
        changes,
        flags: Vec::new(),
    })
}

/// A frontend with a certificate.
fn encrypted(platform: &Platform) -> Result<Variant> {
    let service = platform.get("service/frontend")?;
    let address = service["spec"]["clusterIP"].as_str();
    let address = address.context("the frontend has no address")?;
    let file = |name: &str| platform.folder().join(name);
    let (certificate, key) = (file("tls.crt"), file("tls.key"));
    let mut openssl = Command::new("openssl");
    openssl
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args(["-subj", "/CN=frontend", "-addext"])
        .arg(format!("subjectAltName=IP:{address}"))
        .arg("-out")
        .arg(&certificate)
        .arg("-keyout")
        .arg(&key);
    process::output(&mut openssl).context("openssl is needed for a certificate")?;
    platform.apply(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "frontend-tls"},
        "type": "kubernetes.io/tls",
        "stringData": {
            "tls.crt": fs::read_to_string(&certificate)?, "tls.key": fs::read_to_string(&key)?,
        },
    }))?;
    let tls = json!({"access": {"tls": {"secretName": "frontend-tls"}}});
    Ok(Variant {
        name: "TLS at the frontend",
        changes: vec![("buildbarnfrontend/frontend", tls)],
        flags: vec![format!("--tls_certificate={}", certificate.display())],
    })
}

/// Instance names, and messages of another size.
fn instances() -> Variant {
    let prefix = json!({"instanceNamePrefix": "ci"});
    Variant {
        name: "instance names and the size of messages",
        changes: vec![
            ("buildbarnscheduler/scheduler", prefix.clone()),
            ("buildbarnworker/linux", prefix),
            (
                "buildbarnstorage/storage",
                json!({"maximumMessageSize": "4Mi"}),
            ),
        ],
        flags: Vec::new(),
    }
}
