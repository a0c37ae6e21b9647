//! The escaped names of properties whose names are not CEL identifiers.

use std::borrow::Cow;

/// Reserved words that a property may be called; they are written `__word__`.
const WORDS: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

const ESCAPES: &[(&str, &str)] = &[
    ("__underscores__", "__"),
    ("__dot__", "."),
    ("__dash__", "-"),
    ("__slash__", "/"),
];

/// The property that `name` means in an expression.
pub(super) fn property(name: &str) -> Cow<'_, str> {
    if !name.contains("__") {
        return name.into();
    }
    let word = name.strip_prefix("__").and_then(|n| n.strip_suffix("__"));
    if let Some(word) = word.filter(|word| WORDS.contains(word)) {
        return word.into();
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        if let Some((text, meant)) = ESCAPES.iter().find(|(text, _)| rest.starts_with(text)) {
            out.push_str(meant);
            rest = &rest[text.len()..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_names_mean_the_property() {
        for (name, meant) in [
            ("plain", "plain"),
            ("a__dash__b", "a-b"),
            ("a__dot__b__slash__c", "a.b/c"),
            ("a__underscores__b", "a__b"),
            ("__namespace__", "namespace"),
            ("__other__", "__other__"),
        ] {
            assert_eq!(property(name), meant);
        }
    }
}
