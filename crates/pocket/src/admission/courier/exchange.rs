//! One connection, and one request after the other on it.

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio_rustls::client::TlsStream;

use super::{Letter, Parcel};
use crate::{environment::Environment, runtime::Connection};

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

    pub(super) async fn exchange(&mut self, parcel: &Parcel) -> Result<Letter, String> {
        self.sender.ready().await.map_err(|error| said(&error))?;
        let host = format!("{}:{}", parcel.to.host, parcel.to.port);
        let request = Request::builder()
            .method(Method::POST)
            .uri(&parcel.path)
            .header(header::HOST, host)
            .header(header::USER_AGENT, "kube-apiserver-admission")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(parcel.body.clone()))
            .map_err(|error| error.to_string())?;
        let answer = self
            .sender
            .send_request(request)
            .await
            .map_err(|error| said(&error))?;
        let status = answer.status().as_u16();
        #[expect(clippy::disallowed_methods, reason = "limited one line above")]
        let body = Limited::new(answer.into_body(), LONGEST_ANSWER)
            .collect()
            .await
            .map_err(|error| error.to_string())?;
        Ok(Letter {
            status,
            body: body.to_bytes(),
        })
    }
}

fn said(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return "EOF".into();
    }
    let cause = std::error::Error::source(error);
    let io = cause.and_then(|cause| cause.downcast_ref::<std::io::Error>());
    if io.is_some_and(|io| io.kind() == std::io::ErrorKind::UnexpectedEof) {
        return "EOF".into();
    }
    let mut text = error.to_string();
    if let Some(cause) = cause {
        text = format!("{text}: {cause}");
    }
    text
}
