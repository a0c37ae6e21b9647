//! Quantities of bytes in the notation of Kubernetes.

const SUFFIXES: [(&str, u64); 12] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("Pi", 1 << 50),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
    ("P", 1_000_000_000_000_000),
    ("Ei", 1 << 60),
    ("E", 1_000_000_000_000_000_000),
];

/// The number of bytes, such as 34359738368 for `32Gi`. Fractions are not bytes, so they are refused.
pub fn parse_quantity(text: &str) -> Option<u64> {
    let found = SUFFIXES
        .iter()
        .find(|(suffix, _)| text.len() > suffix.len() && text.ends_with(suffix));
    let (number, factor) = match found {
        Some((suffix, factor)) => (text.strip_suffix(suffix)?, *factor),
        None => (text, 1),
    };
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.then(|| number.parse().ok())??;
    let bytes = number.checked_mul(factor)?;
    i64::try_from(bytes).ok().map(|_| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_bytes_and_anything_else_is_refused() {
        for (text, bytes) in [
            ("1024", Some(1024)),
            ("32Gi", Some(32 << 30)),
            ("33G", Some(33_000_000_000)),
            ("1.5Gi", None),
            ("Gi", None),
            ("-1Gi", None),
            ("9Ei", None),
            ("8Ei", None),
            ("7Ei", Some(7 << 60)),
            ("", None),
            ("10 Gi", None),
        ] {
            assert_eq!(parse_quantity(text), bytes, "{text}");
        }
    }
}
