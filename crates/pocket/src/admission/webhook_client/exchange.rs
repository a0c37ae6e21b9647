//! One connection to a webhook, and its requests, one after the other.

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio_rustls::client::TlsStream;

use super::{Connection, WebhookRequest, WebhookResponse};
use crate::environment::Environment;

/// Bytes of a response that are read, at most.
const MAX_RESPONSE_BYTES: usize = 32 << 20;

/// A connection to a webhook.
pub(super) struct PooledConnection {
    sender: SendRequest<Full<Bytes>>,
}

impl PooledConnection {
    pub(super) async fn open(
        environment: &Environment,
        stream: TlsStream<Box<dyn Connection>>,
    ) -> Result<Self, String> {
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| describe(&error))?;
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

    pub(super) async fn exchange(
        &mut self,
        parcel: &WebhookRequest,
    ) -> Result<WebhookResponse, ExchangeError> {
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
            .map_err(|error| ExchangeError::Otherwise(error.to_string()))?;
        let answer = self.sender.send_request(request).await?;
        let status = answer.status().as_u16();
        #[expect(clippy::disallowed_methods, reason = "limited one line above")]
        let body = Limited::new(answer.into_body(), MAX_RESPONSE_BYTES)
            .collect()
            .await
            .map_err(|error| ExchangeError::Otherwise(error.to_string()))?;
        Ok(WebhookResponse {
            status,
            body: body.to_bytes(),
        })
    }
}

/// Why an exchange failed.
#[derive(Debug)]
pub(super) enum ExchangeError {
    /// The connection was closed before any response.
    Closed(String),
    Otherwise(String),
}

impl From<hyper::Error> for ExchangeError {
    fn from(error: hyper::Error) -> Self {
        if is_closed(&error) {
            Self::Closed(describe(&error))
        } else {
            Self::Otherwise(describe(&error))
        }
    }
}

impl From<ExchangeError> for String {
    fn from(broken: ExchangeError) -> Self {
        let (ExchangeError::Closed(why) | ExchangeError::Otherwise(why)) = broken;
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

fn describe(error: &hyper::Error) -> String {
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
