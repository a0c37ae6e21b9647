//! Which calls go through a proxy.

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

/// Which calls go through a proxy. The rules are those of curl.
#[derive(Debug)]
pub struct Proxies(Matcher);

impl Proxies {
    /// The rules in `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in capitals or not.
    pub fn from_environment() -> Self {
        Self(Matcher::from_env())
    }

    /// The same rules as values: the proxy for `http://`, that for `https://`, and the hosts that are
    /// called without one. An empty text stands for none.
    pub fn of(http: &str, https: &str, no_proxy: &str) -> Self {
        let rules = Matcher::builder().http(http.to_owned());
        let rules = rules.https(https.to_owned()).no(no_proxy.to_owned());
        Self(rules.build())
    }

    /// No proxies.
    pub fn none() -> Self {
        Self(Matcher::builder().build())
    }

    /// The proxy for an address.
    pub(super) fn of_address(&self, address: &Uri) -> Option<Intercept> {
        self.0.intercept(address)
    }

    /// The credentials for the proxy that are sent with the request itself. On a tunnel they were
    /// sent before, and the server must not see them.
    pub(super) fn credentials(&self, address: &Uri) -> Option<HeaderValue> {
        if address.scheme_str() != Some("http") {
            return None;
        }
        self.of_address(address)?.basic_auth().cloned()
    }
}
