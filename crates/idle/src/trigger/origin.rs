//! The origins of Prometheus servers, and which of them receive the operator's credentials.

use std::{fmt, str::FromStr};

use http::Uri;

use super::Problem;

/// Scheme, host and port of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    secure: bool,
    host: String,
    port: u16,
}

impl Origin {
    /// The origin of an address without a query.
    pub fn of(address: &Uri) -> Result<Self, Problem> {
        let secure = match address.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(Problem::Address),
        };
        let (Some(authority), None) = (address.authority(), address.query()) else {
            return Err(Problem::Address);
        };
        let host = authority.host().to_ascii_lowercase();
        if host.is_empty() {
            return Err(Problem::Address);
        }
        let usual = if secure { 443 } else { 80 };
        let port = authority.port_u16().unwrap_or(usual);
        Ok(Self { secure, host, port })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { secure, host, port } = self;
        let scheme = if *secure { "https" } else { "http" };
        write!(f, "{scheme}://{host}:{port}")
    }
}

/// Servers that receive the operator's credentials besides its default server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origins {
    /// The listed ones.
    Listed(Vec<Origin>),
    /// Every server that a trigger names, as in KubeElasti. A user who may write a trigger can obtain the
    /// credentials that way.
    All,
}

impl Origins {
    /// Whether `origin` receives them.
    pub fn include(&self, origin: &Origin) -> bool {
        match self {
            Self::Listed(listed) => listed.contains(origin),
            Self::All => true,
        }
    }
}

impl Default for Origins {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

/// An entry of a list is not an origin. Its text is not repeated, since it may contain credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("entry {0} is not an origin")]
pub struct InvalidOrigin(pub usize);

/// Comma-separated origins, or `*`.
impl FromStr for Origins {
    type Err = InvalidOrigin;

    fn from_str(list: &str) -> Result<Self, InvalidOrigin> {
        let entries = list.split(',').map(str::trim).enumerate();
        let entries: Vec<_> = entries.filter(|(_, entry)| !entry.is_empty()).collect();
        if entries.iter().any(|(_, entry)| *entry == "*") {
            return Ok(Self::All);
        }
        let origins = entries.into_iter().map(|(index, entry)| {
            // A path is refused: it would look like a restriction, and there is none.
            let uri = entry.parse::<Uri>().ok().filter(|uri| {
                let user = uri.authority().is_some_and(|it| it.as_str().contains('@'));
                uri.path() == "/" && !user
            });
            let origin = uri.and_then(|uri| Origin::of(&uri).ok());
            origin.ok_or(InvalidOrigin(index + 1))
        });
        origins.collect::<Result<_, _>>().map(Self::Listed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_servers_or_all_of_them() {
        let read = |list: &str| list.parse::<Origins>();
        let shown = |list: &str| match read(list).unwrap() {
            Origins::All => vec!["*".to_owned()],
            Origins::Listed(listed) => listed.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(shown(" , "), [] as [&str; 0]);
        assert_eq!(shown("*"), ["*"]);
        assert_eq!(shown("http://a, *"), ["*"]);
        assert_eq!(
            shown("https://Prometheus.example, http://b:9090/,"),
            ["https://prometheus.example:443", "http://b:9090"]
        );
        for (list, entry) in [
            ("prometheus:9090", 1),
            ("http://a,ftp://b", 2),
            ("http://a/tenant", 1),
            ("http://a?b", 1),
            ("http://me:hush@a", 1),
            ("http://a,,**", 3),
        ] {
            assert_eq!(read(list), Err(InvalidOrigin(entry)), "{list}");
        }
    }
}
