//! Systems that processes call over HTTP, and the faults between them.
//!
//! A process gets a transport for its `kit` client. Every request on it passes the points `ext.before`
//! and `ext.after`: `call=` of a plan is the method, and `name=` the host with the path.

use std::{collections::BTreeMap, fmt, future::pending, sync::Arc, time::Duration};

use http::{Request, Response, StatusCode};
use neap_kit::{
    client::{Body, Fault as HttpFault, Refusal, Transport, TransportError, transport_fn},
    clock::Clock,
};
use neap_pocket::store::Event;
use tokio::sync::oneshot;
use tower::ServiceExt;

use super::ExternalClient;
use crate::{
    fault_injector::{Call, Restart},
    judge::{Oracle, Violation},
    plan::{Action, Fault, Point, Verb},
    workload::OpenService,
};

/// The longest request that can be delayed: it has left its sender by then.
const MAX_DELAYED: usize = 16 << 20;

type Answer = Result<Response<Body>, TransportError>;
type Check = Box<dyn Fn(&[Arc<Event>]) -> Vec<String> + Send + Sync>;

/// A system that processes call over HTTP, in memory.
pub struct ExternalService {
    transport: Transport,
    check: Option<Check>,
}

impl ExternalService {
    /// The system behind this transport, such as an emulator.
    pub fn new(transport: Transport) -> Self {
        Self {
            transport,
            check: None,
        }
    }

    /// The same system, which is judged at the end of a run. `check` gets the writes to the API server,
    /// and returns what must not be.
    pub fn checked(
        mut self,
        check: impl Fn(&[Arc<Event>]) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        self.check = Some(Box::new(check));
        self
    }
}

impl fmt::Debug for ExternalService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExternalService").finish_non_exhaustive()
    }
}

