//! The resource requirements of pods, added up.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::quantity::Quantity;

/// Amounts by the name of the resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// The amounts in a map of quantities; an unreadable one is left out.
pub(super) fn amounts(map: &Value) -> Amounts {
    let entries = map.as_object().into_iter().flatten();
    entries
        .filter_map(|(name, value)| Some((name.clone(), quantity(value)?)))
        .collect()
}

pub(super) fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

/// Adds two quantities, in the format of the one that is not zero.
pub(super) fn sum(one: Quantity, other: Quantity) -> Quantity {
    if one.is_zero() {
        other
    } else {
        one.plus(other)
    }
}

pub(super) fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        total
            .entry(name.clone())
            .and_modify(|total| *total = sum(*total, *amount))
            .or_insert(*amount);
    }
}

fn raise(total: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        let entry = total.entry(name.clone()).or_insert(*amount);
        *entry = (*entry).max(*amount);
    }
}

/// The total `requests` or `limits` of a pod: containers run together; init containers run one by
/// one, beside the sidecars that started before them.
pub fn pod_requirements(spec: &Value, side: &str) -> Amounts {
    let of = |container: &Value| amounts(&container["resources"][side]);
    let list = |key: &str| spec[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut total = Amounts::new();
    for container in list("containers") {
        add(&mut total, &of(container));
    }
    let mut sidecars = Amounts::new();
    let mut starting = Amounts::new();
    for container in list("initContainers") {
        let mut together = of(container);
        if container["restartPolicy"] == "Always" {
            add(&mut total, &together);
            add(&mut sidecars, &together);
            together = sidecars.clone();
        } else {
            add(&mut together, &sidecars);
        }
        raise(&mut starting, &together);
    }
    raise(&mut total, &starting);
    total
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_add_up_and_initialization_is_a_floor() {
        let with = |cpu: &str| json!({"resources": {"requests": {"cpu": cpu}}});
        let mut sidecar = with("50m");
        sidecar["restartPolicy"] = json!("Always");
        for (spec, total) in [
            (json!({"containers": [with("100m"), with("200m")]}), "300m"),
            (
                json!({"containers": [with("100m")], "initContainers": [with("400m"), with("1m")]}),
                "400m",
            ),
            (
                json!({"containers": [with("100m")], "initContainers": [sidecar.clone(), with("200m")]}),
                "250m",
            ),
            (
                json!({"containers": [with("300m")], "initContainers": [sidecar, with("200m")]}),
                "350m",
            ),
        ] {
            assert_eq!(
                pod_requirements(&spec, "requests")["cpu"].to_string(),
                total,
                "{spec}"
            );
        }
    }
}
