//! What carries a request to its server: sockets, or anything else.

use std::{
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Request, Response, header::PROXY_AUTHORIZATION};
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioTimer},
};
use tokio_rustls::rustls::{self, ClientConfig};
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
    /// Made when it is first needed: a program that talks to its own machine alone does not read the
    /// certificate authorities.
    verified: Arc<OnceLock<SocketClient>>,
    unverified: SocketClient,
    trust: Arc<Trust>,
    proxies: Arc<Proxies>,
}

type SocketClient = Client<Connector, Body>;

impl Sockets {
    pub(super) fn new(trust: Trust, proxies: Proxies) -> Result<Self, TrustError> {
        let proxies = Arc::new(proxies);
        Ok(Self {
            verified: Arc::default(),
            // Fails where the other client would: both have the same identity.
            unverified: client(trust.insecure_config()?, &proxies),
            trust: Arc::new(trust),
            proxies,
        })
    }

    /// The client for an address.
    fn client(&self, request: &Request<Body>) -> Result<&SocketClient, TrustError> {
        let uri = request.uri();
        let is_plain = uri.scheme_str() == Some("http") && self.proxies.of_address(uri).is_none();
        if is_plain || self.accepts_any_certificate(request) {
            return Ok(&self.unverified);
        }
        if let Some(client) = self.verified.get() {
            return Ok(client);
        }
        let made = client(self.trust.config()?, &self.proxies);
        Ok(self.verified.get_or_init(|| made))
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
        let response = self.client(&request).map(|client| client.request(request));
        Box::pin(async move {
            let response = response.map_err(|error| TransportError::Untrusted(error.into()))?;
            let response = response.await.map_err(classify)?;
            Ok(response.map(Body::new))
        })
    }
}

fn client(tls: ClientConfig, proxies: &Arc<Proxies>) -> SocketClient {
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE_CONNECTION_TIMEOUT)
        .pool_max_idle_per_host(MAX_IDLE_CONNECTIONS)
        .build(Connector::new(tls, proxies.clone()))
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
