//! Forwards a request to a pod, once.

use std::{pin::pin, time::Duration};

use http::{Request, Response, StatusCode};
use hyper::{body::Incoming, upgrade::OnUpgrade};
use neap_kit::telemetry::continue_trace;

use super::{
    handle::{ClientConnection, NotPlaced, PendingRequest},
    headers,
    pod_connection::{PodConnection, SendError},
    request_body::RequestBody,
    response_body::{InFlightGuard, PodBody, RequestGuards, ResponseBody},
    responses, upgrade,
};
use crate::resolver::{
    activity::OpenRequest,
    events::SentToAnotherPod,
    hold::{HeldRequest, HoldError},
};

/// A request whose body is still being sent after this time no longer counts against the pod's limit.
const UPLOAD_GRACE: Duration = Duration::from_secs(5);

/// The outcome of forwarding a request.
enum ForwardOutcome {
    ResponseBody(Response<Incoming>, PodConnection),
    /// Nothing was sent.
    NotSent(HoldError),
    /// It was sent, and the connection failed before an answer.
    Broken(hyper::Error),
    /// It was sent, and no answer began in time.
    TimedOut,
}

pub(super) async fn forward(
    downstream: &ClientConnection,
    mut pending: PendingRequest,
    open: OpenRequest,
    in_flight: InFlightGuard,
) -> Response<ResponseBody> {
    let switch = headers::requested_upgrade(pending.head.version, &pending.head.headers);
    let client = switch.and_then(|_| pending.head.extensions.remove::<OnUpgrade>());
    let placed = pending.assigned_pod().await;
    continue_trace(pending.held.span(), &pending.head.headers);
    if let Err(unplaced) = placed {
        return not_sent(downstream, &pending.held, &unplaced);
    }
    let (mut held, request) = pending.request(downstream.source);
    // Boxed, so that the futures of held requests stay small.
    let outcome = Box::pin(send(downstream, &mut held, request)).await;
    let key = held.route().service.key.clone();
    match outcome {
        ForwardOutcome::NotSent(refused) => {
            downstream.resolver.record_refused(&held, &refused);
            responses::refused(&refused)
        }
        ForwardOutcome::Broken(error) => {
            let resolver = &downstream.resolver;
            resolver.record_rejected(held.route(), responses::BROKEN, &error);
            responses::broken(&key)
        }
        ForwardOutcome::TimedOut => {
            let late = held.deadline_exceeded();
            downstream.resolver.record_refused(&held, &late);
            responses::timed_out(&late)
        }
        ForwardOutcome::ResponseBody(mut response, connection) => {
            held.record_answered();
            let cold = downstream.resolver.record_served(&held);
            let switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
            headers::prepare_response(response.headers_mut(), switched);
            if let Some(breakdown) = cold {
                response = responses::with_cold_start(response, &breakdown);
            }
            let mut guards = RequestGuards {
                _open: open,
                _in_flight: in_flight,
                connection: connection.into_pooled(),
            };
            if switched {
                if let Some(connection) = &mut guards.connection {
                    connection.detach();
                }
                return upgrade::switch(downstream, client, response, guards);
            }
            response.map(|body| ResponseBody::Pod(PodBody::new(body, guards)))
        }
    }
}

/// The response to a request of which nothing was sent.
fn not_sent(
    downstream: &ClientConnection,
    held: &HeldRequest,
    unplaced: &NotPlaced,
) -> Response<ResponseBody> {
    match unplaced {
        NotPlaced::Hold(refused) => {
            downstream.resolver.record_refused(held, refused);
            responses::refused(refused)
        }
        NotPlaced::BodyUnreadable => {
            // A malformed request is counted when its connection ends.
            if downstream.state.violation.get().is_none() {
                let (route, resolver) = (held.route(), &downstream.resolver);
                resolver.record_rejected(route, responses::LEFT, &responses::UNREAD);
            }
            responses::unread()
        }
    }
}

/// Sends the request to the first pod that accepts it. A request that a pod has not processed goes to
/// another; any other is never sent again.
async fn send(
    downstream: &ClientConnection,
    held: &mut HeldRequest,
    mut request: Request<RequestBody>,
) -> ForwardOutcome {
    let version = request.version();
    loop {
        let pod = match held.assigned_pod().await {
            Ok(pod) => pod,
            Err(refused) => return ForwardOutcome::NotSent(refused),
        };
        let client = &downstream.resolver.pool;
        let Ok(mut connection) = client.connection(pod, version).await else {
            held.record_refused();
            continue;
        };
        held.record_connected();
        let sent = send_before_deadline(downstream, held, &mut connection, request).await;
        let refused = match sent {
            None => return ForwardOutcome::TimedOut,
            Some(Ok(response)) => return ForwardOutcome::ResponseBody(response, connection),
            Some(Err(SendError::Broken(error))) => return ForwardOutcome::Broken(error),
            Some(Err(SendError::NotProcessed {
                request: unsent,
                refused,
            })) => {
                request = *unsent;
                refused
            }
        };
        downstream.resolver.meter.emit(&SentToAnotherPod {
            service: &held.route().service.key,
            protocol: held.route().port.protocol,
        });
        if refused {
            held.record_refused();
        }
    }
}

/// Sends the request and waits for the head of the answer; `None` if the deadline passes first.
async fn send_before_deadline(
    downstream: &ClientConnection,
    held: &mut HeldRequest,
    connection: &mut PodConnection,
    request: Request<RequestBody>,
) -> Option<Result<Response<Incoming>, SendError>> {
    let clock = downstream.resolver.clock;
    // A pod may answer only after the whole body, so the time of the upload does not count.
    let (left, ended) = (held.remaining(), request.body().ended());
    let late = async {
        if let Some(ended) = &ended {
            ended.cancelled().await;
        }
        clock.sleep(left).await;
    };
    let mut sending = pin!(async {
        tokio::select! {
            biased;
            sent = connection.send(request) => Some(sent),
            () = late => None,
        }
    });
    if let Some(ended) = &ended {
        tokio::select! {
            biased;
            sent = sending.as_mut() => return sent,
            uploaded = clock.within(UPLOAD_GRACE, ended.cancelled()) => {
                if uploaded.is_none() {
                    held.finish();
                }
            }
        }
    }
    sending.await
}
