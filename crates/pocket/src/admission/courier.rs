//! Carries reviews to webhooks: HTTPS over whatever connection [`Dial`] makes.
//!
//! Connections are kept and used again, one request at a time on each. No time is measured here:
//! whoever waits for an answer knows how long.

mod exchange;
mod tls;

use std::{collections::HashMap, fmt, io, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use rustls::ClientConfig;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::environment::{BoxFuture, Environment};
use exchange::{Broken, Line};

/// Where a connection should lead.
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

/// Bytes to somebody and back.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Makes connections to webhooks. An embedder whose services are not on the network brings its own.
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

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// HTTP status code.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

/// What is sent.
#[derive(Debug, Clone)]
pub struct Parcel {
    /// To whom.
    pub to: Destination,
    /// Path and query.
    pub path: String,
    /// The authorities that may vouch for the receiver, in PEM.
    pub authorities: Option<Arc<[u8]>>,
    /// The body.
    pub body: Bytes,
}

/// Who may vouch for a webhook, in PEM.
type Authorities = Option<Arc<[u8]>>;
type Key = (Destination, Authorities);

/// Sends reviews and brings back answers.
pub struct Courier {
    dial: Arc<dyn Dial>,
    environment: Environment,
    /// Connections nobody uses now.
    idle: Mutex<HashMap<Key, Vec<Line>>>,
    configs: Mutex<HashMap<Authorities, Arc<ClientConfig>>>,
}

/// Connections that wait for their next use, for each webhook; more are closed.
const MOST_IDLE: usize = 8;
/// Webhooks whose connections and settings are remembered at a time.
const MOST_KNOWN: usize = 128;

impl Courier {
    /// A courier that travels by `dial`.
    pub fn new(environment: Environment, dial: Arc<dyn Dial>) -> Self {
        Self {
            dial,
            environment,
            idle: Mutex::default(),
            configs: Mutex::default(),
        }
    }

    /// Delivers one review. An `Err` says why nothing came back.
    pub async fn deliver(&self, parcel: &Parcel) -> Result<Letter, String> {
        let key = (parcel.to.clone(), parcel.authorities.clone());
        // A connection that was kept may have been closed meanwhile: then the review is sent again,
        // once. A webhook that has begun to answer, or is slow, is not asked twice.
        if let Some(mut line) = self.kept(&key) {
            match line.exchange(parcel).await {
                Ok(letter) => {
                    self.keep(key, line);
                    return Ok(letter);
                }
                Err(Broken::Closed(why)) => {
                    tracing::debug!(host = %parcel.to.host, %why, "a kept connection was closed");
                }
                Err(Broken::Otherwise(why)) => return Err(why),
            }
        }
        let mut line = self.connect(parcel).await?;
        let letter = line.exchange(parcel).await?;
        self.keep(key, line);
        Ok(letter)
    }

    async fn connect(&self, parcel: &Parcel) -> Result<Line, String> {
        let to = &parcel.to;
        let raw = self
            .dial
            .dial(to)
            .await
            .map_err(|error| tls::dialing(to, &error))?;
        let config = self.config(parcel.authorities.as_ref())?;
        let stream = tls::secured(config, &to.host, raw).await?;
        Line::open(&self.environment, stream).await
    }

    fn config(&self, authorities: Option<&Arc<[u8]>>) -> Result<Arc<ClientConfig>, String> {
        let key = authorities.cloned();
        if let Some(config) = self.configs.lock().get(&key) {
            return Ok(config.clone());
        }
        let config = Arc::new(tls::config(authorities.map(|bytes| &**bytes))?);
        let mut configs = self.configs.lock();
        if configs.len() >= MOST_KNOWN {
            configs.clear();
        }
        configs.insert(key, config.clone());
        Ok(config)
    }

    fn kept(&self, key: &Key) -> Option<Line> {
        let mut idle = self.idle.lock();
        let lines = idle.get_mut(key)?;
        while let Some(line) = lines.pop() {
            if line.is_open() {
                return Some(line);
            }
        }
        None
    }

    fn keep(&self, key: Key, line: Line) {
        let mut idle = self.idle.lock();
        if idle.len() >= MOST_KNOWN && !idle.contains_key(&key) {
            idle.clear();
        }
        let lines = idle.entry(key).or_default();
        if lines.len() < MOST_IDLE {
            lines.push(line);
        }
    }
}

impl fmt::Debug for Courier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Courier").finish_non_exhaustive()
    }
}
