//! A pooled HTTP/1 connection to a pod.
//!
//! The task of the client drives the connection: a separate task would cost two wake-ups for every request
//! and every frame of an answer.

use std::{
    future::poll_fn,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1},
};
use hyper_util::rt::TokioIo;
use tokio::task::unconstrained;
use tokio_util::sync::CancellationToken;

use super::{
    counted_stream::{CountedStream, WriteCounter},
    pool::ThreadConnections,
    request_body::RequestBody,
};

type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// An established connection.
pub(super) struct Http1Connection {
    sender: http1::SendRequest<RequestBody>,
    /// `None` once the connection has ended, or runs in a task of its own.
    driver: Option<Driver>,
    pub(super) tally: Arc<WriteCounter>,
}

/// A connection in use. It returns to the pool after a complete answer, and is closed otherwise.
#[derive(Debug)]
pub(super) struct PooledConnection {
    connection: Http1Connection,
    /// Cancelled when the body of its request was read, if there is one.
    upload: Option<CancellationToken>,
    pod: SocketAddr,
    pool: Arc<ThreadConnections>,
}

impl Http1Connection {
    pub(super) async fn handshake(
        wire: CountedStream,
        tally: Arc<WriteCounter>,
    ) -> hyper::Result<Self> {
        let (sender, connection) = http1::handshake(TokioIo::new(wire)).await?;
        Ok(Self {
            sender,
            driver: Some(Box::pin(connection.with_upgrades())),
            tally,
        })
    }

    /// Resolves once a request may be sent. Fails if the connection has ended.
    pub(super) async fn ready(&mut self) -> hyper::Result<()> {
        poll_fn(|context| {
            drive(&mut self.driver, context);
            self.sender.poll_ready(context)
        })
        .await
    }

    async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        let Self { sender, driver, .. } = self;
        // Without tokio's budget: an exhausted budget would register the no-op waker and lose the answer.
        let mut answer = pin!(unconstrained(sender.try_send_request(request)));
        poll_fn(|context| {
            drive(driver, context);
            answer.as_mut().poll(&mut noop_context())
        })
        .await
    }

    fn poll_frame(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        if self.driver.is_some() {
            // The body is polled first, so that the driver reads only what was requested.
            let frame = Pin::new(&mut *body).poll_frame(&mut noop_context());
            if frame.is_ready() {
                return frame;
            }
            drive(&mut self.driver, context);
        }
        Pin::new(body).poll_frame(context)
    }
}

/// A context without a waker, for futures that only the driver completes: the caller polls the driver.
fn noop_context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Polls the driver. An error of the connection reaches the future that waits for the answer.
fn drive(driver: &mut Option<Driver>, context: &mut Context<'_>) {
    let ended = driver.as_mut().map(|driver| driver.as_mut().poll(context));
    if ended.is_some_and(|ended| ended.is_ready()) {
        *driver = None;
    }
}

impl PooledConnection {
    pub(super) fn new(
        connection: Http1Connection,
        pod: SocketAddr,
        pool: &Arc<ThreadConnections>,
    ) -> Self {
        Self {
            connection,
            upload: None,
            pod,
            pool: pool.clone(),
        }
    }

    /// Sends a request; also returns the bytes sent before it.
    pub(super) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> (
        u64,
        Result<Response<Incoming>, TrySendError<Request<RequestBody>>>,
    ) {
        self.upload = request.body().ended();
        let before = self.connection.tally.begin();
        let sent = self.connection.send(request).await;
        if sent.is_ok() && !self.is_uploaded() {
            // The client may read nothing of the answer before it has sent the whole body.
            self.detach();
        }
        (before, sent)
    }

    /// The bytes sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.connection.tally.sent()
    }

    /// Drives the connection in a task of its own from now on; it does not return to the pool.
    pub(super) fn detach(&mut self) {
        if let Some(driver) = self.connection.driver.take() {
            self.pool.tasks.spawn(async move {
                let _ = driver.await;
            });
        }
    }

    /// The next frame of an answer.
    pub(super) fn poll_frame(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        self.connection.poll_frame(body, context)
    }

    /// Returns the connection to the pool after a complete answer, unless the pod answered before the
    /// whole request was sent.
    pub(super) fn release(mut self) {
        if !self.is_uploaded() {
            self.detach();
        }
        if self.connection.driver.is_some() {
            self.pool.put_back(self.pod, self.connection);
        }
    }

    fn is_uploaded(&self) -> bool {
        let read = (self.upload.as_ref()).is_none_or(CancellationToken::is_cancelled);
        read && !self.connection.tally.is_blocked()
    }
}

impl std::fmt::Debug for Http1Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http1Connection").finish_non_exhaustive()
    }
}
