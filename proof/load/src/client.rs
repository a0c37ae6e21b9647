//! An HTTPS client with one request in flight per connection.

use std::{fmt, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail};
use bytes::{Bytes, BytesMut};
use http::{Method, Request, header};
use http_body_util::{BodyExt, Empty, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ClientConfig, ConfigBuilder, RootCertStore,
    client::WantsClientCert,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use serde_json::Value;
use tokio::{
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::kubeconfig::Kubeconfig;

/// Timeout of connects, handshakes and requests.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Size of an answer at most.
const MAX_RESPONSE_BYTES: usize = 512 << 20;

/// The address and the credentials of a server.
#[derive(Clone)]
pub struct Client {
    tls: TlsConnector,
    /// The same with HTTP/2.
    multiplexed: TlsConnector,
    address: Arc<str>,
    authorization: Arc<str>,
}

impl Client {
    pub(crate) fn new(server: &Kubeconfig) -> Result<Self> {
        let config = trusting(&server.authority)?.with_no_client_auth();
        Ok(Self::with(config, server))
    }

    /// A client of the server at `address` that presents a certificate; all are PEM.
    pub fn presenting(
        address: &str,
        authority: &[u8],
        certificate: &[u8],
        key: &[u8],
    ) -> Result<Self> {
        let chain = vec![CertificateDer::from_pem_slice(certificate)?];
        let key = PrivateKeyDer::from_pem_slice(key)?;
        let config = trusting(authority)?.with_client_auth_cert(chain, key)?;
        let server = Kubeconfig {
            address: address.to_owned(),
            authority: Vec::new(),
            token: String::new(),
        };
        Ok(Self::with(config, &server))
    }

    fn with(config: ClientConfig, server: &Kubeconfig) -> Self {
        let mut multiplexed = config.clone();
        multiplexed.alpn_protocols = vec![b"h2".to_vec()];
        Self {
            tls: Arc::new(config).into(),
            multiplexed: Arc::new(multiplexed).into(),
            address: server.address.as_str().into(),
            authorization: format!("Bearer {}", server.token).into(),
        }
    }

    /// A client of the same server with another token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self {
            authorization: format!("Bearer {token}").into(),
            ..self.clone()
        }
    }

    /// A client for a server at a host and port, with a certificate authority in PEM.
    pub fn to(address: &str, authority: &[u8], token: &str) -> Result<Self> {
        Self::new(&Kubeconfig {
            address: address.to_owned(),
            authority: authority.to_vec(),
            token: token.to_owned(),
        })
    }

    /// A TLS connection on which nothing has been sent.
    pub async fn raw(&self) -> Result<TlsStream<TcpStream>> {
        self.handshake(&self.tls).await
    }

    async fn handshake(&self, tls: &TlsConnector) -> Result<TlsStream<TcpStream>> {
        let socket = self.socket().await?;
        self.over(tls, socket).await
    }

    async fn over(&self, tls: &TlsConnector, socket: TcpStream) -> Result<TlsStream<TcpStream>> {
        let host = self.address.rsplit_once(':').map_or("", |(host, _)| host);
        let name = ServerName::try_from(host.to_owned())?;
        Ok(timeout(REQUEST_TIMEOUT, tls.connect(name, socket)).await??)
    }

    /// A TCP connection on which nothing has been sent.
    pub async fn socket(&self) -> Result<TcpStream> {
        let socket = timeout(REQUEST_TIMEOUT, TcpStream::connect(&*self.address)).await??;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    /// A TLS connection with a small receive buffer, so that the server can send little unless the
    /// client reads.
    pub async fn narrow(&self) -> Result<TlsStream<TcpStream>> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(8 << 10)?;
        let address = self.address.parse()?;
        let socket = timeout(REQUEST_TIMEOUT, socket.connect(address)).await??;
        self.over(&self.tls, socket).await
    }

    /// The value of the `Authorization` header.
    pub fn authorization(&self) -> &str {
        &self.authorization
    }

    /// Opens an HTTP/2 connection, on which many requests may be in flight.
    pub async fn multiplex(&self) -> Result<Http2Connection> {
        let stream = TokioIo::new(self.handshake(&self.multiplexed).await?);
        let (sender, driver) = http2::handshake(TokioExecutor::new(), stream).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // The requests on a connection report how it ends.
            let _ = driver.await;
        });
        Ok(Http2Connection {
            client: self.clone(),
            sender,
            _tasks: tasks,
        })
    }

    /// Opens an HTTP/1.1 connection.
    pub async fn connect(&self) -> Result<Connection> {
        let stream = self.raw().await?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // The request on a connection reports how it ends.
            let _ = driver.await;
        });
        Ok(Connection {
            client: self.clone(),
            sender,
            _tasks: tasks,
        })
    }
}

