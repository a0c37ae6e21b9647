//! A connection to a pod over which one request goes at a time.
//!
//! Whoever uses it moves its bytes, in the task of the client: a task of its own would be woken, and
//! the client's again, for every request and every piece of an answer.

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
    client::Shared,
    sent::Sent,
    wire::{Tally, Wire},
};

type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// A connection that stands.
pub(super) struct Standing {
    sender: http1::SendRequest<Sent>,
    /// Nothing once it has ended, or if it moves its bytes by itself.
    driver: Option<Driver>,
    pub(super) tally: Arc<Tally>,
}

/// One that somebody uses. It goes back if the pod answers to the end, and is closed otherwise.
#[derive(Debug)]
pub(super) struct Lent {
    standing: Standing,
    /// Told when the body of its request was read, if there is one.
    upload: Option<CancellationToken>,
    pod: SocketAddr,
    home: Arc<Shared>,
}

impl Standing {
    pub(super) async fn over(wire: Wire, tally: Arc<Tally>) -> hyper::Result<Self> {
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
        request: Request<Sent>,
    ) -> Result<Response<Incoming>, TrySendError<Request<Sent>>> {
        let Self { sender, driver, .. } = self;
        // Without a budget, or it might wait for a waker that nobody hears although it is there.
        let mut answer = pin!(unconstrained(sender.try_send_request(request)));
        poll_fn(|context| {
            drive(driver, context);
            answer.as_mut().poll(&mut unheard())
        })
        .await
    }

    fn poll_frame(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        if self.driver.is_some() {
            // Asking comes first: nothing is read that nobody asked for.
            let asked = Pin::new(&mut *body).poll_frame(&mut unheard());
            if asked.is_ready() {
                return asked;
            }
            drive(&mut self.driver, context);
        }
        Pin::new(body).poll_frame(context)
    }
}

/// What only a driver brings about needs to wake nobody: whoever waits for it drives.
fn unheard() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Moves what can be moved. What breaks the connection is told to whoever waits for an answer.
fn drive(driver: &mut Option<Driver>, context: &mut Context<'_>) {
    let ended = driver.as_mut().map(|driver| driver.as_mut().poll(context));
    if ended.is_some_and(|ended| ended.is_ready()) {
        *driver = None;
    }
}

impl Lent {
    pub(super) fn new(standing: Standing, pod: SocketAddr, home: &Arc<Shared>) -> Self {
        Self {
            standing,
            upload: None,
            pod,
            home: home.clone(),
        }
    }

    /// Sends a request, and gives what was sent before it.
    pub(super) async fn send(
        &mut self,
        request: Request<Sent>,
    ) -> (u64, Result<Response<Incoming>, TrySendError<Request<Sent>>>) {
        self.upload = request.body().ended();
        let before = self.standing.tally.begin();
        let sent = self.standing.send(request).await;
        if sent.is_ok() && !self.is_uploaded() {
            // The client may well read nothing of the answer before it has sent everything.
            self.let_go_on();
        }
        (before, sent)
    }

    /// So many bytes were sent over it until now.
    pub(super) fn sent(&self) -> u64 {
        self.standing.tally.sent()
    }

    /// From now on it moves its bytes by itself, and does not go back.
    pub(super) fn let_go_on(&mut self) {
        if let Some(driver) = self.standing.driver.take() {
            self.home.tasks.spawn(async move {
                let _ = driver.await;
            });
        }
    }

    /// The next of the body of an answer.
    pub(super) fn poll_frame(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        self.standing.poll_frame(body, context)
    }

    /// The pod has answered to the end, so others may use it, unless the pod did so before it was
    /// sent everything.
    pub(super) fn answered(mut self) {
        if !self.is_uploaded() {
            self.let_go_on();
        }
        if self.standing.driver.is_some() {
            self.home.keep(self.pod, self.standing);
        }
    }

    fn is_uploaded(&self) -> bool {
        let read = (self.upload.as_ref()).is_none_or(CancellationToken::is_cancelled);
        read && !self.standing.tally.is_blocked()
    }
}

impl std::fmt::Debug for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Standing").finish_non_exhaustive()
    }
}
