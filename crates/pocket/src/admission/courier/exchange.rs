//! One connection, and one request after the other on it.

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio_rustls::client::TlsStream;

use super::{Connection, Letter, Parcel};
use crate::environment::Environment;

/// An answer that is longer than this is not read to its end.
const LONGEST_ANSWER: usize = 32 << 20;

/// A connection to a webhook.
pub(super) struct Line {
    sender: SendRequest<Full<Bytes>>,
}

impl Line {
    pub(super) async fn open(
        environment: &Environment,
        stream: TlsStream<Box<dyn Connection>>,
    ) -> Result<Self, String> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| said(&error))?;
        let task = async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to a webhook ended");
            }
        };
        environment
            .spawner
            .spawn("webhook-connection", Box::pin(task));
        Ok(Self { sender })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    pub(super) async fn exchange(&mut self, parcel: &Parcel) -> Result<Letter, Broken> {
        self.sender.ready().await?;
        let host = parcel.to.authority();
        let request = Request::builder()
            .method(Method::POST)
            .uri(&parcel.path)
            .header(header::HOST, host)
            .header(header::USER_AGENT, "kube-apiserver-admission")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(parcel.body.clone()))
            .map_err(|error| Broken::Otherwise(error.to_string()))?;
        let answer = self.sender.send_request(request).await?;
        let status = answer.status().as_u16();
        #[expect(clippy::disallowed_methods, reason = "limited one line above")]
        let body = Limited::new(answer.into_body(), LONGEST_ANSWER)
            .collect()
            .await
            .map_err(|error| Broken::Otherwise(error.to_string()))?;
        Ok(Letter {
            status,
            body: body.to_bytes(),
        })
    }
}

/// Why an exchange came to nothing.
#[derive(Debug)]
pub(super) enum Broken {
    /// The connection was closed, and no answer had come.
    Closed(String),
    Otherwise(String),
}

impl From<hyper::Error> for Broken {
    fn from(error: hyper::Error) -> Self {
        if is_closed(&error) {
            Self::Closed(said(&error))
        } else {
            Self::Otherwise(said(&error))
        }
    }
}

impl From<Broken> for String {
    fn from(broken: Broken) -> Self {
        let (Broken::Closed(why) | Broken::Otherwise(why)) = broken;
        why
    }
}

fn is_closed(error: &hyper::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let gone = [
        BrokenPipe,
        ConnectionAborted,
        ConnectionReset,
        UnexpectedEof,
    ];
    error.is_incomplete_message()
        || error.is_canceled()
        || error.is_closed()
        || io_error(error).is_some_and(|io| gone.contains(&io.kind()))
}

fn io_error(error: &hyper::Error) -> Option<&std::io::Error> {
    std::error::Error::source(error)?.downcast_ref()
}

fn said(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return "EOF".into();
    }
    if io_error(error).is_some_and(|io| io.kind() == std::io::ErrorKind::UnexpectedEof) {
        return "EOF".into();
    }
    let mut text = error.to_string();
    if let Some(cause) = std::error::Error::source(error) {
        text = format!("{text}: {cause}");
    }
    text
}
