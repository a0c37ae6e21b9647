//! A client's connection.

mod grpc;
mod http1;
mod tcp;

use std::{error::Error, io};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::TrySendError};
use neap_idle::resolver::net::Stream;
use tokio_util::task::TaskTracker;

use crate::cell::Protocol;

/// An open connection.
#[derive(Debug)]
pub(crate) enum Connection {
    Http1(hyper::client::conn::http1::SendRequest<Full<Bytes>>),
    Grpc(hyper::client::conn::http2::SendRequest<Full<Bytes>>),
    Tcp(Stream),
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// Nothing of the request was sent, so that every client sends it over another connection.
    Unsent,
    /// It was refused in a way that every client understands and may retry.
    Refused(String),
    /// It was sent, and not answered correctly.
    Lost(String),
}

impl Connection {
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

    /// A second handle that can be used at the same time, if the protocol allows that.
    pub(crate) fn shared(&self) -> Option<Self> {
        match self {
            Self::Grpc(sender) => Some(Self::Grpc(sender.clone())),
            Self::Http1(_) | Self::Tcp(_) => None,
        }
    }

    /// Sends a request, and checks that the answer is complete and correct.
    pub(crate) async fn request(&mut self, id: u64) -> Result<(), RequestError> {
        match self {
            Self::Http1(sender) => http1::request(sender, id).await,
            Self::Grpc(sender) => grpc::request(sender, id).await,
            Self::Tcp(stream) => tcp::request(stream, id).await,
        }
    }
}

type Sent = Result<Response<Incoming>, TrySendError<Request<Full<Bytes>>>>;

fn sent(sent: Sent) -> Result<Response<Incoming>, RequestError> {
    sent.map_err(|mut error| {
        let unsent = error.take_message().is_some();
        if unsent || is_beyond_goaway(error.error()) {
            RequestError::Unsent
        } else {
            RequestError::Lost(neap_kit::why::chain(error.error()))
        }
    })
}

/// Whether the server closed the connection without reading the stream. `GOAWAY` with `NO_ERROR` fails only
/// the streams above the last one that the server takes, and gRPC's own libraries repeat those. The ledger
/// counts a duplicate if the server took it after all.
fn is_beyond_goaway(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|it| it.downcast_ref::<h2::Error>());
    cause.is_some_and(|it| {
        it.is_go_away() && it.is_remote() && it.reason() == Some(h2::Reason::NO_ERROR)
    })
}
