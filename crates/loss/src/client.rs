//! A client's connection to somebody who answers.

mod grpc;
mod http1;
mod tcp;

use std::io;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::TrySendError};
use neap_idle::resolver::net::Stream;
use tokio_util::task::TaskTracker;

use crate::cell::Protocol;

/// One that stands.
#[derive(Debug)]
pub(crate) enum Connection {
    Http1(hyper::client::conn::http1::SendRequest<Full<Bytes>>),
    Grpc(hyper::client::conn::http2::SendRequest<Full<Bytes>>),
    Tcp(Stream),
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// Nothing of it was sent, so that every client sends it over another connection.
    Unsent,
    /// It was refused in words that every client understands, and may try again.
    Refused(String),
    /// It was sent.
    Lost(String),
}

impl Connection {
    /// Begins to speak.
    pub(crate) async fn open(
        protocol: Protocol,
        stream: Stream,
        tasks: &TaskTracker,
    ) -> io::Result<Self> {
        match protocol {
            Protocol::Tcp => Ok(Self::Tcp(stream)),
            Protocol::Http1 => http1::open(stream, tasks).await.map(Self::Http1),
            Protocol::Grpc => grpc::open(stream, tasks).await.map(Self::Grpc),
        }
    }

    /// Another that can be used at the same time, if there can be one.
    pub(crate) fn shared(&self) -> Option<Self> {
        match self {
            Self::Grpc(sender) => Some(Self::Grpc(sender.clone())),
            Self::Http1(_) | Self::Tcp(_) => None,
        }
    }

    /// Asks, and has a complete and right answer.
    pub(crate) async fn ask(&mut self, id: u64) -> Result<(), Trouble> {
        match self {
            Self::Http1(sender) => http1::ask(sender, id).await,
            Self::Grpc(sender) => grpc::ask(sender, id).await,
            Self::Tcp(stream) => tcp::ask(stream, id).await,
        }
    }
}

type Sent = Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>>;

fn sent(sent: Sent) -> Result<Response<Incoming>, Trouble> {
    sent.map_err(|mut error| {
        let unsent = error.take_message().is_some();
        if unsent {
            Trouble::Unsent
        } else {
            Trouble::Lost(neap_kit::why::chain(error.error()))
        }
    })
}
