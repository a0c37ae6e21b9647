//! Parsing quantities.

use std::str::FromStr;

use super::{Error, Format, MOST, NANO, Quantity};

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
        if !is_suffix(suffix) {
            return Err(Error::Form);
        }
        if whole.is_empty() && fraction.is_empty() {
            return Err(Error::Number);
        }
        let scale = SuffixFactor::parse(suffix)?;
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

/// Letters, a sign, digits.
fn is_suffix(text: &str) -> bool {
    let text = text.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The factor of a suffix: `10^ten * 2^two`.
#[derive(Clone, Copy)]
struct SuffixFactor {
    ten: i64,
    two: u32,
    format: Format,
}

impl SuffixFactor {
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
/// Only as many leading digits as fit the arithmetic are used; no value below the cap needs more,
/// and the rest still counts for rounding up.
fn magnitude(whole: &str, fraction: &str, scale: SuffixFactor) -> i128 {
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
