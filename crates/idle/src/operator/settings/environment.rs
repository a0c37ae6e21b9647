//! Reads variables.

use std::{collections::BTreeSet, fmt, net::IpAddr, str::FromStr, time::Duration};

use super::Error;
use crate::trigger::duration;

/// The variables of a process, by their names.
#[derive(Clone, Copy)]
pub struct Environment<'a>(pub &'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    /// A text; an empty one is none.
    pub fn text(&self, name: &str) -> Option<String> {
        let text = (self.0)(name)?.trim().to_owned();
        Some(text).filter(|text| !text.is_empty())
    }

    /// A text that must be there.
    pub fn needed(&self, name: &'static str, wants: &'static str) -> Result<String, Error> {
        self.text(name).ok_or(Error::Unset { name, wants })
    }

    /// A port that must be there.
    pub fn needed_port(&self, name: &'static str) -> Result<u16, Error> {
        const WANTS: &str = "a port from 1 to 65535";
        let text = self.needed(name, WANTS)?;
        let port = text.parse().ok().filter(|port| *port != 0);
        port.ok_or_else(|| bad(name, &text, WANTS))
    }

    /// A duration above nothing, as Go writes them.
    pub fn duration(&self, name: &str, usual: Duration) -> Result<Duration, Error> {
        let Some(text) = self.text(name) else {
            return Ok(usual);
        };
        let read = duration::parse(&text).ok().filter(|it| !it.is_zero());
        read.ok_or_else(|| bad(name, &text, "a duration above zero such as 30s"))
    }

    /// Whole seconds.
    pub fn seconds(&self, name: &str, usual: u64) -> Result<Duration, Error> {
        let wants = "a whole number of seconds such as 30";
        self.number(name, usual, wants).map(Duration::from_secs)
    }

    /// A number.
    pub fn number<T: FromStr>(
        &self,
        name: &str,
        usual: T,
        wants: &'static str,
    ) -> Result<T, Error> {
        let Some(text) = self.text(name) else {
            return Ok(usual);
        };
        text.parse().map_err(|_| bad(name, &text, wants))
    }

    /// An address of this machine.
    pub fn host(&self, name: &str) -> Result<Option<IpAddr>, Error> {
        let wants = "an address of this machine such as 10.0.0.7, or nothing for all of them";
        let text = self.text(name);
        let read = text.map(|text| text.parse().map_err(|_| bad(name, &text, wants)));
        read.transpose()
    }

    /// Names with commas between them.
    pub fn names(&self, name: &str) -> BTreeSet<String> {
        let listed = self.text(name).unwrap_or_default();
        let listed = listed.split(',').map(str::trim).filter(|it| !it.is_empty());
        listed.map(str::to_owned).collect()
    }

    /// Yes or no, as Go reads them.
    pub fn switch(&self, name: &str, usual: bool) -> Result<bool, Error> {
        let Some(text) = self.text(name) else {
            return Ok(usual);
        };
        yes_or_no(&text).ok_or_else(|| bad(name, &text, "true or false"))
    }
}

pub(super) fn yes_or_no(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

pub(super) fn bad(name: &str, value: &str, wants: &'static str) -> Error {
    Error::Bad {
        name: name.to_owned(),
        value: format!("{value:?}"),
        wants,
    }
}

impl fmt::Debug for Environment<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}
