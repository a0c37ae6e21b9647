//! The bodies of responses to clients.

use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;

use super::{pooled::PooledConnection, validated_stream::ClientConnectionState};
use crate::resolver::activity::OpenRequest;

/// The body of a response to a client.
#[derive(Debug)]
pub(super) enum ResponseBody {
    /// Of the resolver.
    Local(Full<Bytes>),
    /// Of a pod.
    Pod(PodBody),
}

/// The body of a pod's answer.
#[derive(Debug)]
pub(super) struct PodBody {
    pub(super) incoming: Incoming,
    pub(super) guards: Option<RequestGuards>,
    /// Why it ended too early, until the client's connection gets the error.
    broken: Option<hyper::Error>,
}

/// Guards that last until a request is completely answered.
#[derive(Debug)]
pub(super) struct RequestGuards {
    pub(super) _open: OpenRequest,
    pub(super) _in_flight: InFlightGuard,
    /// The pod's connection, which returns to the pool then.
    pub(super) connection: Option<PooledConnection>,
}

/// Counts a request of a client connection as in flight until dropped.
#[derive(Debug)]
pub(super) struct InFlightGuard(Arc<ClientConnectionState>);

impl InFlightGuard {
    pub(super) fn new(state: &Arc<ClientConnectionState>) -> Self {
        state.in_flight.fetch_add(1, Ordering::SeqCst);
        Self(state.clone())
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

impl PodBody {
    pub(super) fn new(incoming: Incoming, guards: RequestGuards) -> Self {
        let mut body = Self {
            incoming,
            guards: Some(guards),
            broken: None,
        };
        if body.incoming.is_end_stream() {
            body.finish();
        }
        body
    }

    /// Releases the guards at the end of the body.
    fn finish(&mut self) {
        let connection = self.guards.take().and_then(|guards| guards.connection);
        if let Some(connection) = connection {
            connection.release();
        }
    }
}

impl Body for PodBody {
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
        let connection = this
            .guards
            .as_mut()
            .and_then(|guards| guards.connection.as_mut());
        let frame = match connection {
            Some(connection) => connection.poll_frame(&mut this.incoming, context),
            None => Pin::new(&mut this.incoming).poll_frame(context),
        };
        if let Poll::Ready(Some(Err(error))) = frame {
            this.guards = None;
            this.broken = Some(error);
            // hyper sends nothing more after an error, so the frames before it are flushed first, as far
            // as the client accepts them at once.
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let last = match &frame {
            Poll::Ready(None) => true,
            // hyper does not poll again after trailers.
            Poll::Ready(Some(Ok(frame))) if frame.is_trailers() => true,
            _ => this.incoming.is_end_stream(),
        };
        if last {
            this.finish();
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

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            Self::Local(body) => Pin::new(body)
                .poll_frame(context)
                .map(|frame| frame.map(|frame| frame.map_err(|never| match never {}))),
            Self::Pod(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Local(body) => body.is_end_stream(),
            Self::Pod(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Local(body) => body.size_hint(),
            Self::Pod(body) => body.size_hint(),
        }
    }
}
