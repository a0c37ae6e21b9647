//! Asks a Prometheus.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, header::ACCEPT};
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use neap_kit::clock::Clock;
use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs};

use super::{Problem, Question, answer};

/// No Prometheus takes longer for one value.
const LIMIT: Duration = Duration::from_secs(5);
/// No answer with one value is longer.
const LONGEST: usize = 1 << 20;
/// Longer than the time between two polls, so that connections are used again.
const KEPT: Duration = Duration::from_mins(1);

/// Somebody who knows the value of a query.
pub trait Oracle: fmt::Debug + Send + Sync {
    /// The one value that `question` has now.
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<f64, Problem>>;
}

/// Asks over HTTP. Follows no redirect: that would take credentials elsewhere.
pub struct Prometheus {
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
    clock: Clock,
    limit: Duration,
}

impl Prometheus {
    /// Trusts whom the machine trusts, or those whom `SSL_CERT_FILE` names.
    pub fn new(clock: Clock) -> Self {
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(trust())
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEPT)
            .build(connector);
        Self {
            client,
            clock,
            limit: LIMIT,
        }
    }

    /// With another time to answer.
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the body that is collected is limited"
    )]
    async fn asked(&self, question: &Question) -> Result<f64, Problem> {
        let address = question.address(self.clock.now());
        let mut request = Request::get(address).header(ACCEPT, "application/json");
        if let Some(headers) = request.headers_mut() {
            headers.extend(question.headers().iter().cloned());
        }
        let request = request.body(Empty::new()).map_err(|_| Problem::Address)?;
        let answer = self.client.request(request).await;
        let answer = answer.map_err(|error| Problem::Unreachable(root(&error)))?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                Problem::Long(LONGEST)
            } else {
                Problem::Unreachable(root(&*error))
            }
        })?;
        answer::read(status, &body.to_bytes())
    }
}

impl Oracle for Prometheus {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Result<f64, Problem>> {
        Box::pin(async {
            let answer = self.clock.within(self.limit, self.asked(question)).await;
            let answer = answer.unwrap_or(Err(Problem::Late(self.limit)));
            answer.map_err(|problem| question.met(problem))
        })
    }
}

impl fmt::Debug for Prometheus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prometheus")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// Without anybody to trust, servers without TLS can still be asked.
fn trust() -> ClientConfig {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap_or_else(|_| ClientConfig::builder());
    match builder.clone().with_native_roots() {
        Ok(builder) => builder.with_no_client_auth(),
        Err(error) => {
            tracing::warn!(%error, "this machine trusts nobody, so no https:// Prometheus can be asked");
            builder
                .with_root_certificates(RootCertStore::empty())
                .with_no_client_auth()
        }
    }
}

/// The last cause: those above it only say that a request failed.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}

#[cfg(test)]
mod tests;
