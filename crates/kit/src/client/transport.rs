//! What carries a request to its server: sockets, or anything else.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Request, Response, header::PROXY_AUTHORIZATION};
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioTimer},
};
use tokio_rustls::rustls;
use tower::{Service, util::BoxCloneSyncService};

use super::{
    body::Body,
    connector::Connector,
    error::{TransportError, has_cause},
    proxies::Proxies,
    trust::{Trust, TrustError},
};

/// Carries requests to their servers. Anything can take the place of sockets: a system in memory, or a
/// service that injects faults before it passes a request on. Requests have absolute addresses.
pub type Transport = BoxCloneSyncService<Request<Body>, Response<Body>, TransportError>;

/// The time after which an unused connection is closed.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_mins(1);
/// The unused connections that are kept for a host.
const MAX_IDLE_CONNECTIONS: usize = 16;

/// An extension of a request: its server may have any certificate.
#[derive(Debug, Clone, Copy)]
pub(super) struct AcceptAnyCertificate;

/// Sockets.
#[derive(Debug, Clone)]
pub(super) struct Sockets {
    verified: Client<Connector, Body>,
    unverified: Client<Connector, Body>,
    trust: Arc<Trust>,
    proxies: Arc<Proxies>,
}

impl Sockets {
    pub(super) fn new(trust: Trust, proxies: Proxies) -> Result<Self, TrustError> {
        let proxies = Arc::new(proxies);
        let client = |tls| {
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
                .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
                .build(Connector::new(tls, proxies.clone()))
        };
        Ok(Self {
            verified: client(trust.config()?),
            unverified: client(trust.insecure_config()?),
            trust: Arc::new(trust),
            proxies,
        })
    }

    fn accepts_any_certificate(&self, request: &Request<Body>) -> bool {
        let listed = |name: &str| {
            let hosts = &self.trust.insecure_hosts;
            hosts.contains(&name.to_ascii_lowercase())
        };
        let uri = request.uri();
        request.extensions().get::<AcceptAnyCertificate>().is_some()
            || uri.host().is_some_and(listed)
            || uri.authority().is_some_and(|name| listed(name.as_str()))
    }
}

impl Service<Request<Body>> for Sockets {
    type Response = Response<Body>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Response<Body>, TransportError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(credentials) = self.proxies.credentials(request.uri()) {
            request
                .headers_mut()
                .insert(PROXY_AUTHORIZATION, credentials);
        }
        let client = if self.accepts_any_certificate(&request) {
            &self.unverified
        } else {
            &self.verified
        };
        let response = client.request(request);
        Box::pin(async move {
            let response = response.await.map_err(classify)?;
            Ok(response.map(Body::new))
        })
    }
}

fn classify(error: legacy::Error) -> TransportError {
    if has_cause::<rustls::Error>(&error) {
        TransportError::Untrusted(error.into())
    } else if error.is_connect() {
        TransportError::NotSent(error.into())
    } else {
        TransportError::Interrupted(error.into())
    }
}
