//! Bodies on their way through.

use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;

use super::{guard::Talk, lent::Lent};
use crate::resolver::activity::Open;

/// What a client gets.
#[derive(Debug)]
pub(super) enum Answered {
    /// Made here.
    Here(Full<Bytes>),
    /// From a pod.
    Pod(Carried),
}

/// The body of a pod's answer.
#[derive(Debug)]
pub(super) struct Carried {
    pub(super) incoming: Incoming,
    pub(super) until: Option<Until>,
    /// Why it ends too early, until that is told.
    broken: Option<hyper::Error>,
}

/// What lasts until a request is answered to its end.
#[derive(Debug)]
pub(super) struct Until {
    pub(super) _open: Open,
    pub(super) _under_way: UnderWay,
    /// Where it comes from. Other requests may use that then.
    pub(super) lent: Option<Lent>,
}

/// Counts a request of a connection.
#[derive(Debug)]
pub(super) struct UnderWay(Arc<Talk>);

impl UnderWay {
    pub(super) fn new(talk: &Arc<Talk>) -> Self {
        talk.under_way.fetch_add(1, Ordering::SeqCst);
        Self(talk.clone())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Carried {
    pub(super) fn new(incoming: Incoming, until: Until) -> Self {
        let mut carried = Self {
            incoming,
            until: Some(until),
            broken: None,
        };
        if carried.incoming.is_end_stream() {
            carried.whole();
        }
        carried
    }

    /// There is nothing more of it.
    fn whole(&mut self) {
        let lent = self.until.take().and_then(|until| until.lent);
        if let Some(lent) = lent {
            lent.answered();
        }
    }
}

impl Body for Carried {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        if let Some(error) = this.broken.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let lent = this.until.as_mut().and_then(|until| until.lent.as_mut());
        let frame = match lent {
            Some(lent) => lent.poll_frame(&mut this.incoming, context),
            None => Pin::new(&mut this.incoming).poll_frame(context),
        };
        if let Poll::Ready(Some(Err(error))) = frame {
            this.until = None;
            this.broken = Some(error);
            // The client gets first what came before, as far as it takes that at once: nothing more is
            // sent once this is told.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let last = match &frame {
            Poll::Ready(None) => true,
            // Nobody asks for what comes after them.
            Poll::Ready(Some(Ok(frame))) if frame.is_trailers() => true,
            _ => this.incoming.is_end_stream(),
        };
        if last {
            this.whole();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Body for Answered {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Here(body) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            Self::Pod(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Here(body) => body.is_end_stream(),
            Self::Pod(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Here(body) => body.size_hint(),
            Self::Pod(body) => body.size_hint(),
        }
    }
}
