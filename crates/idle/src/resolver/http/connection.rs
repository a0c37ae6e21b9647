//! Sends a request over a connection to a pod, and tells what was surely not sent from what may have
//! been done.

use http::{Request, Response};
use hyper::{body::Incoming, client::conn::http2};

use super::{
    lent::Lent,
    sent::{Kept, Sent},
};

/// A connection to a pod.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) sender: Sender,
    /// No request went over it yet.
    pub(super) fresh: bool,
}

#[derive(Debug)]
pub(super) enum Sender {
    One(Lent),
    Many(http2::SendRequest<Sent>),
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The pod has done nothing of it, for sure, so it may be sent to another.
    Unsent {
        request: Box<Request<Sent>>,
        /// The pod would not have it, or not any; otherwise only this connection had ended.
        refused: bool,
    },
    /// It may have been done.
    Broken(hyper::Error),
}

impl Connection {
    /// Sends a request once. It comes back if the pod has surely done nothing of it.
    pub(super) async fn send(
        &mut self,
        request: Request<Sent>,
    ) -> Result<Response<Incoming>, Unanswered> {
        let kept = Kept::of(&request);
        let mut before = 0;
        let sent = match &mut self.sender {
            Sender::Many(sender) => sender.try_send_request(request).await,
            Sender::One(lent) => {
                let sent;
                (before, sent) = lent.send(request).await;
                sent
            }
        };
        let mut error = match sent {
            Ok(response) => {
                kept.forget();
                return Ok(response);
            }
            Err(error) => error,
        };
        let refused = self.fresh;
        if let Some(request) = error.take_message() {
            let request = Box::new(request);
            return Err(Unanswered::Unsent { request, refused });
        }
        let error = error.into_error();
        let why = self.surely_unsent(&error, before);
        match why.and_then(|refused| Some((kept.request()?, refused))) {
            Some((request, refused)) => {
                let request = Box::new(request);
                Err(Unanswered::Unsent { request, refused })
            }
            None => Err(Unanswered::Broken(error)),
        }
    }

    /// Whether nothing of a request was done for which this came back, and if so whether the pod
    /// refused it.
    fn surely_unsent(&self, error: &hyper::Error, before: u64) -> Option<bool> {
        // The client broke off.
        if error.is_user() {
            return None;
        }
        match &self.sender {
            Sender::One(lent) => (lent.sent() == before).then_some(self.fresh),
            Sender::Many(_) => match not_processed(error)? {
                NotProcessed::Refused => Some(true),
                NotProcessed::Leaving => Some(self.fresh),
            },
        }
    }

    /// What must last as long as the answer.
    pub(super) fn lent(self) -> Option<Lent> {
        match self.sender {
            Sender::One(lent) => Some(lent),
            Sender::Many(_) => None,
        }
    }
}

/// What a pod says over HTTP/2 of a request that it has not looked at.
enum NotProcessed {
    /// It wants no more of them for now.
    Refused,
    /// It is about to close the connection, and this request came after the last that it takes.
    Leaving,
}

/// RFC 9113, 8.7: these two guarantee that a request has not been processed.
fn not_processed(error: &hyper::Error) -> Option<NotProcessed> {
    let error: &h2::Error = std::error::Error::source(error)?.downcast_ref()?;
    if !error.is_remote() {
        return None;
    }
    if error.is_go_away() {
        return Some(NotProcessed::Leaving);
    }
    (error.reason() == Some(h2::Reason::REFUSED_STREAM)).then_some(NotProcessed::Refused)
}