/// The systems of a run, by their hosts.
#[derive(Debug, Default)]
pub(crate) struct Services(BTreeMap<&'static str, ExternalService>);

impl Services {
    pub(crate) fn open(services: &[(&'static str, OpenService)], clock: Clock) -> Self {
        let opened = services.iter().map(|(host, open)| (*host, open(clock)));
        Self(opened.collect())
    }

    fn find(&self, host: &str) -> Option<Transport> {
        let service = self.0.get(host)?;
        Some(service.transport.clone())
    }

    /// What the checks of the systems find.
    pub(crate) fn violations(&self, history: &[Arc<Event>]) -> Vec<Violation> {
        let mut violations = Vec::new();
        for (host, service) in &self.0 {
            let found = service.check.as_ref().map(|check| check(history));
            let found = found.into_iter().flatten();
            violations.extend(found.map(|text| Violation::new(Oracle::Outside, host, text)));
        }
        violations
    }
}

/// What the faults before a call leave of it.
enum Passage {
    /// The call is sent, late by this time, once or twice.
    Sent { late: Duration, twice: bool },
    /// It is not sent, and this is the answer.
    Answered(Answer),
}

impl ExternalClient {
    /// What carries the requests of a `kit` client to the workload's systems, with the faults of the
    /// plan.
    pub fn transport(&self) -> Transport {
        let client = self.clone();
        transport_fn(move |request| client.clone().exchange(request))
    }

    async fn exchange(self, request: Request<Body>) -> Answer {
        self.connection.wait_until_runnable().await;
        if self.run_state.is_request_loop() {
            // A process in a request loop gets no answer; the violation is reported at the end.
            pending::<()>().await;
        }
        let uri = request.uri();
        let host = uri.authority().map(http::uri::Authority::as_str);
        let host = host.unwrap_or_default().to_ascii_lowercase();
        let Some(system) = self.run_state.services.find(&host) else {
            let unknown = format!("the workload has no system {host:?}");
            return Err(TransportError::NotSent(unknown.into()));
        };
        let call = http_call(request.method().as_str(), &host, uri.path());
        let query = uri.query().unwrap_or_default();
        self.run_state
            .record_http_call(&self.connection, &call, query);
        let response = match self.before(&call).await {
            Passage::Answered(answer) => return self.answered(&call, answer),
            Passage::Sent { late, twice } => {
                let answer = self.deliver(system, request, late, twice).await;
                self.answered(&call, answer)?
            }
        };
        self.connection.wait_until_runnable().await;
        if response.status().is_success() {
            self.after(&call, response).await
        } else {
            Ok(response)
        }
    }

    fn answered(&self, call: &Call, answer: Answer) -> Answer {
        if let Ok(response) = &answer {
            self.run_state
                .record_response(&self.connection, call, response.status());
        }
        answer
    }

    async fn before(&self, call: &Call) -> Passage {
        let actor = self.connection.actor();
        let (mut late, mut twice) = (Duration::ZERO, false);
        for action in self.run_state.strike(Point::ExtBefore, actor, call) {
            match action {
                Action::Crash => self.die().await,
                Action::Fail(fault) => return Passage::Answered(Ok(refusal(fault))),
                Action::Lose => return Passage::Answered(Err(lost())),
                Action::Delay(time) => late = time,
                Action::Pause(time) => self.connection.pause(time).await,
                Action::Twice => twice = true,
                // The parser rejects plans with these actions here.
                _ => {}
            }
        }
        // A process that died meanwhile sends nothing.
        self.connection.wait_until_runnable().await;
        Passage::Sent { late, twice }
    }

    async fn after(&self, call: &Call, mut response: Response<Body>) -> Answer {
        let actor = self.connection.actor();
        for action in self.run_state.strike(Point::ExtAfter, actor, call) {
            match action {
                Action::Crash => self.die().await,
                Action::Fail(fault) => return Ok(refusal(fault)),
                Action::Lose => return Err(lost()),
                Action::Delay(time) => self.run_state.hold(time).await,
                Action::Pause(time) => self.connection.pause(time).await,
                Action::Truncate(bytes) => response = HttpFault::Truncated(bytes).damage(response),
                Action::Corrupt(at) => response = HttpFault::Corrupted(at).damage(response),
                // The parser rejects plans with these actions here.
                _ => {}
            }
        }
        // A process that died meanwhile gets no answer.
        self.connection.wait_until_runnable().await;
        Ok(response)
    }

    /// A late request cannot be recalled: it arrives even if its sender has died by then.
    async fn deliver(
        &self,
        system: Transport,
        request: Request<Body>,
        late: Duration,
        twice: bool,
    ) -> Answer {
        let clock = self.run_state.clock;
        if late.is_zero() {
            return send(clock, system, request, twice).await;
        }
        let (head, body) = request.into_parts();
        let body = body.bytes(MAX_DELAYED).await;
        let body = body.map_err(|error| TransportError::Interrupted(error.into()))?;
        let request = Request::from_parts(head, Body::from(body));
        let (sender, answer) = oneshot::channel();
        let run_state = self.run_state.clone();
        self.run_state.in_flight.lock().spawn(async move {
            run_state.hold(late).await;
            // The sender may no longer wait for it.
            let _ = sender.send(send(clock, system, request, twice).await);
        });
        answer.await.unwrap_or_else(|_| Err(lost()))
    }

    async fn die(&self) {
        self.connection.crash(Restart::default());
        pending::<()>().await;
    }
}

async fn send(clock: Clock, system: Transport, request: Request<Body>, twice: bool) -> Answer {
    if twice {
        HttpFault::Twice.strike(clock, system, request).await
    } else {
        system.oneshot(request).await
    }
}

fn lost() -> TransportError {
    TransportError::Interrupted("the connection broke".into())
}

fn refusal(fault: Fault) -> Response<Body> {
    let status = StatusCode::from_u16(fault.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let retry_after = fault.retry_after.map(|time| time.as_secs());
    let refusal = Refusal {
        status,
        retry_after,
    };
    refusal.response()
}

/// The call in the form in which plans and traces describe requests.
fn http_call(method: &str, host: &str, path: &str) -> Call {
    Call {
        verb: Verb::Call,
        group: String::new(),
        kind: method.to_owned(),
        namespace: String::new(),
        name: format!("{host}{path}"),
        any_age: false,
        after: None,
    }
}
