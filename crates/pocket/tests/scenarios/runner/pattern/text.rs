//! String patterns.

use regex::Regex;
use serde_json::Value;

use super::{ABSENT, Match};

/// The `~` words for a format of text.
const FORMS: [(&str, &str); 3] = [
    (
        "~uid",
        r"^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$",
    ),
    ("~time", r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"),
    ("~rv", r"^[1-9][0-9]*$"),
];

impl Match {
    pub(super) fn text(&mut self, path: &str, pattern: &str, value: &Value) {
        if let Some((_, form)) = FORMS.iter().find(|(word, _)| *word == pattern) {
            return self.regex(path, form, value);
        }
        if let Some(name) = pattern.strip_prefix('$').filter(|name| is_name(name)) {
            return self.variable(path, name, value);
        }
        let (word, rest) = pattern.split_once(' ').unwrap_or((pattern, ""));
        match word {
            "~any" => {}
            ABSENT => self.differs(path, &"nothing", value),
            "~empty" if value == "" => {}
            "~is" if value == rest => {}
            "~regex" => self.regex(path, rest, value),
            "~contains" => self.contains(path, rest, value),
            ">" | ">=" | "<" | "<=" if !rest.is_empty() => self.order(path, word, rest, value),
            "!=" => self.unequal(path, rest, value),
            word if word.starts_with('~') => self.differs(path, &pattern, value),
            _ => {
                if let Some(filled) = self.filled(path, pattern)
                    && *value != filled.as_str()
                {
                    self.differs(path, &Value::from(filled), value);
                }
            }
        }
    }

    /// A variable that is set must be equal; one that is not captures the value.
    fn variable(&mut self, path: &str, name: &str, value: &Value) {
        let found = plain(value);
        match self.variables.get(name) {
            None => self.variables.set(name, found),
            Some(set) if set == found => {}
            Some(set) => {
                let expected = format!("${name} = {set}");
                self.differs(path, &expected, value);
            }
        }
    }

    /// Named groups become variables.
    fn regex(&mut self, path: &str, pattern: &str, value: &Value) {
        let Some(filled) = self.filled(path, pattern) else {
            return;
        };
        let Ok(regex) = Regex::new(&filled) else {
            return self.differs(path, &format!("a regular expression, not {filled}"), value);
        };
        let text = plain(value);
        let Some(found) = regex.captures(&text) else {
            return self.differs(path, &format!("~regex {filled}"), value);
        };
        for name in regex.capture_names().flatten() {
            if let Some(group) = found.name(name) {
                self.variables.set(name, group.as_str());
            }
        }
    }

    fn contains(&mut self, path: &str, part: &str, value: &Value) {
        if let Some(filled) = self.filled(path, part)
            && !plain(value).contains(&filled)
        {
            self.differs(path, &format!("~contains {filled}"), value);
        }
    }

    fn unequal(&mut self, path: &str, other: &str, value: &Value) {
        if let Some(filled) = self.filled(path, other)
            && plain(value) == filled
        {
            self.differs(path, &format!("anything but {filled}"), value);
        }
    }

    /// `> 5`, or `> $a as $b` to capture the number.
    fn order(&mut self, path: &str, sign: &str, rest: &str, value: &Value) {
        let (bound, name) = rest.split_once(" as $").unwrap_or((rest, ""));
        let Some(bound) = self.filled(path, bound) else {
            return;
        };
        let found = plain(value);
        let holds = match (found.parse::<i128>(), bound.parse::<i128>()) {
            (Ok(found), Ok(bound)) => match sign {
                ">" => found > bound,
                ">=" => found >= bound,
                "<" => found < bound,
                _ => found <= bound,
            },
            _ => false,
        };
        if !holds {
            self.differs(path, &format!("{sign} {bound}"), value);
        } else if is_name(name) {
            self.variables.set(name, found);
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// A scalar as a person would write it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
