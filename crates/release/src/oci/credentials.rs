//! Credentials for registries, from the files that other tools write and from pull secrets.

mod files;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt};

use base64::{Engine, engine::general_purpose};
use serde::Deserialize;

pub use self::files::{Environment, FileError, candidates, load};

/// A file with more than this is not one with credentials.
pub const MAX_FILE: u64 = 4 << 20;

/// What proves to a registry who asks.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// A user name and a password.
    Basic {
        /// The user name.
        username: String,
        /// The password.
        password: String,
    },
    /// A refresh token, for which the registry's token service gives tokens.
    IdentityToken(String),
    /// A token that is sent as it is.
    RegistryToken(String),
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Secrets do not reach logs.
        f.write_str(match self {
            Self::Basic { .. } => "Basic(…)",
            Self::IdentityToken(_) => "IdentityToken(…)",
            Self::RegistryToken(_) => "RegistryToken(…)",
        })
    }
}

/// Why the content of a file is not used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is not JSON of the expected form. The cause is not shown: it might quote a password.
    #[error("it is not a JSON file with credentials (line {line}, column {column})")]
    Unreadable {
        /// Where reading ended.
        line: usize,
        /// Where reading ended.
        column: usize,
    },
    /// An entry is not base64 of `user:password`.
    #[error("auths[{0:?}].auth is not the base64 of user:password")]
    Entry(String),
}

/// Credentials in the order in which they are preferred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    files: Vec<BTreeMap<String, Secret>>,
    /// Registries whose credentials another program keeps.
    helpers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConfigFile {
    #[serde(default)]
    auths: Option<BTreeMap<String, Entry>>,
    #[serde(default)]
    cred_helpers: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    auth: Option<String>,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    identitytoken: Option<String>,
    #[serde(default)]
    registrytoken: Option<String>,
}

impl Credentials {
    /// None: images are asked for anonymously.
    pub fn none() -> Self {
        Self::default()
    }

    /// The credentials of a `config.json`, an `auth.json` or a `.dockerconfigjson`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let file: ConfigFile = parse(text)?;
        let mut credentials = Self::from_entries(file.auths.unwrap_or_default())?;
        let helpers = file.cred_helpers.unwrap_or_default();
        credentials.helpers = helpers
            .into_iter()
            .map(|(key, name)| (normal(&key), name))
            .collect();
        Ok(credentials)
    }

    /// The credentials of a `.dockercfg`, which has no `auths` around its entries.
    pub fn parse_old(text: &str) -> Result<Self, Error> {
        Self::from_entries(parse(text)?)
    }

    fn from_entries(entries: BTreeMap<String, Entry>) -> Result<Self, Error> {
        let mut found = BTreeMap::new();
        for (key, entry) in entries {
            if let Some(secret) = secret(&key, entry)? {
                found.insert(normal(&key), secret);
            }
        }
        Ok(Self {
            files: vec![found],
            helpers: BTreeMap::new(),
        })
    }

    /// Adds credentials that are used where these have none.
    pub fn then(mut self, others: Self) -> Self {
        self.files.extend(others.files);
        for (key, name) in others.helpers {
            self.helpers.entry(key).or_insert(name);
        }
        self
    }

    /// Adds a secret for a registry, before all others.
    pub fn with(mut self, registry: &str, secret: Secret) -> Self {
        let first = BTreeMap::from([(normal(registry), secret)]);
        self.files.insert(0, first);
        self
    }

    /// The credentials for a repository: of the first file that has any, the entry that names most of it.
    pub fn find(&self, registry: &str, repository: &str) -> Option<&Secret> {
        let names = names(registry, repository);
        let mut files = self.files.iter();
        files.find_map(|file| names.iter().find_map(|name| file.get(name)))
    }

    /// The program that keeps the credentials for a registry. Such programs are not run; an error about a
    /// registry that asks for credentials names it.
    pub fn helper(&self, registry: &str) -> Option<&str> {
        self.helpers.get(&normal(registry)).map(String::as_str)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.iter().all(BTreeMap::is_empty)
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::Unreadable {
        line: error.line(),
        column: error.column(),
    })
}

fn secret(key: &str, entry: Entry) -> Result<Option<Secret>, Error> {
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    if let Some(token) = filled(entry.registrytoken) {
        return Ok(Some(Secret::RegistryToken(token)));
    }
    if let Some(token) = filled(entry.identitytoken) {
        return Ok(Some(Secret::IdentityToken(token)));
    }
    if let Some(auth) = filled(entry.auth) {
        let wrong = || Error::Entry(key.to_owned());
        let auth: String = auth.chars().filter(|it| !it.is_whitespace()).collect();
        let decoded = general_purpose::STANDARD
            .decode(auth)
            .map_err(|_| wrong())?;
        let decoded = String::from_utf8(decoded).map_err(|_| wrong())?;
        let (username, password) = decoded.split_once(':').ok_or_else(wrong)?;
        return Ok(Some(Secret::Basic {
            username: username.to_owned(),
            password: password.trim_end_matches('\0').to_owned(),
        }));
    }
    let basic = filled(entry.username).zip(filled(entry.password));
    Ok(basic.map(|(username, password)| Secret::Basic { username, password }))
}

/// Keys are hosts, repositories, and addresses such as `https://index.docker.io/v1/`.
fn normal(key: &str) -> String {
    let key = key.trim();
    let key = key.split_once("://").map_or(key, |(_, rest)| rest);
    let key = key.trim_end_matches('/');
    let (host, path) = key.split_once('/').unwrap_or((key, ""));
    let path = if matches!(path, "v1" | "v2") {
        ""
    } else {
        path
    };
    let host = host.to_ascii_lowercase();
    let host = match host.as_str() {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        other => other,
    };
    if path.is_empty() {
        host.to_owned()
    } else {
        format!("{host}/{path}")
    }
}

/// The names under which credentials for a repository may be kept, the longest first.
fn names(registry: &str, repository: &str) -> Vec<String> {
    let host = normal(registry);
    let parts: Vec<_> = repository.split('/').collect();
    let longer = (1..=parts.len()).rev();
    let mut names: Vec<_> = longer
        .map(|count| format!("{host}/{}", parts[..count].join("/")))
        .collect();
    names.push(host);
    names
}
