//! Parsing of times, with the error messages of kube-apiserver's parser.

use std::fmt::Write;

use jiff::Timestamp;

const SECONDS: &str = "2006-01-02T15:04:05Z07:00";
const MICROS: &str = "2006-01-02T15:04:05.000000Z07:00";

/// The separator before each part of a time, the part's name, length and range.
const PARTS: [(&str, &str, usize, (u32, u32)); 6] = [
    ("", "2006", 4, (0, 9999)),
    ("-", "01", 2, (1, 12)),
    ("-", "02", 2, (1, 31)),
    ("T", "15", 2, (0, 23)),
    (":", "04", 2, (0, 59)),
    (":", "05", 2, (0, 59)),
];

/// Parses a time of whole seconds, or one with exactly six digits of a second. The error is the
/// text that follows the quoted value.
pub(super) fn parse(text: &str, micros: bool) -> Result<Timestamp, String> {
    check(text, micros)?;
    text.parse()
        .map_err(|_| format!("parsing time {}: day out of range", quoted(text)))
}

fn check(text: &str, micros: bool) -> Result<(), String> {
    let layout = if micros { MICROS } else { SECONDS };
    let cannot = |rest: &str, part: &str| {
        let (text, rest) = (quoted(text), quoted(rest));
        format!("parsing time {text} as {layout:?}: cannot parse {rest} as {part:?}")
    };
    let mut rest = text;
    for (before, part, length, (least, most)) in PARTS {
        rest = rest
            .strip_prefix(before)
            .ok_or_else(|| cannot(rest, before))?;
        let digits = rest.get(..length).filter(|digits| is_number(digits));
        let Some(number) = digits.and_then(|digits| digits.parse::<u32>().ok()) else {
            return Err(cannot(rest, part));
        };
        if number < least || number > most {
            return Err(format!(
                "parsing time {}: {} out of range",
                quoted(text),
                word(part)
            ));
        }
        rest = &rest[length..];
    }
    let fraction = match fraction(rest) {
        ..7 if micros => return Err(cannot(rest, ".000000")),
        _ if micros => 7,
        length => length,
    };
    let zone = &rest[fraction..];
    let offset = zone.as_bytes();
    let hours = |at: usize| zone.get(at..at + 2).is_some_and(is_number);
    let zoned = offset.first() == Some(&b'Z')
        || matches!(offset.first(), Some(b'+' | b'-'))
            && hours(1)
            && offset.get(3) == Some(&b':')
            && hours(4);
    if !zoned {
        return Err(cannot(zone, "Z07:00"));
    }
    let length = if offset[0] == b'Z' { 1 } else { 6 };
    match &zone[length..] {
        "" => Ok(()),
        more => Err(format!(
            "parsing time {}: extra text: {}",
            quoted(text),
            quoted(more)
        )),
    }
}

/// In quotes, with every byte that is not plain ASCII as a number.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' | 0x7f => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push('"');
    out
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The length of a fraction of a second with its point.
fn fraction(rest: &str) -> usize {
    let Some(after) = rest.strip_prefix(['.', ',']) else {
        return 0;
    };
    match after.bytes().take_while(u8::is_ascii_digit).count() {
        0 => 0,
        digits => digits + 1,
    }
}

fn word(part: &str) -> &'static str {
    match part {
        "01" => "month",
        "02" => "day",
        "15" => "hour",
        "04" => "minute",
        _ => "second",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_refused_where_it_goes_wrong() {
        let layout = "as \"2006-01-02T15:04:05Z07:00\": cannot parse";
        for (text, expected) in [
            ("yesterday", format!("{layout} \"yesterday\" as \"2006\"")),
            ("2020-01-02", format!("{layout} \"\" as \"T\"")),
            (
                "2020-01-02T03:04:05",
                format!("{layout} \"\" as \"Z07:00\""),
            ),
            ("2020-1-2", format!("{layout} \"1-2\" as \"01\"")),
            ("2020-13-02T03:04:05Z", ": month out of range".into()),
            ("2020-02-30T03:04:05Z", ": day out of range".into()),
            ("2020-01-02T03:04:05Zx", ": extra text: \"x\"".into()),
        ] {
            let problem = parse(text, false).unwrap_err();
            assert!(problem.ends_with(&expected), "{text}: {problem}");
        }
        assert!(parse("2020-01-02T03:04:05.5+02:00", false).is_ok());
        assert!(parse("2020-01-02T03:04:05.123456Z", true).is_ok());
        assert!(parse("2020-01-02T03:04:05Z", true).is_err());
    }
}
