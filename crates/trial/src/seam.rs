//! Where faults strike: between a client, with everything it does in production above it, and the
//! server.
//!
//! Reads that ask for the newest state get it, as a Kubernetes API server gives it; a server that is
//! behind shows that in its watches, and to those who are content with any state.

mod answer;
mod call;
mod director;
mod line;
mod stream;

use std::{
    future::pending,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use kube::client::Body;
use neap_kit::echo::at_work;
use neap_pocket::wire::Service as Server;
use tower::{BoxError, Service};

pub use call::Call;
pub(crate) use director::Director;
pub(crate) use line::{Line, Restart};
pub(crate) use stream::Stream;

use crate::{
    plan::{Action, Point, Verb},
    scene::Scene,
};

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// So long whoever meets conflicts may wait before it tries again: later and later, the more often.
const AGAIN: Duration = Duration::from_mins(1);

/// The connection of one life of an actor to the server.
#[derive(Clone)]
pub(crate) struct Seam {
    server: Server,
    /// The server as a view that may lag shows it.
    late: Server,
    line: Arc<Line>,
    scene: Arc<Scene>,
}

impl Seam {
    pub(crate) fn new(server: Server, late: Server, line: Arc<Line>, scene: Arc<Scene>) -> Self {
        Self {
            server,
            late,
            line,
            scene,
        }
    }

    async fn pass(mut self, request: Request<Body>) -> Result<Answer, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let call = Call::of(&parts, &body);
        self.line.go_on().await;
        if self.scene.is_storm() {
            // Whoever asks and asks is told of in the end, not answered.
            pending::<()>().await;
        }
        self.scene.asked(&self.line, &parts, &call, &body);
        if let Some(refusal) = self.before(&call).await {
            self.scene.answered(&self.line, &call, refusal.status());
            return Ok(refusal);
        }
        let late = self.line.is_late(&call);
        let server = if late {
            &mut self.late
        } else {
            &mut self.server
        };
        let path = parts.uri.path().to_owned();
        let request = Request::from_parts(parts, Body::from(body.clone()));
        let answer = server.call(request).await?;
        self.scene.answered(&self.line, &call, answer.status());
        let answer = answer.map(|body| body.map_err(BoxError::from).boxed_unsync());
        if call.verb.writes() && answer.status().is_success() {
            if let Some(refusal) = self.strike(Point::WriteAfter, &call).await {
                return Ok(refusal);
            }
            return self.own(answer, &call, &path, &body).await;
        }
        if call.verb == Verb::Watch && answer.status().is_success() {
            return Ok(stream::faulty(answer, call, self.line, self.scene));
        }
        Ok(answer)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "what answers a write is one object"
    )]
    /// The same answer, known to be that to a write of whoever is at work.
    async fn own(
        &self,
        answer: Answer,
        call: &Call,
        path: &str,
        sent: &[u8],
    ) -> Result<Answer, BoxError> {
        let Some(number) = at_work() else {
            return Ok(answer);
        };
        let (parts, body) = answer.into_parts();
        let told = body.collect().await?.to_bytes();
        self.line.own().answered(number, call, path, sent, &told);
        let body = Full::new(told).map_err(|never| match never {});
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }

    async fn before(&self, call: &Call) -> Option<Answer> {
        let point = match call.verb {
            Verb::Get => Point::Read,
            Verb::List => Point::ListPage,
            Verb::Watch => {
                if let Some(refusal) = self.line.reopened(call) {
                    return Some(refusal);
                }
                Point::WatchOpen
            }
            _ => Point::WriteBefore,
        };
        let struck = self.strike(point, call).await;
        struck.or_else(|| {
            let refusal = self.line.conflicts(call)?;
            self.scene.expect_another_try(AGAIN);
            Some(refusal)
        })
    }

    /// What is answered instead, if a fault says so.
    async fn strike(&self, point: Point, call: &Call) -> Option<Answer> {
        let actions = self.scene.strike(point, self.line.actor(), call);
        for action in actions {
            match action {
                Action::Crash => self.crash(Restart::default()).await,
                Action::CrashStale(events, kinds) => self.crash(Restart { events, kinds }).await,
                Action::Fail(fault) => return Some(answer::refusal(&fault, call)),
                Action::Conflict(times) => self.line.conflict(call, times),
                Action::Delay(time) => self.scene.clock.sleep(time).await,
                Action::Pause(time) => self.line.pause(time).await,
                Action::Lag(events, kinds, time) => self.line.lag(events, kinds, time),
                Action::Gone => return Some(answer::gone()),
                // A plan that asks for these here was refused.
                Action::Reset | Action::Merge(_) | Action::Twice => {}
            }
        }
        // Whoever died meanwhile is not answered.
        self.line.go_on().await;
        None
    }

    /// Nothing comes back to a process that is dead.
    async fn crash(&self, restart: Restart) {
        self.line.crash(restart);
        pending::<()>().await;
    }
}

impl Service<Request<Body>> for Seam {
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().pass(request))
    }
}
