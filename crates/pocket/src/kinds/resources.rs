//! Amounts of resources: which names they have, and that requests stay within limits.
//!
//! The reader of quantities here knows just enough to judge and compare; the exact arithmetic of
//! `crate::quantity` replaces it once that room is built.

use serde_json::Value;

use super::{
    fields::{entries, text},
    names,
    path::Path,
};
use crate::status::Problems;

const FORM: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Billionths of a unit, the finest the API keeps.
pub(super) type Nanos = i128;

const UNIT: Nanos = 1_000_000_000;

/// Reads a quantity, or `None` when it is none.
pub(super) fn quantity(value: &Value) -> Option<Nanos> {
    match value {
        Value::String(text) => parse(text),
        Value::Number(number) => parse(&number.to_string()),
        _ => None,
    }
}

fn parse(text: &str) -> Option<Nanos> {
    let (sign, text) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (digits, suffix) = text.split_at(end);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let (base, power) = scale(suffix)?;
    let mantissa: Nanos = format!("{whole}{fraction}").parse().ok()?;
    let places = fraction.len() as i32;
    let value = if base == 2 {
        let shifted = mantissa.checked_mul(UNIT)?.checked_shl(power as u32)?;
        shifted / 10_i128.checked_pow(places as u32)?
    } else {
        decimal(mantissa, power + 9 - places)?
    };
    Some(sign * value)
}

/// `mantissa · 10^power`; what is finer than a billionth counts as one more.
fn decimal(mantissa: Nanos, power: i32) -> Option<Nanos> {
    let factor = 10_i128.checked_pow(power.unsigned_abs())?;
    if power >= 0 {
        return mantissa.checked_mul(factor);
    }
    Some(mantissa / factor + Nanos::from(mantissa % factor != 0))
}

/// Base and exponent of a suffix.
fn scale(suffix: &str) -> Option<(i32, i32)> {
    let known = match suffix {
        "n" => (10, -9),
        "u" => (10, -6),
        "m" => (10, -3),
        "" => (10, 0),
        "k" => (10, 3),
        "M" => (10, 6),
        "G" => (10, 9),
        "T" => (10, 12),
        "P" => (10, 15),
        "E" => (10, 18),
        "Ki" => (2, 10),
        "Mi" => (2, 20),
        "Gi" => (2, 30),
        "Ti" => (2, 40),
        "Pi" => (2, 50),
        "Ei" => (2, 60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            return exponent.parse().ok().map(|power| (10, power));
        }
    };
    Some(known)
}

/// Rules on one amount: a quantity, and not negative.
pub(super) fn check_amount(value: &Value, path: &Path<'_>, problems: &mut Problems) {
    match quantity(value) {
        None => problems.invalid(path, value.clone(), FORM),
        Some(amount) if amount < 0 => {
            problems.invalid(path, value.clone(), "must be greater than or equal to 0");
        }
        Some(_) => {}
    }
}

/// Rules on a map from resource names to amounts.
pub(super) fn check_amounts(holder: &Value, key: &str, path: &Path<'_>, problems: &mut Problems) {
    let path = path.field(key);
    for (name, value) in entries(holder, key) {
        for complaint in names::qualified(name) {
            problems.invalid(path.key(name), name.as_str(), complaint);
        }
        check_amount(value, &path.key(name), problems);
    }
}

/// Rules on `resources` of a container.
pub(super) fn check_requirements(resources: &Value, path: &Path<'_>, problems: &mut Problems) {
    for side in ["limits", "requests"] {
        check_amounts(resources, side, path, problems);
        for (name, value) in entries(resources, side) {
            check_container_resource(name, value, &path.field(side), problems);
        }
    }
    check_within_limits(resources, path, problems);
}

fn check_container_resource(name: &str, value: &Value, path: &Path<'_>, problems: &mut Problems) {
    let standard = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    let huge = name.starts_with("hugepages-");
    if !name.contains('/') {
        if !standard && !huge {
            problems.invalid(
                path.key(name),
                name,
                "must be a standard resource for containers",
            );
        }
    } else if quantity(value).is_some_and(|amount| amount % UNIT != 0) {
        problems.invalid(path.key(name), value.clone(), "must be an integer");
    }
}

fn check_within_limits(resources: &Value, path: &Path<'_>, problems: &mut Problems) {
    let limits = &resources["limits"];
    for (name, request) in entries(resources, "requests") {
        let (Some(asked), Some(limit)) = (quantity(request), limits.get(name).and_then(quantity))
        else {
            continue;
        };
        if asked > limit {
            let most = match text(limits, name) {
                "" => limits[name].to_string(),
                text => text.to_owned(),
            };
            let detail = format!("must be less than or equal to {name} limit of {most}");
            problems.invalid(path.field("requests"), request.clone(), detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_compare_across_suffixes() {
        for (text, nanos) in [
            ("1", UNIT),
            ("1500m", UNIT * 3 / 2),
            ("1.5", UNIT * 3 / 2),
            ("1Ki", UNIT * 1024),
            ("0.5Ki", UNIT * 512),
            ("1e3", UNIT * 1000),
            ("2E", UNIT * 2_000_000_000_000_000_000),
            ("-1", -UNIT),
            ("1n", 1),
            ("0.0000000001", 1),
        ] {
            assert_eq!(quantity(&json!(text)), Some(nanos), "{text}");
        }
        assert_eq!(quantity(&json!(2)), Some(2 * UNIT));
        for bad in ["", "-", "x", "1x", "1.2.3", "Ki", "1 Gi", "1ee"] {
            assert_eq!(quantity(&json!(bad)), None, "{bad}");
        }
    }

    fn told(resources: &Value) -> Vec<String> {
        let mut problems = Problems::new();
        check_requirements(resources, &Path::At("resources"), &mut problems);
        problems.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn requests_stay_within_limits() {
        let fine = json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1000m", "memory": "1Gi"}});
        assert_eq!(told(&fine), [""; 0]);
        assert_eq!(
            told(&json!({"limits": {"cpu": "1"}, "requests": {"cpu": "1001m"}})),
            [
                r#"resources.requests: Invalid value: "1001m": must be less than or equal to cpu limit of 1"#
            ]
        );
    }

    #[test]
    fn amounts_are_known_resources_and_not_negative() {
        for (resources, text) in [
            (
                json!({"limits": {"cpu": "-1"}}),
                "must be greater than or equal to 0",
            ),
            (json!({"limits": {"cpu": "one"}}), "quantities must match"),
            (
                json!({"limits": {"speed": "1"}}),
                "must be a standard resource for containers",
            ),
            (
                json!({"limits": {"example.com/gpu": "500m"}}),
                "must be an integer",
            ),
        ] {
            let told = told(&resources);
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told[0].contains(text), "{told:?}");
        }
    }
}
