//! Resource quantities.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// In billionths, the smallest unit of a quantity.
pub(crate) type Amount = i128;

/// Amounts by resource.
pub(crate) type Amounts = BTreeMap<String, Amount>;

/// One whole unit.
pub(crate) const ONE: Amount = 1_000_000_000;

/// Parses a quantity; none if it is invalid, which no API server admits.
pub(crate) fn amount(quantity: &Quantity) -> Option<Amount> {
    let text = quantity.0.trim();
    let end = text
        .find(|letter: char| !matches!(letter, '0'..='9' | '.' | '+' | '-'))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let places = u32::try_from(part.len()).ok()?;
    let digits: Amount = format!("{whole}{part}").parse().ok()?;
    let size = unit_size(unit)?;
    // A quantity beyond the range counts as the largest amount.
    let full = digits.checked_mul(size).unwrap_or(Amount::MAX);
    Some(full / 10_i128.checked_pow(places)?)
}

fn unit_size(unit: &str) -> Option<Amount> {
    let thousands = |power| Some(ONE * 1000_i128.pow(power));
    let binary = |power| Some(ONE * 1024_i128.pow(power));
    match unit {
        "n" => Some(1),
        "u" => Some(1000),
        "m" => Some(1_000_000),
        "" => Some(ONE),
        "k" => thousands(1),
        "M" => thousands(2),
        "G" => thousands(3),
        "T" => thousands(4),
        "P" => thousands(5),
        "E" => thousands(6),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent: i32 = unit.strip_prefix(['e', 'E'])?.parse().ok()?;
            match u32::try_from(exponent) {
                Ok(power) => ONE.checked_mul(10_i128.checked_pow(power)?),
                Err(_) => Some(ONE / 10_i128.checked_pow(exponent.unsigned_abs())?),
            }
        }
    }
}

/// All quantities of a list.
pub(crate) fn amounts(list: Option<&BTreeMap<String, Quantity>>) -> Amounts {
    let list = list.into_iter().flatten();
    list.filter_map(|(name, quantity)| Some((name.clone(), amount(quantity)?)))
        .collect()
}

/// Adds `more` to `sum`.
pub(crate) fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = sum.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*amount);
    }
}

/// Raises `most` to at least `other`, resource by resource.
pub(crate) fn at_least(most: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let most = most.entry(name.clone()).or_default();
        *most = (*most).max(*amount);
    }
}
