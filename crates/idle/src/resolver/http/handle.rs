//! Handles one request, from its head to the head of its answer.

use std::{collections::VecDeque, convert::Infallible, net::SocketAddr, sync::Arc};

use futures::FutureExt;
use http::{HeaderMap, Method, Request, Response, header, request};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use neap_kit::http::check_host;
use tokio_util::sync::CancellationToken;

use super::{
    forward, headers,
    request_body::{self, BufferedBody, RequestBody},
    response_body::{InFlightGuard, ResponseBody},
    responses,
    validated_stream::ClientConnectionState,
};
use crate::{
    api::Protocol,
    resolver::{
        Resolver,
        events::{self, HostLookedUp, RequestLabels, RequestRejected},
        hold::{HeldRequest, HoldError},
        routes::Route,
    },
};

/// Bytes of a body that are read while its request is held; the rest stays with the client.
const MAX_EARLY_BODY: usize = 16 << 10;

/// The port that accepted a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenPort {
    /// The port of one port of one service.
    Dedicated(u16),
    /// The port that all services share.
    Shared,
}

/// The client connection of a request.
#[derive(Debug)]
pub(super) struct ClientConnection {
    pub(super) resolver: Resolver,
    pub(super) listen_port: ListenPort,
    pub(super) source: SocketAddr,
    pub(super) state: Arc<ClientConnectionState>,
    /// Cancelled when the connection has to close after its current requests.
    pub(super) close: CancellationToken,
}

/// Why a request is not sent to a pod.
pub(super) enum NotPlaced {
    Hold(HoldError),
    /// Reading the body failed.
    BodyUnreadable,
}

/// A request that waits for a pod.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) held: HeldRequest,
    pub(super) head: request::Parts,
    pub(super) body: BufferedBody,
}

pub(super) async fn handle(
    downstream: Arc<ClientConnection>,
    request: Request<Incoming>,
    in_flight: InFlightGuard,
) -> Result<Response<ResponseBody>, Infallible> {
    let (head, rest) = request.into_parts();
    let resolver = &downstream.resolver;
    let labels = RequestLabels::of(&head, resolver.unbounded_metrics);
    let grpc = is_grpc(&head.headers);
    if let Err(why) = check_host(head.version, &head.uri, &head.headers) {
        resolver.meter.emit(&RequestRejected {
            service: None,
            protocol: Protocol::Http,
            reason: responses::BAD,
            why: why.to_owned(),
        });
        return Ok(responses::bad_host(why));
    }
    let route = match downstream.route(&head, &labels) {
        Ok(route) => route,
        Err(unknown) if grpc => return Ok(responses::in_grpc(*unknown)),
        Err(unknown) => return Ok(*unknown),
    };
    let (key, arrived) = (route.service.key.clone(), resolver.clock.uptime());
    let response = answer(&downstream, route, head, rest, in_flight).await;
    resolver.meter.emit(&events::RequestAnswered {
        service: &key,
        labels: &labels,
        status: response.status(),
        took: resolver.clock.uptime().saturating_sub(arrived),
    });
    Ok(if grpc {
        responses::in_grpc(response)
    } else {
        response
    })
}

async fn answer(
    downstream: &Arc<ClientConnection>,
    route: Arc<Route>,
    head: request::Parts,
    rest: Incoming,
    in_flight: InFlightGuard,
) -> Response<ResponseBody> {
    let (resolver, service) = (&downstream.resolver, &route.service);
    if let Some(canned) = service
        .probes
        .answer(&head.method, &head.uri, &head.headers)
    {
        return responses::canned(canned, &head.method);
    }
    if head.method == Method::CONNECT {
        resolver.record_rejected(&route, responses::UNSUPPORTED, &"CONNECT");
        return responses::not_carried("CONNECT");
    }
    if service.out_of_path {
        downstream.close.cancel();
    }
    let open = resolver.start_request(&route);
    let mut held = HeldRequest::new(&resolver.held_requests, route.clone(), size(&head));
    if service.waiting_page && is_browser(&head) {
        // Requests the wake as a side effect; a browser that would have to wait gets the page.
        match held.assigned_pod().now_or_never() {
            Some(Ok(_)) => {}
            Some(Err(refused)) => {
                resolver.record_refused(&held, &refused);
                return responses::refused(&refused);
            }
            None => return responses::page(service),
        }
    }
    let body = BufferedBody {
        early: VecDeque::new(),
        rest,
    };
    let pending = PendingRequest { held, head, body };
    forward::forward(downstream, pending, open, in_flight).await
}

