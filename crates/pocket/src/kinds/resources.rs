//! Amounts of resources: which names they have, and that requests stay within limits.

use serde_json::Value;

use super::{
    fields::{entries, text},
    names,
    path::Path,
};
use crate::{
    quantity::{Error, Quantity},
    status::Problems,
};

/// Reads a quantity, or `None` when it is none.
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

/// Rules on one amount: a quantity, and not negative.
pub(super) fn check_amount(value: &Value, path: &Path<'_>, problems: &mut Problems) {
    match read(value) {
        Err(why) => problems.invalid(path, value.clone(), why.to_string()),
        Ok(amount) if amount.is_negative() => {
            problems.invalid(path, value.clone(), "must be greater than or equal to 0");
        }
        Ok(_) => {}
    }
}

/// Rules on a map from resource names to amounts.
pub(super) fn check_amounts(holder: &Value, key: &str, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field(key);
    for (name, value) in entries(holder, key) {
        for complaint in names::qualified(name) {
            problems.invalid(path.key(name), name.as_str(), complaint);
        }
        check_amount(value, &path.key(name), problems);
    }
}

/// Rules on `resources` of a container.
pub(super) fn check_requirements(resources: &Value, path: &Path<'_>, problems: &mut Problems) {
    for side in ["limits", "requests"] {
        check_amounts(resources, side, path, problems);
        for (name, value) in entries(resources, side) {
            check_container_resource(name, value, &path.field(side), problems);
        }
    }
    check_within_limits(resources, path, problems);
}

fn check_container_resource(name: &str, value: &Value, path: &Path<'_>, problems: &mut Problems) {
    let standard = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    let huge = name.starts_with("hugepages-");
    if !name.contains('/') {
        if !standard && !huge {
            problems.invalid(
                path.key(name),
                name,
                "must be a standard resource for containers",
            );
        }
    } else if quantity(value).is_some_and(|amount| !amount.is_whole()) {
        problems.invalid(path.key(name), value.clone(), "must be an integer");
    }
}

fn check_within_limits(resources: &Value, path: &Path<'_>, problems: &mut Problems) {
    let limits = &resources["limits"];
    for (name, request) in entries(resources, "requests") {
        let (Some(asked), Some(limit)) = (quantity(request), limits.get(name).and_then(quantity))
        else {
            continue;
        };
        if asked > limit {
            let most = match text(limits, name) {
                "" => limits[name].to_string(),
                text => text.to_owned(),
            };
            let detail = format!("must be less than or equal to {name} limit of {most}");
            problems.invalid(path.field("requests"), request.clone(), detail);
        }
    }
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

    fn told(resources: &Value) -> Vec<String> {
        let mut problems = Problems::new();
        check_requirements(resources, &Path::At("resources"), &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn requests_stay_within_limits() {
        let fine = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1000m", "memory": "1Gi"}});
        assert_eq!(told(&fine), [""; 0]);
        assert_eq!(
            told(&json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1001m"}})),
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
                json!({"limits": {"speed": "1"}}),
                "must be a standard resource for containers",
            ),
            (
                json!({"limits": {"example.com/gpu": "500m"}}),
                "must be an integer",
            ),
        ] {
            let told = told(&resources);
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told[0].contains(text), "{told:?}");
        }
    }
}
