//! Leases, by which replicas agree who leads.

use serde_json::Value;

use super::{
    Rules, Traits,
    fields::{filled, is_set, number, text},
};
use crate::status::Problems;

/// The rules of Leases. A write must say which version it saw: that is what makes an election.
pub(super) const RULES: Rules = Rules {
    default: |lease| {
        filled(lease, "spec");
    },
    validate,
    traits: Traits {
        unconditional_update: false,
        create_on_update: true,
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

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
    if !text(spec, "preferredHolder").is_empty() && text(spec, "strategy").is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        problems.forbidden("spec.preferredHolder", detail);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::testing::told;

    #[test]
    fn a_lease_lasts_some_time() {
        assert_eq!(
            told(&RULES, &json!({"spec": {"leaseDurationSeconds": 15}})),
            [""; 0]
        );
        assert_eq!(
            told(
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
