//! `Warning` headers: bounded, so that a response with many of them still fits what clients read.

use std::collections::HashSet;

use http::{HeaderMap, HeaderValue, header::WARNING};

/// Warnings of one response, at most.
const MAX_WARNINGS: usize = 100;
/// Bytes of all warnings together, at most.
const MAX_WARNING_BYTES: usize = 4 << 10;

/// Adds each warning once, up to the bounds; the rest is left out.
pub(super) fn insert(texts: &[String], headers: &mut HeaderMap) {
    let mut seen = HashSet::new();
    let mut room = MAX_WARNING_BYTES;
    for text in texts {
        if !seen.insert(text.as_str()) {
            continue;
        }
        // Line ends would end the header; the rest of the text is still useful.
        let line = text.replace(|c: char| c.is_ascii_control(), " ");
        let quoted = line.replace('\\', "\\\\").replace('"', "\\\"");
        let value = format!("299 - \"{quoted}\"");
        if seen.len() > MAX_WARNINGS || value.len() > room {
            return;
        }
        room -= value.len();
        if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
            headers.append(WARNING, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Vec<Vec<u8>> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let mut headers = HeaderMap::new();
        insert(&texts, &mut headers);
        let values = headers.get_all(WARNING).iter();
        values.map(|value| value.as_bytes().to_vec()).collect()
    }

    #[test]
    fn each_is_said_once_and_in_order() {
        assert_eq!(of(&["a", "b", "a"]), [b"299 - \"a\"", b"299 - \"b\""]);
    }

    #[test]
    fn other_scripts_and_line_ends_are_sent() {
        assert_eq!(of(&["\u{e9}\n\"x"]), ["299 - \"\u{e9} \\\"x\"".as_bytes()]);
    }

    #[test]
    fn many_and_long_ones_are_cut() {
        let short: Vec<String> = (0..200).map(|i| i.to_string()).collect();
        let short: Vec<&str> = short.iter().map(String::as_str).collect();
        assert_eq!(of(&short).len(), MAX_WARNINGS);
        let long = ["x".repeat(3000), "y".repeat(3000)];
        assert_eq!(of(&[&long[0], &long[1]]).len(), 1);
    }
}
