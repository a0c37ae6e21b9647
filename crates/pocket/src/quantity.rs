//! Kubernetes quantities: `100m`, `1Gi`, `1e3`.
//!
//! A quantity is a number of billionths with the family of suffixes it was written in; it prints
//! in the one canonical form of that family, so that equal requests are stored as equal text.
//! Values are capped at the largest 64-bit integer, and fractions below a billionth are rounded
//! away from zero, as the API server does.

use std::{cmp::Ordering, fmt, str::FromStr};

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

/// An amount of something; compared by value, whatever it was written as.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// Why a text is no quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not even the outline of a quantity.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Form,
    /// No digits before the suffix.
    #[error("unable to parse numeric part of quantity")]
    Number,
    /// A suffix nobody defined.
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

    /// Whether it is nothing at all.
    pub fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether it is below zero.
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

impl FromStr for Quantity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (negative, unsigned) = match text.as_bytes().first() {
            None => return Err(Error::Form),
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            Some(_) => (false, text),
        };
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", rest),
        };
        if !suffix.bytes().all(in_suffix) {
            return Err(Error::Form);
        }
        if whole.is_empty() && fraction.is_empty() {
            return Err(Error::Number);
        }
        let scale = Scale::parse(suffix)?;
        let magnitude = magnitude(whole, fraction, scale);
        let mut format = scale.format;
        if format == Format::BinarySi && !negative && 0 < magnitude && magnitude < NANO {
            format = Format::DecimalSi;
        }
        let nanos = if negative { -magnitude } else { magnitude };
        Ok(Self { nanos, format })
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .bytes()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn in_suffix(byte: u8) -> bool {
    byte.is_ascii_digit() || b"eEinumkKMGTP+-".contains(&byte)
}

/// What a suffix multiplies by: `10^ten * 2^two`.
#[derive(Clone, Copy)]
struct Scale {
    ten: i64,
    two: u32,
    format: Format,
}

impl Scale {
    fn parse(suffix: &str) -> Result<Self, Error> {
        let decimal = |ten| (ten, 0, Format::DecimalSi);
        let binary = |two| (0, two, Format::BinarySi);
        let (ten, two, format) = match suffix {
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "" => decimal(0),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            "Ki" => binary(10),
            "Mi" => binary(20),
            "Gi" => binary(30),
            "Ti" => binary(40),
            "Pi" => binary(50),
            "Ei" => binary(60),
            _ => (exponent(suffix)?, 0, Format::DecimalExponent),
        };
        Ok(Self { ten, two, format })
    }
}

fn exponent(suffix: &str) -> Result<i64, Error> {
    let number = suffix.strip_prefix(['e', 'E']).ok_or(Error::Suffix)?;
    number
        .parse::<i32>()
        .map(i64::from)
        .map_err(|_| Error::Suffix)
}

/// Billionths of `whole.fraction * scale`, rounded up and capped.
///
/// Only as many leading digits as fit the arithmetic are looked at; no value below the cap needs
/// more, and what is left out still counts for rounding up.
fn magnitude(whole: &str, fraction: &str, scale: Scale) -> i128 {
    let kept = if scale.two == 0 { 30 } else { 20 };
    let mut mantissa: i128 = 0;
    let (mut seen, mut left_out, mut more) = (0_usize, 0_i64, false);
    for digit in whole.bytes().chain(fraction.bytes()).map(|b| b - b'0') {
        if seen == kept {
            left_out += 1;
            more |= digit != 0;
            continue;
        }
        mantissa = mantissa * 10 + i128::from(digit);
        seen += usize::from(mantissa != 0);
    }
    let ten = scale.ten + 9 + left_out - fraction.len() as i64;
    let mantissa = mantissa * (1_i128 << scale.two);
    let power = u32::try_from(ten.unsigned_abs())
        .ok()
        .and_then(|n| 10_i128.checked_pow(n));
    let value = if ten >= 0 {
        let product = power.and_then(|p| mantissa.checked_mul(p));
        product.unwrap_or(if mantissa == 0 { 0 } else { MOST })
    } else {
        let (quotient, rest) = power.map_or((0, mantissa), |p| (mantissa / p, mantissa % p));
        quotient + i128::from(rest != 0 || more)
    };
    value.min(MOST)
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
