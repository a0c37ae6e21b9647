//! `fieldValidation`: how unknown and duplicate fields are treated.

use super::{unreadable, unreadable_patch};
use crate::status::{ApiError, Result};

/// The `fieldValidation` parameter of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Ignore them.
    Ignore,
    /// Reply with a `Warning` header per field.
    #[default]
    Warn,
    /// Refuse the request.
    Strict,
}

impl FieldValidation {
    /// The values of the parameter, for the refusal of others.
    pub const SUPPORTED: [&'static str; 4] = ["", "Ignore", "Strict", "Warn"];

    /// Reads the parameter; absent and empty are `Warn`.
    pub fn parse(text: Option<&str>) -> Option<Self> {
        match text.unwrap_or_default() {
            "" | "Warn" => Some(Self::Warn),
            "Ignore" => Some(Self::Ignore),
            "Strict" => Some(Self::Strict),
            _ => None,
        }
    }

    /// The warnings of the reply, or the 400 that refuses an object that was sent whole.
    pub fn check(
        self,
        unknown: &[String],
        duplicates: &[String],
        kind: &str,
        api_version: &str,
    ) -> Result<Vec<String>> {
        self.decide(unknown, duplicates, |why| {
            unreadable(kind, api_version, why)
        })
    }

    /// The warnings of the reply, or the 422 that refuses a patch.
    pub fn check_patch(self, unknown: &[String], duplicates: &[String]) -> Result<Vec<String>> {
        self.decide(unknown, duplicates, unreadable_patch)
    }

    fn decide(
        self,
        unknown: &[String],
        duplicates: &[String],
        refuse: impl FnOnce(&str) -> ApiError,
    ) -> Result<Vec<String>> {
        match self {
            Self::Ignore => Ok(Vec::new()),
            Self::Warn => Ok(problems(unknown, duplicates).collect()),
            Self::Strict => match strict_problem(unknown, duplicates) {
                None => Ok(Vec::new()),
                Some(why) => Err(refuse(&why)),
            },
        }
    }
}

/// `strict decoding error: unknown field "spec.bogus", duplicate field "spec.replicas"`, if there
/// are any.
pub fn strict_problem(unknown: &[String], duplicates: &[String]) -> Option<String> {
    if unknown.is_empty() && duplicates.is_empty() {
        return None;
    }
    let all: Vec<String> = problems(unknown, duplicates).collect();
    Some(format!("strict decoding error: {}", all.join(", ")))
}

fn problems(unknown: &[String], duplicates: &[String]) -> impl Iterator<Item = String> {
    let unknown = unknown.iter().map(|path| format!("unknown field {path:?}"));
    let twice = duplicates
        .iter()
        .map(|path| format!("duplicate field {path:?}"));
    unknown.chain(twice)
}
