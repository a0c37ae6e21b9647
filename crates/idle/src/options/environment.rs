//! Reads environment variables.

use std::{collections::BTreeSet, fmt, net::IpAddr, str::FromStr, time::Duration};

use neap_kit::duration;

use super::Error;

/// Environment variables, looked up by name.
#[derive(Clone, Copy)]
pub struct Environment<'a>(pub &'a dyn Fn(&str) -> Option<String>);

impl Environment<'_> {
    /// A text; an empty one counts as absent.
    pub fn text(&self, name: &str) -> Option<String> {
        let text = (self.0)(name)?.trim().to_owned();
        Some(text).filter(|text| !text.is_empty())
    }

    /// A required text.
    pub fn required(&self, name: &'static str, wants: &'static str) -> Result<String, Error> {
        self.text(name).ok_or(Error::Unset { name, wants })
    }

    /// A required port.
    pub fn required_port(&self, name: &'static str) -> Result<u16, Error> {
        const WANTS: &str = "a port from 1 to 65535";
        let text = self.required(name, WANTS)?;
        let port = text.parse().ok().filter(|port| *port != 0);
        port.ok_or_else(|| invalid(name, &text, WANTS))
    }

    /// A positive duration in the notation of Go.
    pub fn duration(&self, name: &str, default: Duration) -> Result<Duration, Error> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        let read = duration::parse(&text).ok().filter(|it| !it.is_zero());
        read.ok_or_else(|| invalid(name, &text, "a duration above zero such as 30s"))
    }

    /// A whole number of seconds.
    pub fn seconds(&self, name: &str, default: u64) -> Result<Duration, Error> {
        let wants = "a whole number of seconds such as 30";
        self.number(name, default, wants).map(Duration::from_secs)
    }

    /// A number.
    pub fn number<T: FromStr>(
        &self,
        name: &str,
        default: T,
        wants: &'static str,
    ) -> Result<T, Error> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        text.parse().map_err(|_| invalid(name, &text, wants))
    }

    /// An IP address of this machine.
    pub fn host(&self, name: &str) -> Result<Option<IpAddr>, Error> {
        let wants = "an address of this machine such as 10.0.0.7, or nothing for all of them";
        let text = self.text(name);
        let read = text.map(|text| text.parse().map_err(|_| invalid(name, &text, wants)));
        read.transpose()
    }

    /// Comma-separated names.
    pub fn names(&self, name: &str) -> BTreeSet<String> {
        let listed = self.text(name).unwrap_or_default();
        let listed = listed.split(',').map(str::trim).filter(|it| !it.is_empty());
        listed.map(str::to_owned).collect()
    }

    /// A boolean in the notation of Go.
    pub fn boolean(&self, name: &str, default: bool) -> Result<bool, Error> {
        let Some(text) = self.text(name) else {
            return Ok(default);
        };
        parse_bool(&text).ok_or_else(|| invalid(name, &text, "true or false"))
    }
}

/// Parses a boolean as `strconv.ParseBool` of Go does.
pub(crate) fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

pub(crate) fn invalid(name: &str, value: &str, wants: &'static str) -> Error {
    Error::Invalid {
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
