//! Variables of a scenario, and their use in text.

use std::{collections::BTreeMap, sync::LazyLock};

use regex::{Captures, Regex};

use super::Failure;

/// `$name` or `${name}`; compiled from a literal, so it always compiles.
static REFERENCE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\$(?:\{(\w+)\}|([A-Za-z_]\w*))").ok());
/// `$repeat{text,count}`, for bodies too large to write down.
static REPEAT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\$repeat\{([^,}]*),(\d+)\}").ok());

/// Words after a dollar sign that belong to strategic merge patches and schemas, not to scenarios.
const FOREIGN: [&str; 5] = [
    "patch",
    "setElementOrder",
    "deleteFromPrimitiveList",
    "retainKeys",
    "ref",
];

/// The variables captured so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, String>);

impl Variables {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// `text` with every variable replaced; an unset variable is a failure.
    pub(crate) fn fill(&self, text: &str) -> Result<String, Failure> {
        let Some(pattern) = REFERENCE.as_ref() else {
            return Ok(text.into());
        };
        let mut unknown = None;
        let filled = pattern.replace_all(text, |found: &Captures<'_>| {
            let name = named(found);
            if let Some(value) = self.get(name) {
                return value.to_owned();
            }
            if !FOREIGN.contains(&name) && name != "repeat" {
                unknown = Some(name.to_owned());
            }
            found[0].to_owned()
        });
        match unknown {
            Some(name) => Err(Failure::new(format!("nothing set ${name} before this"))),
            None => Ok(filled.into_owned()),
        }
    }

    /// `text` with variables replaced and repetitions expanded.
    pub(crate) fn fill_body(&self, text: &str) -> Result<String, Failure> {
        let filled = self.fill(text)?;
        let Some(repeat) = REPEAT.as_ref() else {
            return Ok(filled);
        };
        let written = repeat.replace_all(&filled, |found: &Captures<'_>| {
            found[1].repeat(found[2].parse().unwrap_or_default())
        });
        Ok(written.into_owned())
    }
}

/// The names of all variables mentioned in `text`, as the groups of regular expressions too.
pub(crate) fn mentioned(text: &str) -> Vec<String> {
    let groups = text.split("(?<").skip(1);
    let groups = groups.filter_map(|rest| Some(rest.split_once('>')?.0.to_owned()));
    let found = REFERENCE
        .as_ref()
        .map(|pattern| pattern.captures_iter(text));
    let names = found
        .into_iter()
        .flatten()
        .map(|found| named(&found).to_owned());
    names
        .chain(groups)
        .filter(|name| !FOREIGN.contains(&name.as_str()) && name != "repeat")
        .collect()
}

fn named<'t>(found: &Captures<'t>) -> &'t str {
    let group = found.get(1).or_else(|| found.get(2));
    group.map_or("", |group| group.as_str())
}
