//! Programs that the example pods run: a web server that responds with its pod name, and a client.
//!
//! They are part of this binary, so the examples need no other program on the machine.

use std::{convert::Infallible, io, time::Duration};

use bytes::Bytes;
use clap::Subcommand;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Empty, Full};
use hyper::{client, server, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    signal::unix::{SignalKind, signal},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::exit::{Exit, Failure};

/// Bounds one request of the client.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Which program to run.
#[derive(Debug, Subcommand)]
pub(crate) enum Sample {
    /// Respond to every request with the name of this pod
    Serve {
        /// Host to listen on
        #[arg(long, env = "POD_IP", default_value = "127.0.0.1")]
        host: String,
        /// Port to listen on
        #[arg(long, default_value_t = 8080)]
        port: u16,
    },
    /// Send a request every second and print the response
    Visit {
        /// Server to send requests to: http://NAME:PORT/
        url: Uri,
    },
}

/// Runs the program until SIGTERM.
pub(crate) fn run(sample: Sample) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .and_then(|runtime| runtime.block_on(until_stopped(sample)))
        .map_err(|error| {
            Failure::new(
                "NT-CLI-0012",
                Exit::Failed,
                "the sample program failed",
                &error.to_string(),
            )
            .remedy("check that the address is free and belongs to this machine")
        })
}

async fn until_stopped(sample: Sample) -> io::Result<()> {
    // The kernel ignores SIGTERM for the first process of a container unless it has a handler; without
    // one, the process would be killed after the grace period.
    let mut stop = signal(SignalKind::terminate())?;
    let work = async {
        match sample {
            Sample::Serve { host, port } => serve(&host, port).await,
            Sample::Visit { url } => visit(&url).await,
        }
    };
    tokio::select! {
        ended = work => ended,
        _ = stop.recv() => Ok(()),
    }
}

async fn serve(host: &str, port: u16) -> io::Result<()> {
    let listener = TcpListener::bind((host, port)).await?;
    print_line(&format!("listening on {}", listener.local_addr()?))?;
    let name = std::env::var("HOSTNAME").unwrap_or_else(|_| host.to_owned());
    let mut connections = JoinSet::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Too many open files, or a client that disconnected: both are temporary.
            Err(error) => {
                print_line(&format!("cannot accept a connection: {error}"))?;
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let text = Bytes::from(format!("hello from {name}\n"));
        let response = service_fn(move |_| {
            let response = Response::new(Full::new(text.clone()));
            async move { Ok::<_, Infallible>(response) }
        });
        connections.spawn(async move {
            let mut http = server::conn::http1::Builder::new();
            let http = http.timer(TokioTimer::new());
            // A client that disconnects early is no error.
            let _ = http.serve_connection(TokioIo::new(stream), response).await;
        });
    }
}

async fn visit(url: &Uri) -> io::Result<()> {
    loop {
        let response = timeout(RESPONSE_TIMEOUT, fetch(url)).await;
        let text = match response {
            Ok(Ok(text)) => text,
            Ok(Err(error)) => format!("request failed: {error}"),
            Err(_) => "request timed out".to_owned(),
        };
        print_line(text.trim_end())?;
        sleep(Duration::from_secs(1)).await;
    }
}

async fn fetch(url: &Uri) -> io::Result<String> {
    let host = url.host().unwrap_or("localhost");
    let stream = TcpStream::connect((host, url.port_u16().unwrap_or(80))).await?;
    let connecting = client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = connecting.await.map_err(io::Error::other)?;
    let request = Request::get(url.path())
        .header(http::header::HOST, host)
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let fetching = async {
        let response = sender.send_request(request).await?;
        let first = response.into_body().frame().await.transpose()?;
        let text = first.and_then(|frame| frame.into_data().ok());
        Ok(String::from_utf8_lossy(&text.unwrap_or_default()).into_owned())
    };
    tokio::pin!(connection);
    tokio::select! {
        response = fetching => response.map_err(|error: hyper::Error| io::Error::other(error)),
        ended = &mut connection => Err(ended.err().map_or(
            io::ErrorKind::ConnectionReset.into(),
            io::Error::other,
        )),
    }
}

/// Prints a line without buffering, so that `kubectl logs -f` shows it at once.
fn print_line(line: &str) -> io::Result<()> {
    use std::io::Write;
    writeln!(io::stdout().lock(), "{line}")
}
