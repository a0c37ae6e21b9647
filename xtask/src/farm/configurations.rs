//! Farms with other settings than the example: what is rendered starts, and Bazel builds.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{bazel::Bazel, platform::Platform};

/// Settings of some components.
struct Variant {
    name: &'static str,
    changes: Vec<(&'static str, Value)>,
}

/// Applies one variant after the other to the farm.
pub(super) fn start(platform: &Platform, bazel: &Bazel) -> Result<String> {
    let mut names = Vec::new();
    for variant in [queues(), instances()] {
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
    bazel.run("test", &[&salt, "//..."])?.flawless()?;
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
    }
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
    }
}
