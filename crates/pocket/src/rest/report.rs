//! Fields of a status that stay when a writer leaves them out.

use serde_json::Value;

use super::update::keep;

/// Keeps those of `fields` that `new` leaves out. A condition keeps its observedGeneration if that
/// is among them.
pub(super) fn keep_left_out(new: &mut Value, old: &Value, fields: &[&str]) {
    for field in fields {
        if new.get(field).is_none_or(is_absent) {
            keep(new, old, field);
        }
    }
    if !fields.contains(&GENERATION) {
        return;
    }
    let former = old["conditions"].as_array();
    let conditions = new.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let same = |one: &&Value| one["type"] == condition["type"];
        let before = former.and_then(|former| former.iter().find(same));
        if let Some(before) = before
            && condition.get(GENERATION).is_none_or(is_absent)
        {
            keep(condition, before, GENERATION);
        }
    }
}

const GENERATION: &str = "observedGeneration";

fn is_absent(value: &Value) -> bool {
    value.is_null() || value == "" || value == 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_condition_keeps_the_generation_it_was_about() {
        let old = json!({"qosClass": "BestEffort", "conditions": [{"type": "Ready", "observedGeneration": 2}]});
        let mut new = json!({"conditions": [{"type": "Ready"}, {"type": "Other"}]});
        keep_left_out(&mut new, &old, &["qosClass", GENERATION]);
        let expected = json!({
            "qosClass": "BestEffort",
            "conditions": [{"type": "Ready", "observedGeneration": 2}, {"type": "Other"}],
        });
        assert_eq!(new, expected);
        let mut none = json!({"phase": "Running"});
        keep_left_out(&mut none, &json!({}), &[GENERATION]);
        assert_eq!(none, json!({"phase": "Running"}));
    }
}
