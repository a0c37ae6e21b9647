//! What the examples run: a web server that says who answers, and a visitor who asks it.
//!
//! They are in this binary so that the examples need nothing else on the machine.

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

/// Whoever answers later than this has not answered.
const PATIENCE: Duration = Duration::from_secs(5);

/// The two programs.
#[derive(Debug, Subcommand)]
pub(crate) enum Sample {
    /// Answer every request with the name of this pod
    Serve {
        /// Where to listen
        #[arg(long, env = "POD_IP", default_value = "127.0.0.1")]
        host: String,
        /// On which port
        #[arg(long, default_value_t = 8080)]
        port: u16,
    },
    /// Ask again and again, and print what is answered
    Visit {
        /// Whom: http://NAME:PORT/
        url: Uri,
    },
}

/// Runs one of them until it is told to stop.
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
                "the sample cannot go on",
                &error.to_string(),
            )
            .remedy("see to it that the address is free, and belongs to this machine")
        })
}

async fn until_stopped(sample: Sample) -> io::Result<()> {
    // The first process of a container must listen to this, or it is killed after the grace period.
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
    say(&format!("listening on {}", listener.local_addr()?))?;
    let name = std::env::var("HOSTNAME").unwrap_or_else(|_| host.to_owned());
    let mut connections = JoinSet::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // Too many open files, or a visitor who left: both pass.
            Err(error) => {
                say(&format!("a visitor was not let in: {error}"))?;
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let words = Bytes::from(format!("hello from {name}\n"));
        let answer = service_fn(move |_| {
            let answer = Response::new(Full::new(words.clone()));
            async move { Ok::<_, Infallible>(answer) }
        });
        connections.spawn(async move {
            let mut http = server::conn::http1::Builder::new();
            let http = http.timer(TokioTimer::new());
            // A visitor who breaks off is his own affair.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

async fn visit(url: &Uri) -> io::Result<()> {
    loop {
        let answer = timeout(PATIENCE, ask(url)).await;
        let words = match answer {
            Ok(Ok(words)) => words,
            Ok(Err(error)) => format!("no answer: {error}"),
            Err(_) => "no answer in time".to_owned(),
        };
        say(words.trim_end())?;
        sleep(Duration::from_secs(1)).await;
    }
}

async fn ask(url: &Uri) -> io::Result<String> {
    let host = url.host().unwrap_or("localhost");
    let stream = TcpStream::connect((host, url.port_u16().unwrap_or(80))).await?;
    let connecting = client::conn::http1::handshake(TokioIo::new(stream));
    let (mut sender, connection) = connecting.await.map_err(io::Error::other)?;
    let request = Request::get(url.path())
        .header(http::header::HOST, host)
        .body(Empty::<Bytes>::new())
        .map_err(io::Error::other)?;
    let asking = async {
        let answer = sender.send_request(request).await?;
        let first = answer.into_body().frame().await.transpose()?;
        let words = first.and_then(|frame| frame.into_data().ok());
        Ok(String::from_utf8_lossy(&words.unwrap_or_default()).into_owned())
    };
    tokio::pin!(connection);
    tokio::select! {
        answer = asking => answer.map_err(|error: hyper::Error| io::Error::other(error)),
        ended = &mut connection => Err(ended.err().map_or(
            io::ErrorKind::ConnectionReset.into(),
            io::Error::other,
        )),
    }
}

/// Prints a line at once: somebody may follow the log.
fn say(line: &str) -> io::Result<()> {
    use std::io::Write;
    writeln!(io::stdout().lock(), "{line}")
}
