//! Pod-level resources, and their relation to those of the containers.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use crate::{
    kinds::{
        fields::{entries, filled, is_set, list, set, text},
        path::Path,
        resources::quantity,
    },
    quantity::Quantity,
    status::Problems,
};

const HUGE: &str = "hugepages-";

/// The totals of the resources that all containers of a pod need at the same time, without those
/// that no container sets. Init containers run one after the other, except for sidecars.
pub(super) fn totals<'a>(spec: &'a Value, side: &str) -> HashMap<&'a str, Quantity> {
    /// What the sidecars so far need, and the most that was needed at any time.
    #[derive(Default)]
    struct Need {
        stay: Option<Quantity>,
        peak: Option<Quantity>,
    }
    let plus = |sum: Option<Quantity>, more: Quantity| sum.map_or(more, |sum| sum.plus(more));
    let mut needs: HashMap<&str, Need> = HashMap::new();
    for (field, stays) in [("initContainers", false), ("containers", true)] {
        for container in list(spec, field) {
            let stays = stays || text(container, "restartPolicy") == "Always";
            for (name, amount) in entries(&container["resources"], side) {
                let Some(amount) = quantity(amount) else {
                    continue;
                };
                let need = needs.entry(name).or_default();
                let with = Some(plus(need.stay, amount));
                need.peak = need.peak.max(with);
                if stays {
                    need.stay = with;
                }
            }
        }
    }
    let peaks = needs.into_iter();
    peaks
        .filter_map(|(name, need)| Some((name, need.peak.max(need.stay)?)))
        .collect()
}

/// Fills the pod-level requests that follow from the pod-level limits.
pub(in crate::kinds) fn default_totals(spec: &mut Value) {
    let given = |spec: &Value, side: &str| entries(&spec["resources"], side).next().is_some();
    if !given(spec, "limits") && !given(spec, "requests") {
        return;
    }
    let huge = totals(spec, "limits").into_iter();
    let huge = huge.filter(|(name, _)| name.starts_with(HUGE));
    let huge: BTreeMap<String, Quantity> = huge.map(|(name, sum)| (name.to_owned(), sum)).collect();
    for (name, limit) in huge {
        put(spec, "limits", &name, Some(json!(limit.to_string())));
    }
    if !given(spec, "limits") {
        return;
    }
    let requests = totals(spec, "requests");
    let requests = ["cpu", "memory"].map(|name| (name, requests.get(name).copied()));
    for (name, request) in requests {
        let request = request.map(|request| json!(request.to_string()));
        put(spec, "requests", name, request);
    }
    let limits: Vec<(String, Value)> = entries(&spec["resources"], "limits")
        .map(|(name, limit)| (name.clone(), limit.clone()))
        .collect();
    for (name, limit) in limits {
        if matches!(name.as_str(), "cpu" | "memory") || name.starts_with(HUGE) {
            put(spec, "requests", &name, Some(limit));
        }
    }
}

fn put(spec: &mut Value, side: &str, name: &str, amount: Option<Value>) {
    if let Some(amount) = amount
        && let Some(resources) = filled(spec, "resources")
        && let Some(amounts) = filled(resources, side)
        && !is_set(amounts, name)
    {
        set(amounts, name, amount);
    }
}

/// Pod-level resources may not be less than those of the containers; `path` is that of the pod's
/// resources.
pub(super) fn check(spec: &Value, path: &Path<'_>, problems: &mut Problems) {
    let requests = path.field("requests");
    let sums = totals(spec, "requests");
    for (name, request) in entries(&spec["resources"], "requests") {
        if let (Some(given), Some(&sum)) = (quantity(request), sums.get(name.as_str()))
            && sum > given
        {
            let detail =
                format!("must be greater than or equal to aggregate container requests of {sum}");
            problems.invalid(requests.key(name), request.clone(), detail);
        }
    }
    let containers = path.field("containers");
    for (index, container) in list(spec, "containers").iter().enumerate() {
        for (name, limit) in entries(&container["resources"], "limits") {
            let most = quantity(&spec["resources"]["limits"][name]);
            if let (Some(given), Some(most)) = (quantity(limit), most)
                && given > most
            {
                let detail = format!("must be less than or equal to pod limits of {most}");
                let place = containers.index(index);
                let place = place.key(name);
                problems.invalid(place.field("limits"), limit.clone(), detail);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::texts;

    fn pod(resources: &Value, requests: &str) -> Value {
        json!({
            "resources": resources,
            "initContainers": [
                {"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
                {"resources": {"requests": {"cpu": "3"}}},
            ],
            "containers": [{"resources": {"requests": {"cpu": requests}}}],
        })
    }

    #[test]
    fn requests_of_a_limited_pod_follow_from_its_containers_and_its_limits() {
        for (cpu, total) in [("1", "4"), ("5", "6")] {
            let mut spec = pod(&json!({"limits": {"cpu": "9", "memory": "1Gi"}}), cpu);
            default_totals(&mut spec);
            let expected = json!({"cpu": total, "memory": "1Gi"});
            assert_eq!(spec["resources"]["requests"], expected);
        }
        let mut spec = pod(&json!({"requests": {"memory": "1Gi"}}), "1");
        let before = spec.clone();
        default_totals(&mut spec);
        assert_eq!(spec, before);
    }

    #[test]
    fn the_whole_is_not_less_than_its_parts() {
        let mut spec = pod(
            &json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}),
            "1",
        );
        spec["containers"][0]["resources"]["limits"] = json!({"cpu": "2", "memory": "1"});
        let mut problems = Problems::new();
        check(&spec, &Path::At("spec.resources"), &mut problems);
        assert_eq!(
            texts(&problems),
            [
                "spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate container requests of 4",
                "spec.resources.containers[0][cpu].limits: Invalid value: \"2\": must be less than or equal to pod limits of 1",
            ]
        );
    }
}
