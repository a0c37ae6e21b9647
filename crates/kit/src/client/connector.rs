//! Connections: directly or through a proxy, with or without TLS.

use std::{
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector, proxy::Tunnel};
use tokio_rustls::rustls::ClientConfig;
use tower::{BoxError, Service, ServiceExt};

use super::proxies::Proxies;

/// The time within which a connection has to be established.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connects to servers.
#[derive(Clone)]
pub(super) struct Connector {
    direct: HttpsConnector<HttpConnector>,
    tls: Arc<ClientConfig>,
    proxies: Arc<Proxies>,
}

impl Connector {
    pub(super) fn new(tls: ClientConfig, proxies: Arc<Proxies>) -> Self {
        let tls = Arc::new(tls);
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_connect_timeout(Some(CONNECT_TIMEOUT));
        http.set_nodelay(true);
        Self {
            direct: HttpsConnector::from((http, tls.clone())),
            tls,
            proxies,
        }
    }

    async fn connect(self, address: Uri) -> Result<BoxedConnection, BoxError> {
        let Some(proxy) = self.proxies.of_address(&address) else {
            return Ok(BoxedConnection::new(self.direct.oneshot(address).await?));
        };
        if address.scheme_str() != Some("https") {
            let connection = self.direct.oneshot(proxy.uri().clone()).await?;
            let mut connection = BoxedConnection::new(connection);
            connection.proxied = true;
            return Ok(connection);
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.direct);
        if let Some(credentials) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(credentials.clone());
        }
        let tunnelled = HttpsConnector::from((tunnel, self.tls));
        Ok(BoxedConnection::new(tunnelled.oneshot(address).await?))
    }
}

impl Service<Uri> for Connector {
    type Response = BoxedConnection;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<BoxedConnection, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        Box::pin(self.clone().connect(address))
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("proxies", &self.proxies)
            .finish_non_exhaustive()
    }
}

trait Io: Read + Write + Connection + Unpin + Send {}

impl<T: Read + Write + Connection + Unpin + Send> Io for T {}

/// An open connection.
pub(super) struct BoxedConnection {
    io: Box<dyn Io>,
    /// Whether requests on it name the whole address, for a proxy to forward them.
    proxied: bool,
}

impl BoxedConnection {
    fn new(io: impl Io + 'static) -> Self {
        Self {
            io: Box::new(io),
            proxied: false,
        }
    }
}

impl Connection for BoxedConnection {
    fn connected(&self) -> Connected {
        self.io.connected().proxy(self.proxied)
    }
}

impl Read for BoxedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl Write for BoxedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, buffers)
    }
}
