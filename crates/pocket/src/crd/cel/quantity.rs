//! Quantities in rules: `quantity("1.5Gi")`.

use std::fmt;

/// An amount in billionths of one, exact over the range that quantities have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CelQuantity(i128);

const ONE: i128 = 1_000_000_000;

impl CelQuantity {
    /// Parses `1`, `1.5`, `100m`, `2Gi`, `1e3`. Digits below a billionth are rounded up in size.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let (numerator, denominator) = multiplier(suffix)?;
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let scaled = digits.checked_mul(ONE)?.checked_mul(numerator)?;
        let divisor = denominator.checked_mul(10_i128.checked_pow(fraction.len() as u32)?)?;
        let size = scaled.checked_add(divisor - 1)? / divisor;
        Some(Self(if negative { -size } else { size }))
    }

    pub(super) fn from_int(n: i64) -> Self {
        Self(i128::from(n) * ONE)
    }

    pub(super) fn add(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    pub(super) fn sub(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    pub(super) fn sign(self) -> i64 {
        self.0.signum() as i64
    }

    /// The amount as a whole number that fits 64 bits.
    pub(super) fn as_integer(self) -> Option<i64> {
        (self.0 % ONE == 0)
            .then(|| i64::try_from(self.0 / ONE).ok())
            .flatten()
    }

    pub(super) fn as_float(self) -> f64 {
        self.0 as f64 / ONE as f64
    }
}

impl fmt::Display for CelQuantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_float())
    }
}

fn multiplier(suffix: &str) -> Option<(i128, i128)> {
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1000),
        "k" => (1000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000, 1),
        "E" => (1_000_000_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        _ => return exponent(suffix),
    })
}

fn exponent(suffix: &str) -> Option<(i128, i128)> {
    let digits = suffix.strip_prefix(['e', 'E'])?;
    let exponent: i32 = digits.parse().ok()?;
    let power = 10_i128.checked_pow(exponent.unsigned_abs())?;
    Some(if exponent < 0 { (1, power) } else { (power, 1) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_compare_by_amount() {
        for (a, b) in [
            ("1", "1000m"),
            ("1Ki", "1024"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1k"),
            ("0.5", "500m"),
            ("-1", "-1000m"),
        ] {
            assert_eq!(
                CelQuantity::parse(a).unwrap(),
                CelQuantity::parse(b).unwrap(),
                "{a} {b}"
            );
        }
        assert!(CelQuantity::parse("1G") < CelQuantity::parse("1Gi"));
    }

    #[test]
    fn nonsense_is_not_a_quantity() {
        for text in ["", "-", ".", "1.2.3", "1Kb", "Gi", "1e", "1e99", "one"] {
            assert_eq!(CelQuantity::parse(text), None, "{text}");
        }
    }
}
