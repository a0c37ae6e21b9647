//! Sends reviews to webhooks: HTTPS over connections made by [`Dial`].
//!
//! Connections are pooled, with one request at a time on each. No timeout is enforced here: the
//! caller bounds the wait.

mod exchange;
mod tls;

use std::{collections::HashMap, fmt, io, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::environment::{BoxFuture, Environment};
use exchange::{ExchangeError, PooledConnection};

/// The address of a webhook.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    /// The host of the URL, without the brackets of an IPv6 address; `name.namespace.svc` for a
    /// service. The certificate must be for it.
    pub host: String,
    /// The port of the URL, or of the service.
    pub port: u16,
    /// For a service: one of its ready endpoints.
    pub endpoint: Option<SocketAddr>,
}

impl Destination {
    /// Host and port as URLs have them.
    fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// A byte stream to a webhook.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Makes connections to webhooks. An embedder whose Services are not on the network brings its own.
pub trait Dial: Send + Sync + 'static {
    /// Connects, without TLS.
    fn dial(&self, to: &Destination) -> BoxFuture<io::Result<Box<dyn Connection>>>;
}

/// Connects over TCP.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tcp;

impl Dial for Tcp {
    fn dial(&self, to: &Destination) -> BoxFuture<io::Result<Box<dyn Connection>>> {
        let to = to.clone();
        Box::pin(async move {
            let stream = match to.endpoint {
                Some(address) => tokio::net::TcpStream::connect(address).await?,
                None => tokio::net::TcpStream::connect((to.host.as_str(), to.port)).await?,
            };
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Connection>)
        })
    }
}

/// The response of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookResponse {
    /// HTTP status code.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

/// A request to a webhook.
#[derive(Debug, Clone)]
pub struct WebhookRequest {
    pub to: Destination,
    /// Path and query.
    pub path: String,
    /// The certificate authorities that the webhook's certificate must chain to, in PEM.
    pub authorities: Option<Arc<[u8]>>,
    /// The body.
    pub body: Bytes,
}

/// Certificate authorities, in PEM.
type Authorities = Option<Arc<[u8]>>;
type ConnectionKey = (Destination, Authorities);

/// Sends reviews and returns the responses.
pub struct WebhookClient {
    dial: Arc<dyn Dial>,
    environment: Environment,
    /// Idle connections.
    idle: Mutex<HashMap<ConnectionKey, Vec<PooledConnection>>>,
    configs: Mutex<HashMap<Authorities, Arc<ClientConfig>>>,
}

/// Idle connections that are kept for each webhook, at most; more are closed.
const MAX_IDLE_CONNECTIONS: usize = 8;
/// Webhooks whose connections and TLS settings are kept at a time, at most.
const MAX_CACHED_WEBHOOKS: usize = 128;

impl WebhookClient {
    /// A client that connects by `dial`.
    pub fn new(environment: Environment, dial: Arc<dyn Dial>) -> Self {
        Self {
            dial,
            environment,
            idle: Mutex::default(),
            configs: Mutex::default(),
        }
    }

    /// Sends one review. An `Err` says why there is no response.
    pub async fn deliver(&self, parcel: &WebhookRequest) -> Result<WebhookResponse, String> {
        let key = (parcel.to.clone(), parcel.authorities.clone());
        // A pooled connection may have been closed meanwhile: then the review is sent once more. A
        // webhook that has begun to respond, or is slow, is not called twice.
        if let Some(mut line) = self.kept(&key) {
            match line.exchange(parcel).await {
                Ok(letter) => {
                    self.keep(key, line);
                    return Ok(letter);
                }
                Err(ExchangeError::Closed(why)) => {
                    tracing::debug!(host = %parcel.to.host, %why, "an idle connection was closed");
                }
                Err(ExchangeError::Otherwise(why)) => return Err(why),
            }
        }
        let mut line = self.connect(parcel).await?;
        let letter = line.exchange(parcel).await?;
        self.keep(key, line);
        Ok(letter)
    }

    async fn connect(&self, parcel: &WebhookRequest) -> Result<PooledConnection, String> {
        let to = &parcel.to;
        let raw = self
            .dial
            .dial(to)
            .await
            .map_err(|error| tls::dialing(to, &error))?;
        let config = self.config(parcel.authorities.as_ref())?;
        let stream = tls::secured(config, &to.host, raw).await?;
        PooledConnection::open(&self.environment, stream).await
    }

    fn config(&self, authorities: Option<&Arc<[u8]>>) -> Result<Arc<ClientConfig>, String> {
        let key = authorities.cloned();
        if let Some(config) = self.configs.lock().get(&key) {
            return Ok(config.clone());
        }
        let config = Arc::new(tls::config(authorities.map(|bytes| &**bytes))?);
        let mut configs = self.configs.lock();
        if configs.len() >= MAX_CACHED_WEBHOOKS {
            configs.clear();
        }
        configs.insert(key, config.clone());
        Ok(config)
    }

    fn kept(&self, key: &ConnectionKey) -> Option<PooledConnection> {
        let mut idle = self.idle.lock();
        let lines = idle.get_mut(key)?;
        while let Some(line) = lines.pop() {
            if line.is_open() {
                return Some(line);
            }
        }
        None
    }

    fn keep(&self, key: ConnectionKey, line: PooledConnection) {
        let mut idle = self.idle.lock();
        if idle.len() >= MAX_CACHED_WEBHOOKS && !idle.contains_key(&key) {
            idle.clear();
        }
        let lines = idle.entry(key).or_default();
        if lines.len() < MAX_IDLE_CONNECTIONS {
            lines.push(line);
        }
    }
}

impl fmt::Debug for WebhookClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookClient").finish_non_exhaustive()
    }
}
