//! Queries a Prometheus over HTTP.

use std::{
    error::Error,
    fmt,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, header::ACCEPT};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{
        Client,
        connect::{
            HttpConnector,
            dns::{GaiResolver, Name},
        },
    },
    rt::{TokioExecutor, TokioTimer},
};
use neap_kit::clock::Clock;
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};
use tower::Service;

use super::{Problem, Query, response};

/// The time within which Prometheus has to respond.
const QUERY_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest response that is read; one with a single value is much shorter.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// Longer than the time between two polls, so that connections are reused.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_mins(1);

/// Knows the addresses of names that the machine's resolver does not know.
pub trait KnownNames: fmt::Debug + Send + Sync {
    /// The address of `host`; none if the machine's resolver has to be asked.
    fn address(&self, host: &str) -> Option<IpAddr>;
}

/// Resolves names: the known ones first, and others by the machine's resolver.
#[derive(Debug, Clone)]
struct NameResolver {
    known: Option<Arc<dyn KnownNames>>,
    machine: GaiResolver,
}

impl Service<Name> for NameResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = std::io::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.machine.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let known = self.known.as_ref();
        if let Some(address) = known.and_then(|known| known.address(name.as_str())) {
            // The connector sets the port.
            let found = vec![SocketAddr::new(address, 0)];
            return Box::pin(async { Ok(found.into_iter()) });
        }
        let found = self.machine.call(name);
        Box::pin(async { Ok(found.await?.collect::<Vec<_>>().into_iter()) })
    }
}

/// Evaluates queries.
pub trait PrometheusApi: fmt::Debug + Send + Sync {
    /// The single value that `query` has now.
    fn query<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<f64, Problem>>;
}

/// A client of the HTTP API. It follows no redirect: that would send credentials to another server.
pub struct Prometheus {
    client: Client<HttpsConnector<HttpConnector<NameResolver>>, Empty<Bytes>>,
    clock: Clock,
    timeout: Duration,
}

impl Prometheus {
    /// Trusts the certificate authorities of the machine, or those in `SSL_CERT_FILE`.
    pub fn new(clock: Clock) -> Self {
        Self::with_names(clock, None)
    }

    /// The same, with names that the machine's resolver does not know.
    pub fn with_names(clock: Clock, known: Option<Arc<dyn KnownNames>>) -> Self {
        let mut http = HttpConnector::new_with_resolver(NameResolver {
            known,
            machine: GaiResolver::new(),
        });
        // The scheme of TLS is for the connector around it.
        http.enforce_http(false);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls_config())
            .https_or_http()
            .enable_http1()
            .wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
            .build(connector);
        Self {
            client,
            clock,
            timeout: QUERY_TIMEOUT,
        }
    }

    /// The same client with another timeout.
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the body that is collected is limited"
    )]
    async fn exchange(&self, query: &Query) -> Result<f64, Problem> {
        let address = query.address(self.clock.now());
        let mut request = Request::get(address).header(ACCEPT, "application/json");
        if let Some(headers) = request.headers_mut() {
            headers.extend(query.headers().iter().cloned());
        }
        let request = request.body(Empty::new()).map_err(|_| Problem::Address)?;
        let response = self.client.request(request).await;
        let response = response.map_err(|error| Problem::Unreachable(root_cause(&error)))?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES);
        let body = body.collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                Problem::TooLong(MAX_RESPONSE_BYTES)
            } else {
                Problem::Unreachable(root_cause(&*error))
            }
        })?;
        response::parse(status, &body.to_bytes())
    }
}

impl PrometheusApi for Prometheus {
    fn query<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<f64, Problem>> {
        Box::pin(async {
            let value = self.clock.within(self.timeout, self.exchange(query)).await;
            let value = value.unwrap_or(Err(Problem::Timeout(self.timeout)));
            value.map_err(|problem| query.explain(problem))
        })
    }
}

impl fmt::Debug for Prometheus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prometheus")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Without any certificate authority, servers without TLS can still be queried.
fn tls_config() -> ClientConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap_or_else(|_| ClientConfig::builder());
    match builder.clone().with_native_roots() {
        Ok(builder) => builder.with_no_client_auth(),
        Err(error) => {
            tracing::warn!(%error, "this machine has no certificate authorities, so no https:// Prometheus can be queried");
            builder
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth()
        }
    }
}

/// The innermost cause: the errors around it only say that a request failed.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}

#[cfg(test)]
mod tests;
