//! Folds a step that only changes an object into the step that creates it.

use serde_json::Value;

use crate::{Step, UserRequest, canonical::collection};

/// Separates the name of the creating step from that of the folded one.
const AS_AFTER: &str = ", as after ";

/// Every way to create an object as it is after a later step, instead of changing it there.
pub(super) fn fewer(steps: &[Step]) -> Vec<Vec<Step>> {
    let mut all = Vec::new();
    for (first, maker) in steps.iter().enumerate() {
        for (second, changer) in steps.iter().enumerate().skip(first + 1) {
            if let Some(folded) = fold(maker, changer) {
                let mut fewer = steps.to_vec();
                fewer.remove(second);
                fewer[first] = folded;
                all.push(fewer);
            }
        }
    }
    all
}

/// The steps of these names, folded ones included; none if a name is unknown.
pub(crate) fn named(steps: &[Step], names: &[&str]) -> Option<Vec<Step>> {
    let find = |name: &str| steps.iter().find(|step| step.name == name);
    let one = |name: &&str| {
        let mut parts = name.split(AS_AFTER);
        let first = find(parts.next()?)?.clone();
        parts.try_fold(first, |step, part| fold(&step, find(part)?))
    };
    names.iter().map(one).collect()
}

/// The first step with the changes of the second.
fn fold(maker: &Step, changer: &Step) -> Option<Step> {
    let mut folded = maker.clone();
    folded.until = folded.until.max(changer.until);
    folded.name = format!("{}{AS_AFTER}{}", maker.name, changer.name).into();
    for request in &changer.requests {
        let UserRequest::Patch(path, patch) = request else {
            return None;
        };
        let mut made = folded
            .requests
            .iter_mut()
            .filter_map(|request| match request {
                UserRequest::Create(object) if at(object) == *path => Some(object),
                _ => None,
            });
        json_patch::merge(made.next()?, patch);
    }
    Some(folded)
}

fn at(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    format!("{}/{name}", collection(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Workload;

    const MAP: &str = "/api/v1/namespaces/default/configmaps/map";

    fn steps() -> Vec<Step> {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "map", "namespace": "default"},
            "data": {"count": "1", "text": "old"},
        });
        let change = |data: Value| UserRequest::Patch(MAP, json!({ "data": data }));
        Workload::new("toy")
            .step("create", [UserRequest::Create(map)])
            .step("scale up", [change(json!({"count": "2"}))])
            .step("scale down", [change(json!({"count": "1"}))])
            .step("delete", [UserRequest::Delete(MAP)])
            .steps
    }

    #[test]
    fn what_is_changed_later_is_made_so() {
        let all = fewer(&steps());
        let names = all.iter().map(|steps| {
            let names = steps.iter().map(|step| step.name.to_string());
            names.collect::<Vec<_>>()
        });
        assert_eq!(
            names.collect::<Vec<_>>(),
            [
                ["create, as after scale up", "scale down", "delete"],
                ["create, as after scale down", "scale up", "delete"],
            ]
        );
        let UserRequest::Create(made) = &all[0][0].requests[0] else {
            panic!("nothing is made");
        };
        assert_eq!(made["data"], json!({"count": "2", "text": "old"}));
    }

    #[test]
    fn folded_steps_are_found_by_their_names() {
        let names = ["create, as after scale up", "delete"];
        let found = named(&steps(), &names).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].name, names[0]);
        assert!(named(&steps(), &["create, as after delete"]).is_none());
        assert!(named(&steps(), &["destroy"]).is_none());
    }
}
