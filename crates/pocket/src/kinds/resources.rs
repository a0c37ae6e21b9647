//! Resource amounts: the names of resources, and that requests stay within limits.

use serde_json::Value;

use super::{fields::entries, names, path::Path, quota_scopes::is_standard};
use crate::{
    quantity::{Error, Quantity},
    status::Problems,
};

/// Parses a quantity; `None` if it is invalid.
pub(super) fn quantity(value: &Value) -> Option<Quantity> {
    read(value).ok()
}

fn read(value: &Value) -> Result<Quantity, Error> {
    match value {
        Value::String(text) => text.parse(),
        Value::Number(number) => number.to_string().parse(),
        _ => Err(Error::Form),
    }
}

/// Validates one amount: a quantity, and not negative.
pub(super) fn check_amount(value: &Value, path: &Path<'_>, problems: &mut Problems) {
    match read(value) {
        Err(why) => problems.invalid(path, value.clone(), why.to_string()),
        Ok(amount) if amount.is_negative() => {
            problems.invalid(path, value.clone(), "must be greater than or equal to 0");
        }
        Ok(_) => {}
    }
}

/// Validates a map from resource names to amounts.
pub(super) fn check_amounts(holder: &Value, key: &str, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field(key);
    for (name, value) in entries(holder, key) {
        for complaint in names::qualified(name) {
            problems.invalid(path.key(name), name.as_str(), complaint);
        }
        check_amount(value, &path.key(name), problems);
    }
}

/// Validates `resources` of a container.
pub(super) fn check_requirements(resources: &Value, path: &Path<'_>, problems: &mut Problems) {
    for side in ["limits", "requests"] {
        let path = path.field(side);
        for (name, value) in entries(resources, side) {
            let path = path.key(name);
            check_container_resource(name, &path, problems);
            check_amount(value, &path, problems);
            check_pieces(name, value, &path, problems);
        }
        if side == "requests" {
            check_within_limits(resources, &path, problems);
        }
    }
    let named = |name: &str| {
        let sides = ["limits", "requests"].into_iter();
        sides
            .flat_map(|side| entries(resources, side))
            .any(|(key, _)| key.starts_with(name))
    };
    if named(HUGE) && !named("cpu") && !named("memory") {
        problems.forbidden(path, "HugePages require cpu or memory");
    }
}

/// Validates `resources` of a whole pod, which allows fewer.
pub(super) fn check_pod_requirements(resources: &Value, path: &Path<'_>, problems: &mut Problems) {
    for side in ["limits", "requests"] {
        let path = path.field(side);
        for (name, value) in entries(resources, side) {
            let path = path.key(name);
            let complaints = names::qualified(name);
            let (sound, plain) = (complaints.is_empty(), !name.contains('/'));
            for complaint in complaints {
                problems.invalid(path, name.as_str(), complaint);
            }
            let standard = is_standard(name) || name == "storage";
            if sound && plain && !standard {
                let detail = "must be a standard resource type or fully qualified";
                problems.invalid(path, name.as_str(), detail);
            } else if sound && !matches!(name.as_str(), "cpu" | "memory") && !name.starts_with(HUGE)
            {
                let known = ["cpu", HUGE, "memory"];
                problems.not_supported(path, name.as_str(), &known);
            }
            check_amount(value, &path, problems);
            check_pieces(name, value, &path, problems);
        }
        if side == "requests" {
            check_within_limits(resources, &path, problems);
        }
    }
}

const HUGE: &str = "hugepages-";

fn check_container_resource(name: &str, path: &Path<'_>, problems: &mut Problems) {
    let complaints = names::qualified(name);
    let is_name = complaints.is_empty();
    for complaint in complaints {
        problems.invalid(path, name, complaint);
    }
    if name.contains('/') {
        if name.starts_with("requests.") {
            let detail = "doesn't follow extended resource name standard";
            problems.invalid(path, name, detail);
        }
        return;
    }
    if is_name && !is_standard(name) && name != "storage" {
        let detail = "must be a standard resource type or fully qualified";
        problems.invalid(path, name, detail);
    }
    if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !name.starts_with(HUGE) {
        let detail = "must be a standard resource for containers";
        problems.invalid(path, name, detail);
    }
}

