//! Regular expressions as definitions write them.
//!
//! They are written for Go's RE2. The `regex` crate reads them with small differences, which this
//! module translates: `\d`, `\w`, `\s` and `\b` are ASCII, brackets and set operators inside a
//! class are literal, `{` without a count is literal, `\Q…\E` quotes.

use std::iter::Peekable;

use regex::{Regex, RegexBuilder};

/// Bytes of a compiled expression, at most, so that a definition cannot fill the memory.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// Bytes of a compiled expression of weight one, at most.
const LIGHT_COMPILED_BYTES: usize = 1 << 14;

/// Compiles `source`; unanchored, as in the API server.
pub(crate) fn pattern(source: &str) -> Result<Regex, regex::Error> {
    build(&translate(source), MAX_COMPILED_BYTES)
}

/// An expression and its weight: how much work one character of text may cost, in units of a light
/// expression.
#[derive(Debug, Clone)]
pub(crate) struct WeighedPattern {
    pub(crate) regex: Regex,
    pub(crate) weight: usize,
}

/// Compiles `source` and weighs it. The engine does not report the compiled size, so growing limits
/// are tried, up to `most` times a light expression.
pub(crate) fn weighed(source: &str, most: usize) -> Result<WeighedPattern, regex::Error> {
    let translated = translate(source);
    let mut weight = 1;
    loop {
        match build(&translated, LIGHT_COMPILED_BYTES * weight) {
            Err(regex::Error::CompiledTooBig(_)) if weight * 4 <= most => weight *= 4,
            Err(error) => return Err(error),
            Ok(regex) => return Ok(WeighedPattern { regex, weight }),
        }
    }
}

fn build(translated: &str, size: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(translated).size_limit(size).build()
}

fn translate(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 8);
    let mut chars = source.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some((at, 'Q')) => quote(&mut out, &source[at + 1..], &mut chars),
                Some((_, class)) => escape(&mut out, class),
                None => out.push('\\'),
            },
            '[' => {
                out.push('[');
                class(&mut out, source, &mut chars);
            }
            '{' if !counts(&source[at..]) => out.push_str("\\{"),
            other => out.push(other),
        }
    }
    out
}

type PatternChars<'s> = Peekable<std::str::CharIndices<'s>>;

/// `\Q…\E`: everything up to the end stands for itself.
fn quote(out: &mut String, rest: &str, chars: &mut PatternChars<'_>) {
    let (quoted, skipped) = match rest.find("\\E") {
        Some(end) => (&rest[..end], &rest[..end + 2]),
        None => (rest, rest),
    };
    out.push_str(&regex::escape(quoted));
    for _ in skipped.chars() {
        chars.next();
    }
}

fn escape(out: &mut String, class: char) {
    match class {
        'd' => out.push_str("[0-9]"),
        'D' => out.push_str("[^0-9]"),
        'w' => out.push_str("[0-9A-Za-z_]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        's' => out.push_str("[\\t\\n\\x0C\\r ]"),
        'S' => out.push_str("[^\\t\\n\\x0C\\r ]"),
        'b' => out.push_str("(?-u:\\b)"),
        other => out.extend(['\\', other]),
    }
}

/// Translates the rest of a bracketed class, its end included.
fn class(out: &mut String, source: &str, chars: &mut PatternChars<'_>) {
    if chars.next_if(|&(_, c)| c == '^').is_some() {
        out.push('^');
    }
    // A bracket that comes first is literal.
    if chars.next_if(|&(_, c)| c == ']').is_some() {
        out.push_str("\\]");
    }
    while let Some((at, c)) = chars.next() {
        match c {
            ']' => return out.push(']'),
            '\\' => match chars.next() {
                Some((_, 'd')) => out.push_str("0-9"),
                Some((_, 'w')) => out.push_str("0-9A-Za-z_"),
                Some((_, 's')) => out.push_str("\\t\\n\\x0C\\r "),
                Some((_, other)) => out.extend(['\\', other]),
                None => out.push('\\'),
            },
            '[' => match posix(&source[at..]) {
                Some(name) => {
                    out.push_str(name);
                    for _ in name.chars().skip(1) {
                        chars.next();
                    }
                }
                None => out.push_str("\\["),
            },
            '&' | '~' => out.extend(['\\', c]),
            '-' if source[at..].starts_with("--") => out.push_str("\\-"),
            other => out.push(other),
        }
    }
}

/// `[:alpha:]`.
fn posix(rest: &str) -> Option<&str> {
    let inner = rest.strip_prefix("[:")?;
    let end = inner.find(":]")?;
    let plain = inner[..end]
        .chars()
        .all(|c| c.is_ascii_lowercase() || c == '^');
    plain.then(|| &rest[..end + 4])
}

/// Whether a brace begins a count: `{2}`, `{2,}`, `{2,5}`.
fn counts(rest: &str) -> bool {
    let Some((inside, _)) = rest[1..].split_once('}') else {
        return false;
    };
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match inside.split_once(',') {
        Some((least, most)) => number(least) && (most.is_empty() || number(most)),
        None => number(inside),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_mean_what_they_were_written_to_mean() {
        for (source, text, expected) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^\D$", "x", true),
            (r"^[\d.]+$", "1.2", true),
            (r"^[\w-]+$", "a-b_", true),
            (r"^[\w-]+$", "é", false),
            (r"^\[\d\]$", "[1]", true),
            (r"^\\d$", "\\d", true),
            (r"^[^[]+$", "ab", true),
            (r"^[^[]+$", "a[", false),
            (r"^[a[]+$", "a[a", true),
            (r"^[]a]+$", "]a", true),
            (r"^[^]a]+$", "b", true),
            (r"^[a&&b]+$", "&a", true),
            (r"^[[:alpha:]_]+$", "ab_", true),
            (r"^[[:alpha:]_]+$", "1", false),
            (r"^\${a}$", "${a}", true),
            (r"^a{2}$", "aa", true),
            (r"^a{2,}$", "aaa", true),
            (r"^a{1,2}$", "aaa", false),
            (r"^{$", "{", true),
            (r"^\Qa.b[\E+$", "a.b[[", true),
            (r"^a\/b$", "a/b", true),
            (r"\bx\b", "a x b", true),
            (r"(?i)^ABC$", "abc", true),
        ] {
            assert_eq!(
                pattern(source).unwrap().is_match(text),
                expected,
                "{source} {text}"
            );
        }
    }

    #[test]
    fn nonsense_and_monsters_are_refused() {
        for source in ["(", "[a", "*a", "(?=a)", r"\1", "((a{1000}){1000}){1000}"] {
            assert!(pattern(source).is_err(), "{source}");
        }
    }

    #[test]
    fn larger_expressions_weigh_more() {
        let light = weighed("^[a-z]+$", 64).unwrap();
        let heavy = weighed("^(a{0,50}b){0,20}$", 64).unwrap();
        assert_eq!(light.weight, 1);
        assert!(heavy.weight > 1);
        assert!(weighed("^(a{0,50}b){0,20}$", 1).is_err());
    }

    proptest! {
        #[test]
        fn a_quoted_text_matches_itself(text in r"[ -~&&[^\\]]{0,12}") {
            let source = format!("^\\Q{text}\\E$");
            prop_assert!(pattern(&source).unwrap().is_match(&text));
        }

        #[test]
        fn no_text_makes_the_translation_fail_badly(source in r"[\[\]\\^:{}a-dQE0-9,é&~-]{0,16}") {
            let _ = pattern(&source);
        }
    }
}
