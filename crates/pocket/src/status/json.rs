//! Errors of invalid JSON, with the messages of kube-apiserver.

/// The error in `text`, at the position of `error`.
pub fn unreadable_json(text: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let said = error.to_string();
    let mut lines = text.split(|byte| *byte == b'\n');
    let line = lines.nth(error.line().saturating_sub(1));
    let at = error.column().saturating_sub(1);
    let split = line.and_then(|line| line.split_at_checked(at));
    let Some((before, [found, ..])) = split.filter(|_| error.is_syntax()) else {
        return said;
    };
    let place = match said.split(" at line").next().unwrap_or_default() {
        "expected value" => "looking for beginning of value",
        "trailing characters" => "after top-level value",
        "key must be a string" => "looking for beginning of object key string",
        "expected `:`" => "after object key",
        "expected `,` or `}`" => "after object key:value pair",
        "expected `,` or `]`" => "after array element",
        "expected ident" => match literal(before) {
            Some(place) => return format!("invalid character '{}' {place}", char::from(*found)),
            None => return said,
        },
        "invalid number" => match before {
            [.., b'.'] => "after decimal point in numeric literal",
            [.., b'e' | b'E' | b'+'] => "in exponent of numeric literal",
            _ => "in numeric literal",
        },
        _ => return said,
    };
    format!("invalid character '{}' {place}", char::from(*found))
}

/// The literal that was begun, and what should have come next.
fn literal(before: &[u8]) -> Option<String> {
    ["null", "true", "false"].iter().find_map(|literal| {
        let length = (1..literal.len()).rfind(|&n| before.ends_with(&literal.as_bytes()[..n]))?;
        let expected = &literal[length..=length];
        Some(format!("in literal {literal} (expecting '{expected}')"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_told_in_known_words() {
        for (text, expected) in [
            (
                "{\"a\":}",
                "invalid character '}' looking for beginning of value",
            ),
            (
                "nope",
                "invalid character 'o' in literal null (expecting 'u')",
            ),
            (
                "trux",
                "invalid character 'x' in literal true (expecting 'e')",
            ),
            (
                "[falsy]",
                "invalid character 'y' in literal false (expecting 'e')",
            ),
            ("{\"a\" 1}", "invalid character '1' after object key"),
            (
                "{a}",
                "invalid character 'a' looking for beginning of object key string",
            ),
            ("{} x", "invalid character 'x' after top-level value"),
            ("-x", "invalid character 'x' in numeric literal"),
            (
                "1.x",
                "invalid character 'x' after decimal point in numeric literal",
            ),
            ("\"abc", "unexpected end of JSON input"),
            ("", "unexpected end of JSON input"),
        ] {
            let error = serde_json::from_str::<serde::de::IgnoredAny>(text).unwrap_err();
            assert_eq!(unreadable_json(text.as_bytes(), &error), expected, "{text}");
        }
    }
}
