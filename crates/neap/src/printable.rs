//! Texts of servers and registries, as a terminal may show them.
//!
//! A message of an Event or a name in a payload may contain control characters that move the cursor, rename the
//! window or hide what follows. Everything that is written for people passes through here; documents for programs
//! do not, because their format escapes what it must.

use std::{borrow::Cow, fmt::Write as _, path::Path};

/// The text with its control characters escaped. Newlines and tabs stay.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_unsafe(c) && !matches!(c, '\n' | '\t'))
}

/// The text on one line, with its control characters escaped: a value that must not look like the lines after it.
pub(crate) fn printable_line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe)
}

/// The text with its control characters escaped; the lines after the first begin `indent` columns to the right.
pub(crate) fn indented(text: &str, indent: usize) -> String {
    printable(text).replace('\n', &format!("\n{:indent$}", ""))
}

/// Whether a terminal takes the character for a command, or shows what follows it in another order. `is_control` is
/// true for C0, DEL and C1.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The path as one word of a POSIX shell, for commands that the user may copy.
pub(crate) fn shell_path(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

/// The text as one word of a POSIX shell.
pub(crate) fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !is_escaped(c) => safe.push(c),
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            c => {
                let _ = write!(safe, "{}", c.escape_unicode());
            }
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        for (text, expected) in [
            (
                "\u{1b}[2J\u{1b}]0;owned\u{7}",
                r"\u{1b}[2J\u{1b}]0;owned\u{7}",
            ),
            ("all well\rroot#", r"all well\rroot#"),
            ("\u{9b}31m\u{7f}\u{0}", r"\u{9b}31m\u{7f}\u{0}"),
            (
                "a\u{202e}b\u{2066}c\u{2028}d",
                r"a\u{202e}b\u{2066}c\u{2028}d",
            ),
        ] {
            assert_eq!(printable(text), expected);
            assert_eq!(printable_line(text), expected);
        }
    }

    #[test]
    fn words_of_all_languages_stay_as_they_are() {
        let text = "✓ größer, שלום, 日本語 · …\n\tnext";
        assert!(matches!(printable(text), Cow::Borrowed(same) if same == text));
        assert_eq!(printable_line("a\n\tb"), r"a\n\tb");
    }

    #[test]
    fn lines_of_a_message_cannot_pass_for_lines_of_the_report() {
        assert_eq!(
            indented("one\nDo  run this\u{1b}", 4),
            "one\n    Do  run this\\u{1b}"
        );
    }

    #[test]
    fn paths_are_quoted_for_a_shell() {
        for (path, word) in [
            ("/tmp/neap-1/kubeconfig", "/tmp/neap-1/kubeconfig"),
            ("/my data/it's", r"'/my data/it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(path), word);
        }
    }
}
