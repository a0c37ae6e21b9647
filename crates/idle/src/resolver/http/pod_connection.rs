//! Sends a request over a connection to a pod, and distinguishes requests that were not processed from
//! those that may have been.

use http::{Request, Response};
use hyper::{body::Incoming, client::conn::http2};

use super::{
    pooled::PooledConnection,
    request_body::{RequestBody, RetryCopy},
};

/// A connection to a pod.
#[derive(Debug)]
pub(super) struct PodConnection {
    pub(super) sender: RequestSender,
    /// No request was sent over it yet.
    pub(super) fresh: bool,
}

#[derive(Debug)]
pub(super) enum RequestSender {
    Http1(PooledConnection),
    Http2(http2::SendRequest<RequestBody>),
}

/// Why a request got no answer.
#[derive(Debug)]
pub(super) enum SendError {
    /// The pod has not processed it, so it may be sent to another.
    NotProcessed {
        request: Box<Request<RequestBody>>,
        /// Whether the pod refused it or accepts no requests; otherwise only this connection was closed.
        refused: bool,
    },
    /// It may have been processed.
    Broken(hyper::Error),
}

impl PodConnection {
    /// Sends a request once. The error contains it if the pod has not processed it.
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendError> {
        let copy = RetryCopy::of(&request);
        let mut before = 0;
        let sent = match &mut self.sender {
            RequestSender::Http2(sender) => sender.try_send_request(request).await,
            RequestSender::Http1(connection) => {
                let sent;
                (before, sent) = connection.send(request).await;
                sent
            }
        };
        let mut error = match sent {
            Ok(response) => {
                copy.discard();
                return Ok(response);
            }
            Err(error) => error,
        };
        let refused = self.fresh;
        if let Some(request) = error.take_message() {
            let request = Box::new(request);
            return Err(SendError::NotProcessed { request, refused });
        }
        let error = error.into_error();
        let refusal = self.refused_unprocessed(&error, before);
        match refusal.and_then(|refused| Some((copy.request()?, refused))) {
            Some((request, refused)) => {
                let request = Box::new(request);
                Err(SendError::NotProcessed { request, refused })
            }
            None => Err(SendError::Broken(error)),
        }
    }

    /// Whether the pod refused the request; `None` if it may have processed it.
    fn refused_unprocessed(&self, error: &hyper::Error, before: u64) -> Option<bool> {
        // The client closed its connection.
        if error.is_user() {
            return None;
        }
        match &self.sender {
            RequestSender::Http1(connection) => (connection.sent() == before).then_some(self.fresh),
            RequestSender::Http2(_) => match not_processed(error)? {
                RefusalSignal::RefusedStream => Some(true),
                RefusalSignal::GoAway => Some(self.fresh),
            },
        }
    }

    /// The pooled connection, which must live as long as the answer.
    pub(super) fn into_pooled(self) -> Option<PooledConnection> {
        match self.sender {
            RequestSender::Http1(connection) => Some(connection),
            RequestSender::Http2(_) => None,
        }
    }
}

/// How a pod reports over HTTP/2 that it has not processed a request.
enum RefusalSignal {
    /// It accepts no more requests for now.
    RefusedStream,
    /// It closes the connection, and the request came after the last one that it processes.
    GoAway,
}

/// RFC 9113, 8.7: these two guarantee that a request has not been processed.
fn not_processed(error: &hyper::Error) -> Option<RefusalSignal> {
    let error: &h2::Error = std::error::Error::source(error)?.downcast_ref()?;
    if !error.is_remote() {
        return None;
    }
    if error.is_go_away() {
        return Some(RefusalSignal::GoAway);
    }
    (error.reason() == Some(h2::Reason::REFUSED_STREAM)).then_some(RefusalSignal::RefusedStream)
}
