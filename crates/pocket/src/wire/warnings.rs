//! `Warning` headers: bounded, so that an answer with many of them still fits what clients read.

use std::collections::HashSet;

use http::{HeaderMap, HeaderValue, header::WARNING};

/// The most warnings one answer carries.
const MOST: usize = 100;
/// The most bytes they have together.
const BYTES: usize = 4 << 10;

/// Adds each warning once, until the bounds are met; those after it are left out.
pub(super) fn insert(texts: &[String], headers: &mut HeaderMap) {
    let mut seen = HashSet::new();
    let mut room = BYTES;
    for text in texts {
        if !seen.insert(text.as_str()) {
            continue;
        }
        // Line ends would end the header; the rest of it is still worth reading.
        let line = text.replace(|c: char| c.is_ascii_control(), " ");
        let quoted = line.replace('\\', "\\\\").replace('"', "\\\"");
        let value = format!("299 - \"{quoted}\"");
        if seen.len() > MOST || value.len() > room {
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
        assert_eq!(of(&short).len(), MOST);
        let long = ["x".repeat(3000), "y".repeat(3000)];
        assert_eq!(of(&[&long[0], &long[1]]).len(), 1);
    }
}
