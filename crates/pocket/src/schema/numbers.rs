//! Whole numbers, in either notation.

use serde_json::Value;

/// Writes numbers without a fraction, and with a magnitude below `bound`, as integers: `2.0`
/// becomes `2`. No bound may be beyond the integers.
pub(crate) fn whole_numbers(value: &mut Value, bound: f64) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = |float: &f64| float.fract() == 0.0 && float.abs() < bound;
            if let Some(float) = number.as_f64().filter(whole) {
                *value = (float as i64).into();
            }
        }
        Value::Array(items) => {
            for item in items {
                whole_numbers(item, bound);
            }
        }
        Value::Object(fields) => {
            for field in fields.values_mut() {
                whole_numbers(field, bound);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_without_a_fraction_are_integers_up_to_the_bound() {
        for (written, kept) in [
            (json!({"a": [2.0, -3.0]}), json!({"a": [2, -3]})),
            (json!(2.5), json!(2.5)),
            (json!(99.0), json!(99)),
            (json!(100.0), json!(100.0)),
            (json!(-100.0), json!(-100.0)),
            (json!(1000), json!(1000)),
            (json!("2.0"), json!("2.0")),
        ] {
            let mut value = written;
            whole_numbers(&mut value, 100.0);
            assert_eq!(value, kept);
        }
    }
}
