//! Kubernetes quantities: `100m`, `1Gi`, `1e3`.
//!
//! A quantity is a number of billionths with the family of suffixes it was written in; it prints in
//! the one canonical form of that family, so that equal requests are stored as equal text. Values
//! are capped at the largest 64-bit integer, and fractions below a billionth are rounded away from
//! zero, as in the API server.

mod parse;

use std::{cmp::Ordering, fmt};

#[cfg(test)]
mod tests;

const NANO: i128 = 1_000_000_000;
const MOST: i128 = i64::MAX as i128 * NANO;

/// The family of suffixes a quantity is printed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `n`, `u`, `m`, none, `k`, `M`, `G`, `T`, `P`, `E`.
    DecimalSi,
    /// `Ki`, `Mi`, `Gi`, `Ti`, `Pi`, `Ei`.
    BinarySi,
    /// `e3`, `e6` and so on.
    DecimalExponent,
}

/// An amount; compared by value, whatever its format.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// Why a text is not a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text does not match the pattern of quantities.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Form,
    /// No digits before the suffix.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    /// A whole number of units.
    pub fn whole(value: i64, format: Format) -> Self {
        let nanos = i128::from(value) * NANO;
        Self { nanos, format }
    }

    /// The value in units, rounded away from zero.
    pub fn value(self) -> i64 {
        self.scaled(NANO)
    }

    /// The value in thousandths, rounded away from zero.
    pub fn milli_value(self) -> i64 {
        self.scaled(NANO / 1000)
    }

    /// In thousandths, rounded away from zero.
    #[must_use]
    pub fn in_thousandths(self) -> Self {
        let thousandths = i128::from(self.milli_value());
        Self {
            nanos: thousandths * (NANO / 1000),
            ..self
        }
    }

    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    pub fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whether it is a whole number of units.
    pub fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    /// The sum, in the family of the first, as totals of requests are shown.
    pub fn plus(self, other: Self) -> Self {
        Self {
            nanos: (self.nanos + other.nanos).clamp(-MOST, MOST),
            format: self.format,
        }
    }

    /// The difference, in the family of the first.
    pub fn minus(self, other: Self) -> Self {
        Self {
            nanos: (self.nanos - other.nanos).clamp(-MOST, MOST),
            format: self.format,
        }
    }

    fn scaled(self, unit: i128) -> i64 {
        let magnitude = self.nanos.unsigned_abs().div_ceil(unit.unsigned_abs());
        let magnitude = i64::try_from(magnitude).unwrap_or(i64::MAX);
        if self.nanos < 0 {
            -magnitude
        } else {
            magnitude
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let small = self.nanos.unsigned_abs() < 1024 * NANO.unsigned_abs();
        if self.format == Format::BinarySi && !small && self.is_whole() {
            return self.fmt_binary(f);
        }
        let (mut mantissa, mut exponent) = (self.nanos, -9_i32);
        while mantissa != 0 && mantissa % 1000 == 0 {
            mantissa /= 1000;
            exponent += 3;
        }
        if mantissa == 0 {
            return f.write_str("0");
        }
        write!(f, "{mantissa}")?;
        match (self.format, exponent) {
            (_, 0) => Ok(()),
            (Format::DecimalExponent, _) => write!(f, "e{exponent}"),
            _ => f.write_str(DECIMAL[((exponent + 9) / 3) as usize]),
        }
    }
}

const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Quantity {
    fn fmt_binary(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut units, mut suffix) = (self.nanos / NANO, 0);
        while units % 1024 == 0 && suffix + 1 < BINARY.len() {
            units /= 1024;
            suffix += 1;
        }
        write!(f, "{units}{}", BINARY[suffix])
    }
}
