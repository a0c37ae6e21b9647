//! LimitRanges and ResourceQuotas. Their effect on other objects is decided by admission.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::{
    Rules, Traits,
    fields::{each_mut, entries, filled, is_set, list, set, text},
    path::Path,
    quota_scopes,
    resources::{check_amounts, quantity},
};
use crate::status::Problems;

pub(super) const LIMIT_RANGE: Rules = Rules {
    default: default_limit_range,
    validate: validate_limit_range,
    traits: Traits {
        create_on_update: true,
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

pub(super) const RESOURCE_QUOTA: Rules = Rules {
    default: |quota| {
        filled(quota, "spec");
    },
    prepare_create: |quota, _| set(quota, "status", json!({})),
    validate: |quota, problems| {
        quota_scopes::check_hard(&quota["spec"], problems);
        quota_scopes::check_scopes(&quota["spec"], problems);
    },
    validate_update: |new, old, problems| {
        if list(&new["spec"], "scopes") != list(&old["spec"], "scopes") {
            let shown = new["spec"]["scopes"].clone();
            problems.invalid("spec.scopes", shown, "field is immutable");
        }
    },
    traits: Traits {
        delete_returns_object: true,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

fn default_limit_range(range: &mut Value) {
    let Some(spec) = filled(range, "spec") else {
        return;
    };
    for limit in each_mut(spec, "limits") {
        if text(limit, "type") == "Container" {
            borrow(limit, "default", "max");
            borrow(limit, "defaultRequest", "default");
            borrow(limit, "defaultRequest", "min");
        }
    }
}

/// Fills the absent entries of `field` from `source`.
fn borrow(limit: &mut Value, field: &str, source: &str) {
    let said = &limit[field];
    let missing: Map<String, Value> = entries(limit, source)
        .filter(|(name, _)| said.get(name.as_str()).is_none())
        .map(|(name, amount)| (name.clone(), amount.clone()))
        .collect();
    if !missing.is_empty()
        && let Some(Value::Object(amounts)) = filled(limit, field)
    {
        amounts.extend(missing);
    }
}

const SIDES: [&str; 5] = [
    "max",
    "min",
    "default",
    "defaultRequest",
    "maxLimitRequestRatio",
];

fn validate_limit_range(range: &Value, problems: &mut Problems) {
    let mut seen = HashSet::new();
    let all = Path::At("spec.limits");
    for (index, limit) in list(&range["spec"], "limits").iter().enumerate() {
        let path = all.index(index);
        let kind = text(limit, "type");
        if !kind.is_empty() && !seen.insert(kind) {
            problems.duplicate(path.field("type"), kind);
        }
        for side in SIDES {
            check_amounts(limit, side, &path, problems);
        }
        if kind == "Pod" {
            for field in ["default", "defaultRequest"] {
                if is_set(limit, field) {
                    let detail = "may not be specified when `type` is 'Pod'";
                    problems.forbidden(path.field(field), detail);
                }
            }
        }
        // In each pair the first must not exceed the second.
        for (low, high) in [
            ("min", "max"),
            ("min", "defaultRequest"),
            ("min", "default"),
            ("defaultRequest", "default"),
            ("defaultRequest", "max"),
            ("default", "max"),
        ] {
            check_order(limit, low, high, &path, problems);
        }
    }
}

fn check_order(limit: &Value, low: &str, high: &str, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field(low);
    for (name, small) in entries(limit, low) {
        let Some(large) = limit[high].get(name) else {
            continue;
        };
        if quantity(small) > quantity(large) {
            let plain = |value: &Value| {
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned)
            };
            let detail = format!(
                "{} value {} is greater than {} value {}",
                words(low),
                plain(small),
                words(high),
                plain(large)
            );
            problems.invalid(path.key(name), small.clone(), detail);
        }
    }
}

fn words(side: &str) -> &str {
    if side == "defaultRequest" {
        "default request"
    } else {
        side
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::testing::{defaulted, errors, update_errors};

    #[expect(
        clippy::needless_pass_by_value,
        reason = "cases read better with the literal in place"
    )]
    fn range(limit: Value) -> Value {
        json!({"spec": {"limits": [limit]}})
    }

    #[test]
    fn a_containers_defaults_follow_from_its_bounds() {
        let sent =
            range(json!({"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}));
        let stored = defaulted(&LIMIT_RANGE, &sent);
        let limit = &stored["spec"]["limits"][0];
        assert_eq!(limit["default"], json!({"cpu": "2"}));
        assert_eq!(
            limit["defaultRequest"],
            json!({"cpu": "2", "memory": "1Mi"})
        );
        let pod = range(json!({"type": "Pod", "max": {"cpu": "2"}}));
        assert_eq!(defaulted(&LIMIT_RANGE, &pod), pod);
    }

    #[test]
    fn bounds_are_in_order() {
        let bad = range(json!({"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1500m"}}));
        assert_eq!(
            errors(&LIMIT_RANGE, &bad),
            [
                "spec.limits[0].min[cpu]: Invalid value: \"2\": min value 2 is greater than max value 1500m"
            ]
        );
        let pod = range(json!({"type": "Pod", "default": {"cpu": "1"}}));
        assert_eq!(
            errors(&LIMIT_RANGE, &pod),
            ["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"]
        );
    }

    #[test]
    fn the_scopes_of_a_quota_are_fixed() {
        let of = |scope: &str| json!({"spec": {"scopes": [scope]}});
        let errors = update_errors(&RESOURCE_QUOTA, &of("BestEffort"), &of("Terminating"));
        assert_eq!(
            errors,
            ["spec.scopes: Invalid value: [\"BestEffort\"]: field is immutable"]
        );
    }
}
