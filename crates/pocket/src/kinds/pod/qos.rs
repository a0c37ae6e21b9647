//! The QoS class of a pod, which follows from its requests and limits.

use serde_json::Value;

use crate::{
    kinds::{fields::list, resources::quantity},
    quantity::Quantity,
};

const COUNTED: [&str; 2] = ["cpu", "memory"];

/// `Guaranteed` when every container's requests equal its limits, `BestEffort` when none has
/// requests or limits, `Burstable` otherwise.
pub fn class(spec: &Value) -> &'static str {
    let whole = &spec["resources"];
    if whole.is_object() {
        return class_of(std::iter::once(whole));
    }
    let containers = ["initContainers", "containers"]
        .into_iter()
        .flat_map(|field| list(spec, field));
    class_of(containers.map(|container| &container["resources"]))
}

fn class_of<'a>(all: impl Iterator<Item = &'a Value>) -> &'static str {
    let (mut guaranteed, mut asked) = (true, false);
    for resources in all {
        for name in COUNTED {
            let request = amount(&resources["requests"][name]);
            let limit = amount(&resources["limits"][name]);
            asked |= request.is_some() || limit.is_some();
            // A limit without a request is its own request.
            guaranteed &= limit.is_some() && request.is_none_or(|r| Some(r) == limit);
        }
    }
    match (asked, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

fn amount(value: &Value) -> Option<Quantity> {
    quantity(value).filter(|amount| !amount.is_zero() && !amount.is_negative())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_class_follows_requests_and_limits() {
        let full = json!({"cpu": "1", "memory": "1Gi"});
        let same = json!({"cpu": "1000m", "memory": "1024Mi"});
        for (containers, expected) in [
            (json!([{}]), "BestEffort"),
            (
                json!([{"resources": {"limits": {"cpu": "0"}}}]),
                "BestEffort",
            ),
            (
                json!([{"resources": {"requests": {"cpu": "1"}}}]),
                "Burstable",
            ),
            (json!([{"resources": {"limits": full}}]), "Guaranteed"),
            (
                json!([{"resources": {"limits": full, "requests": same}}]),
                "Guaranteed",
            ),
            (json!([{"resources": {"limits": full}}, {}]), "Burstable"),
            (
                json!([{"resources": {"limits": {"cpu": "1"}}}]),
                "Burstable",
            ),
        ] {
            let spec = json!({ "containers": containers });
            assert_eq!(class(&spec), expected, "{spec}");
        }
    }
}
