//! What is answered for a service without waking it.

use http::{HeaderMap, Method, StatusCode, Uri, header::HeaderName};
use percent_encoding::percent_decode_str;
use regex::Regex;

use crate::api::{Header, Matching, PathMatching, ProbeResponse, QueryParameter};

/// The rules of a service, with their expressions compiled.
#[derive(Debug, Default)]
pub struct Probes {
    said: Vec<ProbeResponse>,
    rules: Vec<Rule>,
}

/// An answer that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canned {
    /// Its status.
    pub status: StatusCode,
    /// Its body.
    pub body: String,
}

#[derive(Debug)]
struct Rule {
    method: Option<String>,
    path: Path,
    headers: Vec<(HeaderName, Value)>,
    query: Vec<(String, Value)>,
    canned: Canned,
}

#[derive(Debug)]
enum Path {
    Exact(String),
    Prefix(String),
    Expression(Regex),
}

#[derive(Debug)]
enum Value {
    Exact(String),
    Expression(Regex),
}

impl Probes {
    /// Compiles what was said. A rule that cannot be understood fits nothing, and is told of once.
    pub fn compile(said: &[ProbeResponse]) -> Self {
        let rules = said.iter().filter_map(|said| {
            let rule = Rule::compile(said);
            rule.inspect_err(|why| tracing::warn!(%why, "a probeResponse is left out"))
                .ok()
        });
        Self {
            rules: rules.collect(),
            said: said.to_vec(),
        }
    }

    /// Whether these were compiled from `said`.
    pub fn are(&self, said: &[ProbeResponse]) -> bool {
        self.said == said
    }

    /// The answer of the first rule that fits.
    pub fn answer(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<&Canned> {
        if self.rules.is_empty() {
            return None;
        }
        let path = percent_decode_str(uri.path()).decode_utf8_lossy();
        let query = uri.query().unwrap_or_default();
        let fits = |rule: &&Rule| {
            let named = rule.method.as_deref();
            named.is_none_or(|named| named.eq_ignore_ascii_case(method.as_str()))
                && rule.path.fits(&path)
                && rule.has_headers(headers)
                && rule.has_query(query)
        };
        self.rules.iter().find(fits).map(|rule| &rule.canned)
    }
}

impl Rule {
    fn compile(said: &ProbeResponse) -> Result<Self, String> {
        let status = match said.response.status {
            0 => StatusCode::OK,
            status => u16::try_from(status)
                .ok()
                .and_then(|status| StatusCode::from_u16(status).ok())
                .ok_or_else(|| format!("{status} is no status"))?,
        };
        let header = |header: &Header| {
            let name: HeaderName = header
                .name
                .parse()
                .map_err(|_| format!("{:?} is no name of a header", header.name))?;
            Ok((name, Value::compile(header.kind, &header.value)?))
        };
        let parameter = |parameter: &QueryParameter| {
            let value = Value::compile(parameter.kind, &parameter.value)?;
            Ok((parameter.name.clone(), value))
        };
        Ok(Self {
            method: said.method.clone().filter(|method| !method.is_empty()),
            path: Path::compile(said.path.as_ref())?,
            headers: said
                .headers
                .iter()
                .map(header)
                .collect::<Result<_, String>>()?,
            query: (said.query_params.iter().map(parameter)).collect::<Result<_, String>>()?,
            canned: Canned {
                status,
                body: said.response.body.clone(),
            },
        })
    }

    fn has_headers(&self, headers: &HeaderMap) -> bool {
        self.headers.iter().all(|(name, value)| {
            let mut values = headers.get_all(name).iter();
            values.any(|found| found.to_str().is_ok_and(|found| value.fits(found)))
        })
    }

    fn has_query(&self, query: &str) -> bool {
        self.query.iter().all(|(name, value)| {
            form_urlencoded::parse(query.as_bytes())
                .any(|(found, given)| found == name.as_str() && value.fits(&given))
        })
    }
}

impl Path {
    fn compile(said: Option<&crate::api::Path>) -> Result<Self, String> {
        let value = said.and_then(|path| path.value.clone()).unwrap_or_default();
        match said.and_then(|path| path.kind) {
            Some(PathMatching::Exact) => Ok(Self::Exact(value)),
            Some(PathMatching::RegularExpression) => expression(&value).map(Self::Expression),
            Some(PathMatching::PathPrefix) | None if value.is_empty() => {
                Ok(Self::Prefix("/".to_owned()))
            }
            Some(PathMatching::PathPrefix) | None => Ok(Self::Prefix(value)),
        }
    }

    fn fits(&self, path: &str) -> bool {
        match self {
            Self::Exact(value) => path == value,
            Self::Expression(expression) => expression.is_match(path),
            // Whole segments: `/foo` is not the beginning of `/foobar`.
            Self::Prefix(prefix) => path.strip_prefix(prefix.as_str()).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/')
            }),
        }
    }
}

impl Value {
    fn compile(kind: Option<Matching>, value: &str) -> Result<Self, String> {
        match kind {
            Some(Matching::RegularExpression) => expression(value).map(Self::Expression),
            Some(Matching::Exact) | None => Ok(Self::Exact(value.to_owned())),
        }
    }

    fn fits(&self, found: &str) -> bool {
        match self {
            Self::Exact(value) => found == value,
            Self::Expression(expression) => expression.is_match(found),
        }
    }
}

fn expression(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}
