//! The two subresources that change the spec of a running pod.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    kinds::{
        fields::{each_mut, entries, list, take, text},
        path::Path,
    },
    status::Problems,
};

/// Validates a change through `ephemeralcontainers`: containers may be added, and nothing else.
pub fn validate_ephemeral_containers(new: &Value, old: &Value, problems: &mut Problems) {
    const FIELD: &str = "ephemeralContainers";
    const PATH: &str = "spec.ephemeralContainers";
    let (new, old) = (&new["spec"], &old["spec"]);
    // Of several containers of one name, the first counts.
    let now = list(new, FIELD).iter().rev();
    let now: HashMap<&str, &Value> = now.map(|now| (text(now, "name"), now)).collect();
    for before in list(old, FIELD) {
        let name = text(before, "name");
        let what = match now.get(name) {
            Some(&now) if now == before => continue,
            Some(_) => "changed",
            None => "removed",
        };
        let detail = format!("existing ephemeral containers {name:?} may not be {what}");
        problems.forbidden(PATH, detail);
    }
    if !equal_but_for(new, old, |spec| {
        take(spec, FIELD);
    }) {
        problems.forbidden("spec", "only ephemeralContainers may change");
    }
}

/// Validates a change through `resize`: only CPU and memory of containers may change.
pub fn validate_resize(new: &Value, old: &Value, problems: &mut Problems) {
    let (new, old) = (&new["spec"], &old["spec"]);
    for field in ["containers", "initContainers"] {
        for (index, (now, before)) in list(new, field).iter().zip(list(old, field)).enumerate() {
            let path = Path::At("spec");
            let path = path.field(field);
            let path = path.index(index);
            check_sizes(
                &now["resources"],
                &before["resources"],
                &path.field("resources"),
                problems,
            );
        }
    }
    let sizes_only = equal_but_for(new, old, |spec| {
        for field in ["containers", "initContainers"] {
            for container in each_mut(spec, field) {
                take(container, "resources");
                take(container, "resizePolicy");
            }
        }
    });
    if !sizes_only {
        problems.forbidden("spec", "only cpu and memory resources are mutable");
    }
}

fn check_sizes(now: &Value, before: &Value, path: &Path<'_>, problems: &mut Problems) {
    for side in ["limits", "requests"] {
        let changed = entries(now, side)
            .chain(entries(before, side))
            .map(|(name, _)| name.as_str())
            .find(|name| {
                !matches!(*name, "cpu" | "memory") && now[side].get(name) != before[side].get(name)
            });
        if changed.is_some() {
            let detail = "only cpu and memory resources are mutable";
            problems.forbidden(path.field(side), detail);
        }
    }
}

fn equal_but_for(new: &Value, old: &Value, strip: impl Fn(&mut Value)) -> bool {
    let stripped = |spec: &Value| {
        let mut spec = spec.clone();
        strip(&mut spec);
        spec
    };
    stripped(new) == stripped(old)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::texts;

    fn pod(resources: &Value, ephemeral: &Value) -> Value {
        json!({"spec": {
            "containers": [{"name": "c", "image": "i", "resources": resources}],
            "ephemeralContainers": ephemeral,
        }})
    }

    fn errors(rule: fn(&Value, &Value, &mut Problems), new: &Value, old: &Value) -> Vec<String> {
        let mut problems = Problems::new();
        rule(new, old, &mut problems);
        texts(&problems)
    }

    #[test]
    fn ephemeral_containers_are_only_added() {
        let one = json!([{"name": "e", "image": "i"}]);
        let two = json!([{"name": "e", "image": "i"}, {"name": "f", "image": "i"}]);
        let other = json!([{"name": "e", "image": "j"}]);
        let of = |list: &Value| pod(&json!({}), list);
        let rule = validate_ephemeral_containers;
        assert_eq!(errors(rule, &of(&two), &of(&one)), [""; 0]);
        let path = "spec.ephemeralContainers: Forbidden: existing ephemeral containers";
        let (changed, removed) = (
            errors(rule, &of(&other), &of(&one)),
            errors(rule, &of(&one), &of(&two)),
        );
        assert_eq!(changed, [format!("{path} \"e\" may not be changed")]);
        assert_eq!(removed, [format!("{path} \"f\" may not be removed")]);
        let mut image = of(&two);
        image["spec"]["containers"][0]["image"] = json!("k");
        assert_eq!(
            errors(rule, &image, &of(&one)),
            ["spec: Forbidden: only ephemeralContainers may change"]
        );
    }

    #[test]
    fn only_processors_and_memory_are_resized() {
        let of = |resources: Value| pod(&resources, &json!([]));
        let old = of(json!({"limits": {"cpu": "1"}}));
        let rule = validate_resize;
        let bigger = of(json!({"limits": {"cpu": "2", "memory": "1Gi"}}));
        assert_eq!(errors(rule, &bigger, &old), [""; 0]);
        let storage = of(json!({"limits": {"cpu": "1", "ephemeral-storage": "1Gi"}}));
        let fixed = "Forbidden: only cpu and memory resources are mutable";
        assert_eq!(
            errors(rule, &storage, &old),
            [format!("spec.containers[0].resources.limits: {fixed}")]
        );
        let mut image = old.clone();
        image["spec"]["containers"][0]["image"] = json!("k");
        assert_eq!(errors(rule, &image, &old), [format!("spec: {fixed}")]);
    }
}
