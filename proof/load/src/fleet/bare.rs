//! The peer of a GET: a handler of axum that sends the row of one SELECT, over TLS with certificates of
//! clients, and does nothing else.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use axum::{Router, extract::State, http::Uri, serve::Listener};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use sqlx::{Row, SqlitePool, sqlite::SqlitePoolOptions};
use tokio::{
    net::{TcpListener, TcpStream},
    time::sleep,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{WAIT_TIMEOUT, region::Region};
use crate::{
    logged_process::{LoggedProcess, free},
    stopwatch::Stopwatch,
};

/// Connections to the database, as many as the provider has for reads.
const READERS: u32 = 4;
/// The statement by which the provider reads a cluster.
const SELECT: &str = "SELECT part, id, revision, body, updated_at FROM neap_documents
    WHERE collection = $1 AND part = $2 AND id = $3
      AND (expires_at IS NULL OR expires_at > CAST(unixepoch('subsec') * 1000 AS BIGINT))";

/// What the handler serves.
#[derive(Debug, Clone)]
pub struct BareHandler {
    /// The port at the loopback address.
    pub port: u16,
    /// The folder with the database and the certificates.
    pub folder: PathBuf,
}

/// Starts the handler as a process of its own, and waits until it answers.
pub(super) async fn start(load: &Path, region: &Region) -> Result<(LoggedProcess, SocketAddr)> {
    let address = free()?;
    let mut command = Command::new(load);
    command
        .args(["fleet-bare", "--port", &address.port().to_string()])
        .arg("--folder")
        .arg(region.folder.path());
    let mut running = LoggedProcess::start(&mut command).context("cannot run the bare handler")?;
    let (client, watch) = (region.client_of(address)?, Stopwatch::start());
    while client.connect().await.is_err() {
        if running.has_ended() || watch.elapsed() > WAIT_TIMEOUT {
            bail!("the bare handler: {}", running.last_output()?);
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok((running, address))
}

/// Serves until it is killed.
pub async fn serve(options: &BareHandler) -> Result<()> {
    let file = |name: &str| options.folder.join(name);
    let url = format!("sqlite:{}", file("region.db").display());
    let pool = SqlitePoolOptions::new()
        .max_connections(READERS)
        .connect(&url)
        .await?;
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("callers.pem"))?)?;
    let clients = WebPkiClientVerifier::builder(roots.into()).build()?;
    let certificate = CertificateDer::from_pem_file(file("server.crt"))?;
    let key = PrivateKeyDer::from_pem_file(file("server.key"))?;
    let config = ServerConfig::builder()
        .with_client_cert_verifier(clients)
        .with_single_cert(vec![certificate], key)?;
    let address = IpAddr::from(Ipv4Addr::LOCALHOST);
    let listener = TlsListener {
        socket: TcpListener::bind((address, options.port)).await?,
        tls: Arc::new(config).into(),
    };
    let routes = Router::new().fallback(get).with_state(pool);
    Ok(axum::serve(listener, routes).await?)
}

async fn get(State(pool): State<SqlitePool>, uri: Uri) -> Result<String, String> {
    let id = uri.path().to_lowercase();
    let row = sqlx::query(SELECT)
        .bind("OpenShiftClusters")
        .bind(super::arm::SUBSCRIPTION)
        .bind(id)
        .fetch_one(&pool)
        .await;
    let row = row.map_err(|error| error.to_string())?;
    row.try_get(3).map_err(|error| error.to_string())
}

struct TlsListener {
    socket: TcpListener,
    tls: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            // The clients of the bench come one after the other, so no handshake delays another.
            if let Ok((stream, address)) = self.socket.accept().await
                && let Ok(stream) = self.tls.accept(stream).await
            {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.socket.local_addr()
    }
}
