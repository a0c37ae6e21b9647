//! Whether a pool's own configuration puts its workers where the spec says that they are.
//!
//! Drains address workers by the queue of the spec and by the names of their pods. A configuration that says
//! otherwise would be drained in a queue without workers, and workers would be stopped with running actions.

use serde_json::Value;

use crate::{
    api::{BuildbarnWorkerSpec, PlatformProperty},
    platform::{QueueName, ordered},
    schema::Finding,
};

/// The differences between the runners of an evaluated configuration and the spec. `pod` is the name of the
/// pod in the evaluation.
pub(super) fn differences(
    spec: &BuildbarnWorkerSpec,
    configuration: &Value,
    pod: &str,
) -> Vec<Finding> {
    let wanted = QueueName::of(spec);
    let mut findings = Vec::new();
    for (at, directory) in items(configuration, "buildDirectories") {
        for (number, runner) in items(directory, "runners") {
            let path = format!("buildDirectories[{at}].runners[{number}]");
            findings.extend(runner_differences(&wanted, runner, pod, &path));
        }
    }
    findings
}

fn runner_differences(wanted: &QueueName, runner: &Value, pod: &str, path: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut differ = |name: &str, found: String, setting: &str, set: String| {
        let problem = format!("is {found}, and {setting} is {set}: drains would miss the workers");
        findings.push(Finding::new(format!("{path}.{name}"), problem));
    };
    let platform = platform(runner);
    if platform != wanted.platform {
        let (found, set) = (listed(&platform), listed(&wanted.platform));
        differ("platform", found, "spec.platform", set);
    }
    let prefix = field(runner, "instanceNamePrefix");
    let prefix = prefix.and_then(Value::as_str).unwrap_or_default();
    if prefix != wanted.instance_name_prefix {
        let set = format!("{:?}", wanted.instance_name_prefix);
        let name = "instanceNamePrefix";
        differ(name, format!("{prefix:?}"), "spec.instanceNamePrefix", set);
    }
    let class = field(runner, "sizeClass").map_or(0, number);
    if class != u64::from(wanted.size_class) {
        let set = wanted.size_class.to_string();
        differ("sizeClass", class.to_string(), "spec.sizeClass", set);
    }
    let id = field(runner, "workerId").and_then(|it| it.get("pod"));
    if id.and_then(Value::as_str) != Some(pod) {
        let problem = "is not the name of the pod, by which its workers are drained: use std.extVar('POD_NAME')";
        let finding = Finding::new(format!("{path}.workerId[\"pod\"]"), problem);
        findings.push(finding);
    }
    findings
}

/// The entries of a list with their numbers.
fn items<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    let list = field(value, name).and_then(Value::as_array);
    list.into_iter().flatten().enumerate()
}

/// A field, in either of the two spellings that programs accept.
fn field<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    value.get(name).or_else(|| value.get(snake))
}

/// A number, also one that is written as a text.
fn number(value: &Value) -> u64 {
    let text = value.as_str().and_then(|it| it.parse().ok());
    let whole = value.as_f64().map(|it| it as u64);
    text.or(whole).unwrap_or(0)
}

fn platform(runner: &Value) -> Vec<PlatformProperty> {
    let Some(platform) = field(runner, "platform") else {
        return Vec::new();
    };
    let properties = items(platform, "properties").map(|(_, property)| {
        let text = |name: &str| property[name].as_str().unwrap_or_default().to_owned();
        PlatformProperty::new(text("name"), text("value"))
    });
    ordered(&properties.collect::<Vec<_>>())
}

fn listed(platform: &[PlatformProperty]) -> String {
    let properties = platform
        .iter()
        .map(|it| format!("{}={}", it.name, it.value));
    format!("{{{}}}", properties.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn runner() -> Value {
        json!({
            "platform": {"properties": [
                {"name": "b", "value": "2"}, {"name": "a", "value": "1"},
            ]},
            "instance_name_prefix": "ci",
            "sizeClass": "3",
            "workerId": {"pod": "w-0", "node": "n"},
        })
    }

    fn found(runner: &Value) -> Vec<(String, String)> {
        let spec = BuildbarnWorkerSpec {
            platform: Some(vec![
                PlatformProperty::new("a", "1"),
                PlatformProperty::new("b", "2"),
            ]),
            instance_name_prefix: Some("ci".to_owned()),
            size_class: Some(3),
            ..BuildbarnWorkerSpec::default()
        };
        let configuration = json!({"build_directories": [{"runners": [runner]}]});
        let findings = differences(&spec, &configuration, "w-0").into_iter();
        findings.map(|it| (it.path, it.problem)).collect()
    }

    #[test]
    fn a_runner_of_the_queue_of_the_spec_has_no_differences() {
        assert_eq!(found(&runner()), []);
    }

    #[test]
    fn each_difference_is_named_with_its_path() {
        let path = |field: &str| format!("buildDirectories[0].runners[0].{field}");
        for (field, value, at) in [
            ("platform", json!({"properties": []}), path("platform")),
            (
                "instance_name_prefix",
                json!(""),
                path("instanceNamePrefix"),
            ),
            ("sizeClass", json!(0), path("sizeClass")),
            ("workerId", json!({"pod": "w"}), path("workerId[\"pod\"]")),
            ("workerId", json!({}), path("workerId[\"pod\"]")),
        ] {
            let mut other = runner();
            other[field] = value;
            let paths: Vec<_> = found(&other).into_iter().map(|it| it.0).collect();
            assert_eq!(paths, [at]);
        }
        let mut other = runner();
        other["platform"]["properties"][0]["value"] = "9".into();
        let expected =
            "is {a=1, b=9}, and spec.platform is {a=1, b=2}: drains would miss the workers";
        assert_eq!(found(&other)[0].1, expected);
    }
}