impl ClientConnection {
    /// The route of a request, or the response if it has none.
    fn route(
        &self,
        head: &request::Parts,
        labels: &RequestLabels,
    ) -> Result<Arc<Route>, Box<Response<ResponseBody>>> {
        let table = self.resolver.route_table.current();
        match self.listen_port {
            ListenPort::Dedicated(port) => table.route(port).cloned().ok_or_else(|| {
                // The ElastiService was removed: the pods answer directly from now on.
                self.close.cancel();
                self.unknown(responses::GONE);
                Box::new(responses::gone(head.version))
            }),
            ListenPort::Shared => {
                let host_routing = &self.resolver.host_routing;
                let route = host_routing.route(&table, &head.headers, &head.uri);
                let service = route.as_ref().map(|route| &route.service.key);
                self.resolver.meter.emit(&HostLookedUp { service, labels });
                route.ok_or_else(|| {
                    self.unknown(responses::UNKNOWN);
                    Box::new(responses::unknown())
                })
            }
        }
    }

    fn unknown(&self, reason: &'static str) {
        self.resolver.meter.emit(&RequestRejected {
            service: None,
            protocol: Protocol::Http,
            reason,
            why: "no service has the requested host or port".to_owned(),
        });
    }
}

impl PendingRequest {
    /// The assigned pod. Reads a part of the body meanwhile, to notice when the client leaves.
    pub(super) async fn assigned_pod(&mut self) -> Result<SocketAddr, NotPlaced> {
        let mut read: usize = self.body.early.iter().map(request_body::size).sum();
        let mut listening = read < MAX_EARLY_BODY && !self.body.rest.is_end_stream();
        loop {
            let frame = tokio::select! {
                biased;
                pod = self.held.assigned_pod() => return pod.map_err(NotPlaced::Hold),
                frame = self.body.rest.frame(), if listening => frame,
            };
            let frame = match frame {
                Some(Ok(frame)) => frame,
                // Nothing was sent, and the client waits for no answer.
                Some(Err(_)) => return Err(NotPlaced::BodyUnreadable),
                None => {
                    listening = false;
                    continue;
                }
            };
            let more = request_body::size(&frame);
            read += more;
            self.body.early.push_back(frame);
            listening =
                self.held.grow(more) && read < MAX_EARLY_BODY && !self.body.rest.is_end_stream();
        }
    }

    /// The request in the form that is sent to a pod.
    pub(super) fn request(self, source: SocketAddr) -> (HeldRequest, Request<RequestBody>) {
        let mut head = self.head;
        let wanted = headers::requested_upgrade(head.version, &head.headers);
        let route = self.held.route();
        headers::prepare_request(&mut head, source.ip(), route, wanted.as_ref());
        (
            self.held,
            Request::from_parts(head, RequestBody::new(self.body)),
        )
    }
}

/// The approximate memory that a head uses.
fn size(head: &request::Parts) -> usize {
    let headers = head.headers.iter();
    let headers: usize = headers
        .map(|(name, value)| name.as_str().len() + value.len() + 32)
        .sum();
    headers + head.uri.path().len() + 256
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

fn is_browser(head: &request::Parts) -> bool {
    let accepts = |headers: &HeaderMap| {
        let values = headers.get_all(header::ACCEPT);
        values.iter().any(|value| {
            value
                .to_str()
                .is_ok_and(|value| value.contains("text/html"))
        })
    };
    head.method == Method::GET
        && accepts(&head.headers)
        && !head.headers.contains_key(header::UPGRADE)
}
