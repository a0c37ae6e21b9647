//! Leases, for leader election.

use serde_json::Value;

use super::{
    Rules, Traits,
    fields::{filled, is_set, number},
};
use crate::status::Problems;

/// The rules of Leases. An update must name the resourceVersion it is based on: that decides an
/// election.
pub(super) const RULES: Rules = Rules {
    default: |lease| {
        filled(lease, "spec");
    },
    prepare_create: |lease, _| drop_coordination(lease),
    prepare_update: |lease, _| drop_coordination(lease),
    validate,
    traits: Traits {
        unconditional_update: false,
        create_on_update: true,
        plain_finalizers: true,
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

/// Drops the fields of coordinated leader election, which is not enabled.
fn drop_coordination(lease: &mut Value) {
    if let Some(spec) = lease.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("strategy");
        spec.remove("preferredHolder");
    }
}

fn validate(lease: &Value, problems: &mut Problems) {
    let spec = &lease["spec"];
    let (seconds, transitions) = (
        number(spec, "leaseDurationSeconds"),
        number(spec, "leaseTransitions"),
    );
    if is_set(spec, "leaseDurationSeconds") && seconds <= 0 {
        problems.invalid(
            "spec.leaseDurationSeconds",
            seconds,
            "must be greater than 0",
        );
    }
    if transitions < 0 {
        let detail = "must be greater than or equal to 0";
        problems.invalid("spec.leaseTransitions", transitions, detail);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::errors;

    #[test]
    fn fields_of_coordinated_elections_are_not_kept() {
        let mut lease =
            json!({"spec": {"strategy": "a", "preferredHolder": "b", "holderIdentity": "c"}});
        (RULES.prepare_update)(&mut lease, &json!({}));
        assert_eq!(lease, json!({"spec": {"holderIdentity": "c"}}));
    }

    #[test]
    fn a_lease_lasts_some_time() {
        assert_eq!(
            errors(&RULES, &json!({"spec": {"leaseDurationSeconds": 15}})),
            [""; 0]
        );
        assert_eq!(
            errors(
                &RULES,
                &json!({"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}})
            ),
            [
                "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
                "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            ]
        );
    }
}
