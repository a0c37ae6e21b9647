//! Injects faults between a production client and the server.
//!
//! Reads that ask for the newest state get it, as from a Kubernetes API server; a lagging server
//! shows old state only in watches and in reads that accept any version.

mod call;
mod connection;
mod plan_matcher;
mod responses;
mod watch_stream;

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
use neap_kit::own_writes::current_reconcile;
use neap_pocket::wire::Service as Server;
use tower::{BoxError, Service};

pub use call::Call;
pub(crate) use connection::{Connection, Restart};
pub(crate) use plan_matcher::PlanMatcher;
pub(crate) use watch_stream::WatchRecord;

use crate::{
    plan::{Action, Point, Verb},
    run_state::RunState,
};

pub(crate) type ServerResponse = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// Time in which a process that meets conflicts retries: enough for a dozen in a row, more than any
/// plan has.
const CONFLICT_RETRY_TIME: Duration = Duration::from_mins(1);

/// The connection of one process lifetime to the server.
#[derive(Clone)]
pub(crate) struct FaultInjector {
    server: Server,
    /// The server behind a view that may lag.
    lagging: Server,
    connection: Arc<Connection>,
    run_state: Arc<RunState>,
}

impl FaultInjector {
    pub(crate) fn new(
        server: Server,
        lagging: Server,
        connection: Arc<Connection>,
        run_state: Arc<RunState>,
    ) -> Self {
        Self {
            server,
            lagging,
            connection,
            run_state,
        }
    }

    async fn pass(mut self, request: Request<Body>) -> Result<ServerResponse, BoxError> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await?;
        let call = Call::of(&parts, &body);
        self.connection.wait_until_runnable().await;
        if self.run_state.is_request_loop() {
            // A process in a request loop gets no answer; the violation is reported at the end.
            pending::<()>().await;
        }
        self.run_state
            .record_request(&self.connection, &parts, &call, &body);
        if let Some(refusal) = self.before(&call).await {
            self.run_state
                .record_response(&self.connection, &call, refusal.status());
            return Ok(refusal);
        }
        let lagging = self.connection.is_late(&call);
        let server = if lagging {
            &mut self.lagging
        } else {
            &mut self.server
        };
        let path = parts.uri.path().to_owned();
        let request = Request::from_parts(parts, Body::from(body.clone()));
        let response = server.call(request).await?;
        self.run_state
            .record_response(&self.connection, &call, response.status());
        let response = response.map(|body| body.map_err(BoxError::from).boxed_unsync());
        if call.verb.writes() && response.status().is_success() {
            if let Some(refusal) = self.strike(Point::WriteAfter, &call).await {
                return Ok(refusal);
            }
            return self.record_write(response, &call, &path, &body).await;
        }
        if call.verb == Verb::Watch && response.status().is_success() {
            return Ok(watch_stream::faulty(
                response,
                call,
                self.connection,
                self.run_state,
            ));
        }
        Ok(response)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "what answers a write is one object"
    )]
    /// Records the answer as that to a write of the current reconcile, and returns it unchanged.
    async fn record_write(
        &self,
        response: ServerResponse,
        call: &Call,
        path: &str,
        sent: &[u8],
    ) -> Result<ServerResponse, BoxError> {
        let Some(number) = current_reconcile() else {
            return Ok(response);
        };
        let (parts, body) = response.into_parts();
        let body = body.collect().await?.to_bytes();
        self.connection
            .own_writes()
            .record_response(number, call, path, sent, &body);
        let body = Full::new(body).map_err(|never| match never {});
        Ok(Response::from_parts(parts, body.boxed_unsync()))
    }

    async fn before(&self, call: &Call) -> Option<ServerResponse> {
        let point = match call.verb {
            Verb::Get => Point::Read,
            Verb::List => Point::ListPage,
            Verb::Watch => {
                if let Some(refusal) = self.connection.refuse_watch(call) {
                    return Some(refusal);
                }
                Point::WatchOpen
            }
            _ => Point::WriteBefore,
        };
        let struck = self.strike(point, call).await;
        struck.or_else(|| {
            let refusal = self.connection.next_conflict(call)?;
            self.run_state.expect_retry(CONFLICT_RETRY_TIME);
            Some(refusal)
        })
    }

    /// The response that a fault substitutes, if any.
    async fn strike(&self, point: Point, call: &Call) -> Option<ServerResponse> {
        let actions = self.run_state.strike(point, self.connection.actor(), call);
        for action in actions {
            match action {
                Action::Crash => self.crash(Restart::default()).await,
                Action::CrashStale(events, kinds) => self.crash(Restart { events, kinds }).await,
                Action::Fail(fault) => return Some(responses::refusal(&fault, call)),
                Action::Conflict(times) => self.connection.add_conflicts(call, times),
                Action::Delay(time) => self.run_state.clock.sleep(time).await,
                Action::Pause(time) => self.connection.pause(time).await,
                Action::Lag(events, kinds, time) => self.connection.lag(events, kinds, time),
                Action::Gone => return Some(responses::gone()),
                // The parser rejects plans with these actions here.
                Action::Reset
                | Action::Merge(_)
                | Action::Twice
                | Action::Lose
                | Action::Truncate(_)
                | Action::Corrupt(_) => {}
            }
        }
        // A process that died meanwhile gets no answer.
        self.connection.wait_until_runnable().await;
        None
    }

    /// A dead process gets no answer.
    async fn crash(&self, restart: Restart) {
        self.connection.crash(restart);
        pending::<()>().await;
    }
}

impl Service<Request<Body>> for FaultInjector {
    type Response = ServerResponse;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<ServerResponse, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().pass(request))
    }
}
