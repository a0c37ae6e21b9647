//! ReplicationControllers and PodTemplates: the core group's holders of pod templates.

use serde_json::{Value, json};

use super::{
    Rules, Traits,
    fields::{entries, fill, filled, is_set, number, set, text},
    pod_spec::{default_pod_template, validate_pod_template},
    warnings::{owner_warnings, template_warnings},
};
use crate::status::Problems;

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |controller, _| set(controller, "status", json!({"replicas": 0})),
    validate,
    warnings: |controller| template_warnings(&controller["spec"]["template"], "spec.template"),
    first_warnings: owner_warnings,
    traits: Traits {
        generation: true,
        orphan_by_default: true,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

pub(super) const POD_TEMPLATE: Rules = Rules {
    default: |holder| {
        if let Some(template) = filled(holder, "template") {
            default_pod_template(template);
        }
    },
    validate: |holder, problems| validate_pod_template(&holder["template"], "template", problems),
    warnings: |holder| template_warnings(&holder["template"], "template"),
    traits: Traits {
        generation: true,
        delete_returns_object: true,
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

/// Copies the template's labels to the selector and labels of a controller that has none.
fn default(controller: &mut Value) {
    let Some(spec) = filled(controller, "spec") else {
        return;
    };
    fill(spec, "replicas", 1);
    if is_set(spec, "template")
        && let Some(template) = filled(spec, "template")
    {
        default_pod_template(template);
    }
    let labels = spec["template"]["metadata"]["labels"].clone();
    if labels.as_object().is_none_or(serde_json::Map::is_empty) {
        return;
    }
    if entries(spec, "selector").next().is_none() {
        set(spec, "selector", labels.clone());
    }
    if let Some(metadata) = filled(controller, "metadata")
        && entries(metadata, "labels").next().is_none()
    {
        set(metadata, "labels", labels);
    }
}

fn validate(controller: &Value, problems: &mut Problems) {
    let spec = &controller["spec"];
    for field in ["replicas", "minReadySeconds"] {
        let value = number(spec, field);
        if value < 0 {
            let path = format!("spec.{field}");
            problems.invalid(path, value, "must be greater than or equal to 0");
        }
    }
    if entries(spec, "selector").next().is_none() {
        problems.required("spec.selector", "");
    }
    let template = &spec["template"];
    if template.is_null() {
        problems.required("spec.template", "");
        return;
    }
    let labels = &template["metadata"]["labels"];
    if entries(spec, "selector").any(|(key, value)| labels.get(key) != Some(value)) {
        let detail = "`selector` does not match template `labels`";
        problems.invalid("spec.template.metadata.labels", labels.clone(), detail);
    }
    validate_pod_template(template, "spec.template", problems);
    let policy = text(&template["spec"], "restartPolicy");
    if matches!(policy, "Never" | "OnFailure") {
        problems.not_supported("spec.template.spec.restartPolicy", policy, &["Always"]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{defaulted, errors};

    #[expect(
        clippy::needless_pass_by_value,
        reason = "cases read better with the literal in place"
    )]
    fn template(labels: Value) -> Value {
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    }

    #[test]
    fn labels_and_selector_come_from_the_template() {
        let sent =
            json!({"metadata": {"name": "r"}, "spec": {"template": template(json!({"a": "b"}))}});
        let stored = defaulted(&RULES, &sent);
        assert_eq!(stored["spec"]["selector"], json!({"a": "b"}));
        assert_eq!(stored["metadata"]["labels"], json!({"a": "b"}));
        assert_eq!(stored["spec"]["replicas"], 1);
        assert_eq!(errors(&RULES, &stored), [""; 0]);
        assert_eq!(defaulted(&RULES, &stored), stored);
    }

    #[test]
    fn the_selector_selects_the_template() {
        let sent = json!({"spec": {"replicas": -1, "selector": {"a": "c"}, "template": template(json!({"a": "b"}))}});
        let errors = errors(&RULES, &defaulted(&RULES, &sent));
        assert_eq!(
            errors,
            [
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`",
            ]
        );
    }

    #[test]
    fn pods_of_a_controller_always_restart() {
        let mut template = template(json!({"a": "b"}));
        template["spec"]["restartPolicy"] = json!("Never");
        let errors = errors(
            &RULES,
            &defaulted(&RULES, &json!({"spec": {"template": template}})),
        );
        assert_eq!(
            errors,
            [
                "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\""
            ]
        );
    }
}
