//! The API server as `neap up` sees it: opened, then served until told to stop.
//!
//! The only file of this crate that knows how the server is made.
//!
//! TEMPORARY: until `neap_pocket::Pocket` lands, this answers `/healthz` and nothing else.

use std::{convert::Infallible, future::Future, io, path::PathBuf, sync::Arc};

use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::{conn::auto, graceful::GracefulShutdown},
};
use neap_pocket::environment::Environment;
use rustls::{ServerConfig, pki_types::CertificateDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::exit::Failure;

/// Who sent a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) groups: Vec<String>,
}

/// Decides who sent a request.
pub(super) trait Authenticate: Send + Sync {
    fn authenticate(
        &self,
        headers: &HeaderMap,
        client_certificates: &[CertificateDer<'_>],
    ) -> Option<User>;
}

/// The server.
pub(super) struct Server {
    environment: Environment,
    authenticator: Arc<dyn Authenticate>,
}

impl Server {
    /// Opens the store in the folder `store`, or in memory.
    #[expect(
        clippy::unused_async,
        reason = "opening the real store waits for the disk"
    )]
    pub(super) async fn open(
        environment: Environment,
        _store: Option<PathBuf>,
        authenticator: Arc<dyn Authenticate>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            environment,
            authenticator,
        })
    }

    /// Answers requests until `stop` resolves and those under way have ended.
    pub(super) async fn serve(
        self,
        listener: TcpListener,
        tls: Arc<ServerConfig>,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let graceful = Arc::new(GracefulShutdown::new());
        let acceptor = TlsAcceptor::from(tls);
        tokio::pin!(stop);
        loop {
            let (stream, _peer) = tokio::select! {
                accepted = listener.accept() => accepted?,
                () = &mut stop => break,
            };
            let connection = connection(
                acceptor.clone(),
                stream,
                self.authenticator.clone(),
                graceful.clone(),
            );
            self.environment
                .spawner
                .spawn("connection", Box::pin(connection));
        }
        if let Ok(graceful) = Arc::try_unwrap(graceful) {
            graceful.shutdown().await;
        }
        Ok(())
    }
}

async fn connection(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    authenticator: Arc<dyn Authenticate>,
    graceful: Arc<GracefulShutdown>,
) {
    let stream = match acceptor.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!(%error, "no TLS"),
    };
    let certificates = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let certificates = Arc::new(certificates.to_vec());
    let service = hyper::service::service_fn(move |request| {
        let answer = answer(&request, authenticator.as_ref(), &certificates);
        async move { Ok::<_, Infallible>(answer) }
    });
    let builder = auto::Builder::new(TokioExecutor::new());
    let served = builder.serve_connection(TokioIo::new(stream), service);
    let served = graceful.watch(served.into_owned());
    drop(graceful);
    if let Err(error) = served.await {
        tracing::debug!(%error, "connection broke");
    }
}

fn answer(
    request: &Request<Incoming>,
    authenticator: &dyn Authenticate,
    certificates: &[CertificateDer<'_>],
) -> Response<Full<Bytes>> {
    let (status, body) = match authenticator.authenticate(request.headers(), certificates) {
        None => (StatusCode::UNAUTHORIZED, "Unauthorized"),
        Some(user) if request.uri().path() == "/healthz" => {
            tracing::debug!(user = user.name, groups = ?user.groups, "healthz");
            (StatusCode::OK, "ok")
        }
        Some(_) => (StatusCode::NOT_FOUND, "not served yet"),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response
}
