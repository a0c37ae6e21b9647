//! An HTTPS client with one request under way per connection.

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
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use serde_json::Value;
use tokio::{
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::kubeconfig::Kubeconfig;

/// A server that has not answered after this long never will.
const PATIENCE: Duration = Duration::from_secs(30);
/// No answer is larger than this.
const LARGEST: usize = 512 << 20;

/// How to reach one server.
#[derive(Clone)]
pub struct Client {
    tls: TlsConnector,
    /// The same, asking for HTTP/2.
    multiplexed: TlsConnector,
    address: Arc<str>,
    authorization: Arc<str>,
}

impl Client {
    pub(crate) fn new(server: &Kubeconfig) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&server.authority)?)?;
        let config = ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut multiplexed = config.clone();
        multiplexed.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Self {
            tls: Arc::new(config).into(),
            multiplexed: Arc::new(multiplexed).into(),
            address: server.address.as_str().into(),
            authorization: format!("Bearer {}", server.token).into(),
        })
    }

    /// The same way to the same server, showing another token.
    #[must_use]
    pub fn with_token(&self, token: &str) -> Self {
        Self {
            authorization: format!("Bearer {token}").into(),
            ..self.clone()
        }
    }

    /// How to reach a server at a host and port, vouched for by a certificate authority in PEM.
    pub fn to(address: &str, authority: &[u8], token: &str) -> Result<Self> {
        Self::new(&Kubeconfig {
            address: address.to_owned(),
            authority: authority.to_vec(),
            token: token.to_owned(),
        })
    }

    /// A TLS connection with nothing said on it yet.
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
        Ok(timeout(PATIENCE, tls.connect(name, socket)).await??)
    }

    /// A TCP connection with nothing said on it yet.
    pub async fn socket(&self) -> Result<TcpStream> {
        let socket = timeout(PATIENCE, TcpStream::connect(&*self.address)).await??;
        socket.set_nodelay(true)?;
        Ok(socket)
    }

    /// A TLS connection of a client that takes next to nothing unless it reads.
    pub async fn narrow(&self) -> Result<TlsStream<TcpStream>> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(8 << 10)?;
        let address = self.address.parse()?;
        let socket = timeout(PATIENCE, socket.connect(address)).await??;
        self.over(&self.tls, socket).await
    }

    /// What the `Authorization` header must say.
    pub fn authorization(&self) -> &str {
        &self.authorization
    }

    /// A connection on which many requests are under way at the same time.
    pub async fn multiplex(&self) -> Result<Multiplexed> {
        let stream = TokioIo::new(self.handshake(&self.multiplexed).await?);
        let (sender, driver) = http2::handshake(TokioExecutor::new(), stream).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // How a connection ends is seen by the requests on it.
            let _ = driver.await;
        });
        Ok(Multiplexed {
            client: self.clone(),
            sender,
            _tasks: tasks,
        })
    }

    /// A connection to send requests on.
    pub async fn connect(&self) -> Result<Connection> {
        let stream = self.raw().await?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // How a connection ends is seen by the request on it.
            let _ = driver.await;
        });
        Ok(Connection {
            client: self.clone(),
            sender,
            _tasks: tasks,
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.address)
    }
}

/// One HTTP/2 connection.
#[derive(Debug)]
pub struct Multiplexed {
    client: Client,
    sender: http2::SendRequest<Empty<Bytes>>,
    _tasks: JoinSet<()>,
}

impl Multiplexed {
    /// Sends a GET, and returns what is answered as it comes.
    pub async fn get(&self, path: &str) -> Result<http::Response<Incoming>> {
        let client = &self.client;
        let request = Request::builder()
            .uri(format!("https://{}{path}", client.address))
            .header(header::AUTHORIZATION, &*client.authorization)
            .body(Empty::new())?;
        let mut sender = self.sender.clone();
        sender.ready().await?;
        Ok(timeout(PATIENCE, sender.send_request(request)).await??)
    }
}

/// One connection.
#[derive(Debug)]
pub struct Connection {
    client: Client,
    sender: http1::SendRequest<Full<Bytes>>,
    _tasks: JoinSet<()>,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
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
    /// Sends a request with a JSON body, or without one if it is empty, and reads the answer.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> Result<Answer> {
        self.send_as(method, path, "application/json", body).await
    }

    /// The same with a body of another type.
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
        timeout(PATIENCE, answered)
            .await
            .context("no answer in time")?
    }

    /// Sends a request with headers of its own and reads the whole answer, headers included.
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
        timeout(PATIENCE, answered)
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

    /// A watch on a path whose query asks for one; uses the connection up.
    pub async fn watch(mut self, path: &str) -> Result<Watch> {
        let response = timeout(
            PATIENCE,
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
        anyhow::ensure!(bytes.len() <= LARGEST, "the answer has no end");
    }
    Ok(bytes.freeze())
}

/// A watch under way.
#[derive(Debug)]
pub struct Watch {
    /// The status of the answer; not 200 if the watch was refused.
    pub status: u16,
    body: Incoming,
    rest: BytesMut,
    _connection: Connection,
}

impl Watch {
    /// The next event; `None` at the end. Losing a race against it loses nothing.
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
