//! One connection: its handshake, its protocol, and its bounds on memory and time.
//!
//! Whatever a client does or fails to do, its connection costs a bounded amount of memory, and ends
//! if it makes no progress.

use std::{convert::Infallible, future::Future, pin::Pin, time::Duration};

use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    sync::watch,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    Body, Service,
    half_close::{HalfClosing, OpenAnswers},
    paced::Paced,
    serve::SHUTDOWN_GRACE,
    tasks::Tasks,
};
use crate::environment::{BoxFuture, PollOnWake};

/// How long a client may take for its TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to send the headers of a request.
const HEADERS_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of buffered output for a slow client; also of the headers of a request, at most.
const BUFFER_BYTES: usize = 128 << 10;
/// Bytes of that which are encrypted already.
const TLS_BUFFER_BYTES: usize = 32 << 10;
/// The same for one HTTP/2 stream, of which a connection has many.
const STREAM_BUFFER_BYTES: usize = 64 << 10;

/// HTTP/2 streams of a client at a time, at most; a client that needs more waits or opens another
/// connection.
const MAX_STREAMS: u32 = 250;

/// Serves one client until it leaves, or until `stopped` turns true and running requests have
/// ended.
pub(super) async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    service: Service,
    mut stopped: watch::Receiver<bool>,
) {
    // Responses are small and interactive; waiting to fill a segment only delays them.
    let _ = stream.set_nodelay(true);
    let clock = service.machine().environment.clock.clone();
    // On the heap, so that the memory of the handshake is not kept for the life of the connection.
    let accepted = Box::pin(acceptor.accept(stream));
    let accepted = tokio::select! {
        accepted = accepted => accepted,
        () = clock.sleep(HANDSHAKE_TIMEOUT) => return,
        _ = stopped.wait_for(|stopped| *stopped) => return,
    };
    let Ok(mut stream) = accepted else {
        return;
    };
    stream.get_mut().1.set_buffer_limit(Some(TLS_BUFFER_BYTES));
    let ended = if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
        Box::pin(over_http2(stream, service, stopped)).await
    } else {
        Box::pin(over_http1(stream, service, stopped)).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection failed");
    }
}

async fn over_http1(
    stream: TlsStream<TcpStream>,
    service: Service,
    stopped: watch::Receiver<bool>,
) -> hyper::Result<()> {
    let presented = presented(&stream);
    serve_http1(stream, presented, service, stopped).await
}

/// Answers requests on a stream, also those of a client that has shut its own side.
async fn serve_http1<S>(
    stream: S,
    presented: Vec<CertificateDer<'static>>,
    service: Service,
    stopped: watch::Receiver<bool>,
) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (end, ended) = watch::channel(false);
    let open = OpenAnswers::default();
    let answers = service.for_connection(presented, ended, open.clone());
    let stream = HalfClosing::new(Paced::new(stream), open, end.clone());
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_TIMEOUT)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), DirectService(answers))
        .with_upgrades();
    let shut_down = http1::UpgradeableConnection::graceful_shutdown;
    until_stopped(connection, shut_down, service, stopped, &end).await
}

async fn over_http2(
    stream: TlsStream<TcpStream>,
    service: Service,
    stopped: watch::Receiver<bool>,
) -> hyper::Result<()> {
    let (end, ended) = watch::channel(false);
    let answers = service.for_connection(presented(&stream), ended, OpenAnswers::default());
    let tasks = Tasks::new(service.machine().environment.spawner.clone());
    let connection = http2::Builder::new(tasks)
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_send_buf_size(STREAM_BUFFER_BYTES)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(30))
        .serve_connection(TokioIo::new(Paced::new(stream)), DirectService(answers));
    let shut_down = http2::Connection::graceful_shutdown;
    until_stopped(connection, shut_down, service, stopped, &end).await
}

/// The service as hyper calls it: at once, so that an answer counts as begun when its request was read.
#[derive(Clone)]
struct DirectService(Service);

impl hyper::service::Service<http::Request<Incoming>> for DirectService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Self::Response, Infallible>>;

    fn call(&self, request: http::Request<Incoming>) -> Self::Future {
        // It is always ready.
        tower::Service::call(&mut self.0.clone(), request)
    }
}

/// The certificates that the client presented.
fn presented(stream: &TlsStream<TcpStream>) -> Vec<CertificateDer<'static>> {
    let presented = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let presented = presented.iter().cloned();
    presented.map(CertificateDer::into_owned).collect()
}

async fn until_stopped<C>(
    connection: C,
    shut_down: fn(Pin<&mut C>),
    service: Service,
    mut stopped: watch::Receiver<bool>,
    end_streams: &watch::Sender<bool>,
) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    tokio::pin!(connection);
    let stop = PollOnWake::new(async {
        // A dropped sender means that the server has stopped too.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    });
    tokio::select! {
        biased;
        ended = &mut connection => return ended,
        () = stop => {
            end_streams.send_replace(true);
            shut_down(connection.as_mut());
        }
    }
    tokio::select! {
        ended = &mut connection => ended,
        () = service.machine().environment.clock.sleep(SHUTDOWN_GRACE) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;
    use crate::{Options, Pocket, environment::Environment};

    /// The whole answer to a client that shuts its side right after its request.
    async fn answer_to(request: &str) -> String {
        let options = Options::new(Environment::simulated(1));
        let service = Pocket::open(options).await.unwrap().service();
        // Smaller than an answer, so that most of it is sent after the client has ended.
        let (mut client, server) = duplex(512);
        let (stop, stopped) = watch::channel(false);
        let serving = serve_http1(server, Vec::new(), service, stopped);
        let asking = async {
            client.write_all(request.as_bytes()).await.unwrap();
            client.shutdown().await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            drop(stop);
            answer
        };
        // The server may end with an error, which is the client's doing.
        tokio::join!(serving, asking).1
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_has_shut_its_side_gets_its_answer() {
        for (request, end) in [
            ("GET /version HTTP/1.1\r\nHost: a\r\n\r\n", "}"),
            ("GET /openapi/v2 HTTP/1.1\r\nHost: a\r\n\r\n", "}"),
            (
                "GET /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                "",
            ),
            (
                "POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 28\r\n\r\n{\"metadata\": {\"name\": \"ns\"}}",
                "",
            ),
        ] {
            let answer = answer_to(request).await;
            assert!(answer.starts_with("HTTP/1.1 20"), "{request}: {answer}");
            assert!(answer.trim_end().ends_with(end), "{request}: {answer}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_not_sent_to_its_end_is_refused() {
        let request = "POST /api/v1/namespaces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n{\"metadata\"";
        let answer = answer_to(request).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("not sent to its end"), "{answer}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_ends_with_its_client() {
        let request = "GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: a\r\n\r\n";
        let answer = answer_to(request).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        // The last chunk.
        assert!(answer.ends_with("0\r\n\r\n"), "{answer}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_a_clear_host_is_refused() {
        for (hosts, status) in [
            ("", "400 Bad Request"),
            ("Host: a\r\n", "200 OK"),
            ("Host: a\r\nHost: b\r\n", "400 Bad Request"),
        ] {
            let answer = answer_to(&format!("GET /version HTTP/1.1\r\n{hosts}\r\n")).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{hosts}: {answer}"
            );
        }
        let other = "GET http://a/version HTTP/1.1\r\nHost: b\r\n\r\n";
        assert!(answer_to(other).await.starts_with("HTTP/1.1 400"));
    }
}