fn trusting(authority: &[u8]) -> Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority)?)?;
    Ok(ClientConfig::builder().with_root_certificates(roots))
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.address)
    }
}

/// An HTTP/2 connection.
#[derive(Debug)]
pub struct Http2Connection {
    client: Client,
    sender: http2::SendRequest<Empty<Bytes>>,
    _tasks: JoinSet<()>,
}

impl Http2Connection {
    /// Sends a GET, and returns the response with a streaming body.
    pub async fn get(&self, path: &str) -> Result<http::Response<Incoming>> {
        let client = &self.client;
        let request = Request::builder()
            .uri(format!("https://{}{path}", client.address))
            .header(header::AUTHORIZATION, &*client.authorization)
            .body(Empty::new())?;
        let mut sender = self.sender.clone();
        sender.ready().await?;
        Ok(timeout(REQUEST_TIMEOUT, sender.send_request(request)).await??)
    }
}

/// An HTTP/1.1 connection.
#[derive(Debug)]
pub struct Connection {
    client: Client,
    sender: http1::SendRequest<Full<Bytes>>,
    _tasks: JoinSet<()>,
}

/// A complete response.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub body: Bytes,
}

impl Answer {
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).context("the answer is not JSON")
    }

    /// The body as JSON if the request succeeded.
    pub fn success(&self) -> Result<Value> {
        if !(200..300).contains(&self.status) {
            bail!("{}: {}", self.status, String::from_utf8_lossy(&self.body));
        }
        self.json()
    }
}

impl Connection {
    /// Sends a request with a JSON body, or without one if it is empty, and reads the response.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Answer> {
        self.send_as(method, path, "application/json", body).await
    }

    /// Like [`Self::send`], with a body of another type.
    pub async fn send_as(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<Answer> {
        let answered = async {
            let response = self.request(method, path, content_type, body).await?;
            let status = response.status().as_u16();
            let body = whole(response.into_body()).await?;
            Ok(Answer { status, body })
        };
        timeout(REQUEST_TIMEOUT, answered)
            .await
            .context("no answer in time")?
    }

    /// Sends a request with its own headers and reads the complete response, including headers.
    pub async fn exchange(
        &mut self,
        request: http::request::Builder,
        body: impl Into<Bytes>,
    ) -> Result<http::Response<Bytes>> {
        let request = request
            .header(header::HOST, &*self.client.address)
            .header(header::AUTHORIZATION, &*self.client.authorization)
            .body(Full::new(body.into()))?;
        let answered = async {
            self.sender.ready().await?;
            let (parts, body) = self.sender.send_request(request).await?.into_parts();
            Ok(http::Response::from_parts(parts, whole(body).await?))
        };
        timeout(REQUEST_TIMEOUT, answered)
            .await
            .context("no answer in time")?
    }

    async fn request(
        &mut self,
        method: Method,
        path: &str,
        content_type: &str,
        body: impl Into<Bytes>,
    ) -> Result<http::Response<Incoming>> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &*self.client.address)
            .header(header::AUTHORIZATION, &*self.client.authorization)
            .header(header::CONTENT_TYPE, content_type)
            .body(Full::new(body.into()))?;
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }

    /// Opens a watch on a path with `watch` in its query; consumes the connection.
    pub async fn watch(mut self, path: &str) -> Result<Watch> {
        let response = timeout(
            REQUEST_TIMEOUT,
            self.request(Method::GET, path, "application/json", Bytes::new()),
        )
        .await
        .context("no answer in time")??;
        Ok(Watch {
            status: response.status().as_u16(),
            body: response.into_body(),
            rest: BytesMut::new(),
            _connection: self,
        })
    }
}

async fn whole(mut body: Incoming) -> Result<Bytes> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            if bytes.is_empty() && hyper::body::Body::is_end_stream(&body) {
                return Ok(data);
            }
            bytes.extend_from_slice(&data);
        }
        anyhow::ensure!(bytes.len() <= MAX_RESPONSE_BYTES, "the answer has no end");
    }
    Ok(bytes.freeze())
}

/// An open watch.
#[derive(Debug)]
pub struct Watch {
    /// The status of the response; not 200 if the watch was refused.
    pub status: u16,
    body: Incoming,
    rest: BytesMut,
    _connection: Connection,
}

impl Watch {
    /// The next event; none at the end. Cancel safe.
    pub async fn next(&mut self) -> Result<Option<Value>> {
        loop {
            if let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
                let line = self.rest.split_to(end + 1);
                return Ok(Some(serde_json::from_slice(&line)?));
            }
            let Some(frame) = self.body.frame().await else {
                return Ok(None);
            };
            if let Ok(data) = frame?.into_data() {
                self.rest.extend_from_slice(&data);
            }
        }
    }
}
