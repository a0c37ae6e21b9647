//! Requests that the resolver answers without waking the service (`probeResponse`).

use http::{HeaderMap, Method, StatusCode, Uri, header::HeaderName};
use percent_encoding::percent_decode_str;
use regex::Regex;

use crate::api::{HeaderMatch, PathMatching, ProbeResponse, QueryParameterMatch, ValueMatching};

/// The probe rules of a service, compiled.
#[derive(Debug, Default)]
pub struct ProbeRules {
    spec: Vec<ProbeResponse>,
    rules: Vec<ProbeRule>,
}

/// The response of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CannedResponse {
    /// The status.
    pub status: StatusCode,
    /// The body.
    pub body: String,
}

#[derive(Debug)]
struct ProbeRule {
    method: Option<String>,
    path: PathMatcher,
    headers: Vec<(HeaderName, ValueMatcher)>,
    query: Vec<(String, ValueMatcher)>,
    canned: CannedResponse,
}

#[derive(Debug)]
enum PathMatcher {
    Exact(String),
    Prefix(String),
    Expression(Regex),
}

#[derive(Debug)]
enum ValueMatcher {
    Exact(String),
    Expression(Regex),
}

impl ProbeRules {
    /// Compiles the rules. An invalid rule is logged and matches nothing.
    pub fn compile(spec: &[ProbeResponse]) -> Self {
        let rules = spec.iter().filter_map(|spec| {
            let rule = ProbeRule::compile(spec);
            rule.inspect_err(|why| tracing::warn!(%why, "ignoring an invalid probeResponse"))
                .ok()
        });
        Self {
            rules: rules.collect(),
            spec: spec.to_vec(),
        }
    }

    /// Whether these rules were compiled from `spec`.
    pub fn compiled_from(&self, spec: &[ProbeResponse]) -> bool {
        self.spec == spec
    }

    /// The response of the first rule that matches.
    pub fn answer(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<&CannedResponse> {
        if self.rules.is_empty() {
            return None;
        }
        let path = percent_decode_str(uri.path()).decode_utf8_lossy();
        let query = uri.query().unwrap_or_default();
        let matches = |rule: &&ProbeRule| {
            let named = rule.method.as_deref();
            named.is_none_or(|named| named.eq_ignore_ascii_case(method.as_str()))
                && rule.path.matches(&path)
                && rule.has_headers(headers)
                && rule.has_query(query)
        };
        self.rules.iter().find(matches).map(|rule| &rule.canned)
    }
}

impl ProbeRule {
    fn compile(spec: &ProbeResponse) -> Result<Self, String> {
        let status = match spec.response.status {
            0 => StatusCode::OK,
            status => u16::try_from(status)
                .ok()
                .and_then(|status| StatusCode::from_u16(status).ok())
                .ok_or_else(|| format!("{status} is not a valid status"))?,
        };
        let header = |header: &HeaderMatch| {
            let name: HeaderName = header
                .name
                .parse()
                .map_err(|_| format!("{:?} is not a valid header name", header.name))?;
            Ok((name, ValueMatcher::compile(header.kind, &header.value)?))
        };
        let parameter = |parameter: &QueryParameterMatch| {
            let value = ValueMatcher::compile(parameter.kind, &parameter.value)?;
            Ok((parameter.name.clone(), value))
        };
        Ok(Self {
            method: spec.method.clone().filter(|method| !method.is_empty()),
            path: PathMatcher::compile(spec.path.as_ref())?,
            headers: spec
                .headers
                .iter()
                .map(header)
                .collect::<Result<_, String>>()?,
            query: (spec.query_params.iter().map(parameter)).collect::<Result<_, String>>()?,
            canned: CannedResponse {
                status,
                body: spec.response.body.clone(),
            },
        })
    }

    fn has_headers(&self, headers: &HeaderMap) -> bool {
        self.headers.iter().all(|(name, value)| {
            let mut values = headers.get_all(name).iter();
            values.any(|found| found.to_str().is_ok_and(|found| value.matches(found)))
        })
    }

    fn has_query(&self, query: &str) -> bool {
        self.query.iter().all(|(name, value)| {
            form_urlencoded::parse(query.as_bytes())
                .any(|(found, given)| found == name.as_str() && value.matches(&given))
        })
    }
}

impl PathMatcher {
    fn compile(spec: Option<&crate::api::PathMatch>) -> Result<Self, String> {
        let value = spec.and_then(|path| path.value.clone()).unwrap_or_default();
        match spec.and_then(|path| path.kind) {
            Some(PathMatching::Exact) => Ok(Self::Exact(value)),
            Some(PathMatching::RegularExpression) => expression(&value).map(Self::Expression),
            Some(PathMatching::PathPrefix) | None if value.is_empty() => {
                Ok(Self::Prefix("/".to_owned()))
            }
            Some(PathMatching::PathPrefix) | None => Ok(Self::Prefix(value)),
        }
    }

    fn matches(&self, path: &str) -> bool {
        match self {
            Self::Exact(value) => path == value,
            Self::Expression(expression) => expression.is_match(path),
            // Whole segments: `/foo` is not a prefix of `/foobar`.
            Self::Prefix(prefix) => path.strip_prefix(prefix.as_str()).is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/')
            }),
        }
    }
}

impl ValueMatcher {
    fn compile(kind: Option<ValueMatching>, value: &str) -> Result<Self, String> {
        match kind {
            Some(ValueMatching::RegularExpression) => expression(value).map(Self::Expression),
            Some(ValueMatching::Exact) | None => Ok(Self::Exact(value.to_owned())),
        }
    }

    fn matches(&self, found: &str) -> bool {
        match self {
            Self::Exact(value) => found == value,
            Self::Expression(expression) => expression.is_match(found),
        }
    }
}

fn expression(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}