/// Validates that a resource that only comes in whole units has an integer amount.
fn check_pieces(name: &str, value: &Value, path: &Path<'_>, problems: &mut Problems) {
    let Some(amount) = quantity(value) else {
        return;
    };
    if name.contains('/') && !amount.is_whole() {
        problems.invalid(path, value.clone(), "must be an integer");
    }
    let page = name.strip_prefix(HUGE).and_then(|size| size.parse().ok());
    let page = page.map_or(0, Quantity::value);
    if page > 0 && (amount.value() % page != 0 || amount.is_negative()) {
        let detail = format!(
            "{} is not positive integer multiple of {name}",
            plain(value)
        );
        problems.invalid(path, value.clone(), detail);
    }
}

/// Whether requests must equal limits: huge pages and extended resources cannot be overcommitted.
fn is_exact(name: &str) -> bool {
    name.starts_with(HUGE) || (name.contains('/') && !name.contains("kubernetes.io/"))
}

fn check_within_limits(resources: &Value, path: &Path<'_>, problems: &mut Problems) {
    let limits = &resources["limits"];
    for (name, request) in entries(resources, "requests") {
        let Some(asked) = quantity(request) else {
            continue;
        };
        let Some(limit) = limits.get(name).and_then(quantity) else {
            if is_exact(name) && limits.get(name).is_none() {
                let detail = "Limit must be set for non overcommitable resources";
                let limits = path.to_string().replace("requests", "limits");
                problems.required(limits, detail);
            }
            continue;
        };
        let most = plain(&limits[name]);
        if is_exact(name) && asked != limit {
            let detail = format!("must be equal to {name} limit of {most}");
            problems.invalid(path, request.clone(), detail);
        } else if asked > limit {
            let detail = format!("must be less than or equal to {name} limit of {most}");
            problems.invalid(path, request.clone(), detail);
        }
    }
}

/// A text without its quotes.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_read_from_texts_and_numbers() {
        assert_eq!(quantity(&json!("1500m")), quantity(&json!(1.5)));
        assert_eq!(quantity(&json!("2Ki")), quantity(&json!(2048)));
        for bad in [json!("1x"), json!(true), json!(null)] {
            assert_eq!(quantity(&bad), None, "{bad}");
        }
    }

    fn errors(resources: &Value) -> Vec<String> {
        let mut problems = Problems::new();
        check_requirements(resources, &Path::At("resources"), &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn requests_stay_within_limits() {
        let fine = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1000m", "memory": "1Gi"}});
        assert_eq!(errors(&fine), [""; 0]);
        assert_eq!(
            errors(&json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1001m"}})),
            [
                r#"resources.requests: Invalid value: "1001m": must be less than or equal to cpu limit of 1"#
            ]
        );
    }

    #[test]
    fn amounts_are_known_resources_and_not_negative() {
        for (resources, text) in [
            (
                json!({"limits": {"cpu": "-1"}}),
                "must be greater than or equal to 0",
            ),
            (json!({"limits": {"cpu": "one"}}), "quantities must match"),
            (
                json!({"limits": {"storage": "1"}}),
                "must be a standard resource for containers",
            ),
            (
                json!({"limits": {"example.com/gpu": "500m"}}),
                "must be an integer",
            ),
            (
                json!({"limits": {"requests.example.com/gpu": "1"}}),
                "doesn't follow extended resource name standard",
            ),
            (
                json!({"requests": {"example.com/gpu": "1"}}),
                "resources.limits: Required value: Limit must be set for non overcommitable resources",
            ),
            (
                json!({"limits": {"example.com/gpu": "2"}, "requests": {"example.com/gpu": "1"}}),
                "resources.requests: Invalid value: \"1\": must be equal to example.com/gpu limit of 2",
            ),
            (
                json!({"limits": {"hugepages-2Mi": "2Mi"}}),
                "resources: Forbidden: HugePages require cpu or memory",
            ),
            (
                json!({"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}),
                "3Mi is not positive integer multiple of hugepages-2Mi",
            ),
        ] {
            let errors = errors(&resources);
            assert_eq!(errors.len(), 1, "{errors:?}");
            assert!(errors[0].contains(text), "{errors:?}");
        }
    }
}
