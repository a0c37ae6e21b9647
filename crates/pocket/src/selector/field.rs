//! Field selectors: `metadata.name=x,status.phase!=Running`.

use std::{borrow::Cow, fmt};

use super::{bounded, counted};
use crate::status::{ApiError, Result};

#[cfg(test)]
mod tests;

/// One condition on one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRequirement {
    /// Such as `metadata.name`.
    pub path: Box<str>,
    /// Whether the field must have the value, or must not.
    pub equal: bool,
    /// The value, unescaped; an absent field counts as the empty text.
    pub value: Box<str>,
}

/// A conjunction of requirements on fields.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

impl FieldSelector {
    /// Selects every object.
    pub fn everything() -> Self {
        Self::default()
    }

    /// The conjunction of these.
    pub fn all_of(requirements: Vec<FieldRequirement>) -> Self {
        Self { requirements }
    }

    /// Parses a selector; `,`, `=` and `\` inside values are escaped with a `\`.
    pub fn parse(text: &str) -> Result<Self> {
        bounded(text)?;
        let mut requirements = Vec::new();
        for term in terms(text).filter(|term| !term.is_empty()) {
            requirements.push(requirement(text, term)?);
            counted(requirements.len())?;
        }
        Ok(Self { requirements })
    }

    /// The requirements, in the order they were written.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether an object is selected; `lookup` reads its fields by path.
    pub fn matches<'a>(&self, mut lookup: impl FnMut(&str) -> Cow<'a, str>) -> bool {
        self.requirements
            .iter()
            .all(|r| (lookup(&r.path) == *r.value) == r.equal)
    }

    /// The exact value required of `path`, if there is one.
    pub fn exact(&self, path: &str) -> Option<&str> {
        let found = self
            .requirements
            .iter()
            .find(|r| r.equal && *r.path == *path);
        found.map(|r| &*r.value)
    }

    /// The exact name required: the mark of a watch on a single object.
    pub fn exact_name(&self) -> Option<&str> {
        self.exact("metadata.name")
    }

    /// The exact namespace required.
    pub fn exact_namespace(&self) -> Option<&str> {
        self.exact("metadata.namespace")
    }

    /// Refuses a selector over a field that is not supported.
    pub fn check(&self, mut supported: impl FnMut(&str) -> bool) -> Result<()> {
        match self.requirements.iter().find(|r| !supported(&r.path)) {
            None => Ok(()),
            Some(r) => Err(ApiError::bad_request(format!(
                "field label not supported: {}",
                r.path
            ))),
        }
    }
}

/// The parts between commas that are not escaped.
fn terms(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c| {
        let splits = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        splits
    })
}

fn requirement(selector: &str, term: &str) -> Result<FieldRequirement> {
    let not_understood = || {
        ApiError::bad_request(format!(
            "invalid selector: '{selector}'; can't understand '{term}'"
        ))
    };
    let at = term.find('=').ok_or_else(not_understood)?;
    let (path, equal) = match term[..at].strip_suffix('!') {
        Some(path) => (path, false),
        None => (&term[..at], true),
    };
    let value = &term[at + 1..];
    let value = if equal {
        value.strip_prefix('=').unwrap_or(value)
    } else {
        value
    };
    Ok(FieldRequirement {
        path: path.into(),
        equal,
        value: unescape(value)?.into(),
    })
}

fn unescape(value: &str) -> Result<Cow<'_, str>> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(Cow::Borrowed(value));
    }
    let mut plain = String::with_capacity(value.len());
    let mut rest = value.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some(c @ ('\\' | ',' | '=')) => plain.push(c),
                other => {
                    let sequence: String = ['\\'].into_iter().chain(other).collect();
                    return Err(ApiError::bad_request(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    )));
                }
            },
            ',' | '=' => {
                return Err(ApiError::bad_request(format!(
                    "invalid field selector: unescaped character in value: {c}"
                )));
            }
            c => plain.push(c),
        }
    }
    Ok(Cow::Owned(plain))
}

/// The text that parses to an equal selector.
impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, r) in self.requirements.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let operator = if r.equal { "=" } else { "!=" };
            write!(f, "{comma}{}{operator}", r.path)?;
            for c in r.value.chars() {
                if matches!(c, '\\' | ',' | '=') {
                    f.write_str("\\")?;
                }
                write!(f, "{c}")?;
            }
        }
        Ok(())
    }
}
