//! One request, from its head to the head of its answer.

use std::{collections::VecDeque, convert::Infallible, net::SocketAddr, sync::Arc};

use futures::FutureExt;
use http::{HeaderMap, Method, Request, Response, header, request};
use http_body::Body;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;

use super::{
    answer,
    body::{Answered, UnderWay},
    forward,
    guard::Talk,
    headers,
    sent::{self, Held, Sent},
};
use crate::{
    api::Protocol,
    resolver::{
        Resolver,
        events::{self, Asked, LookedUp, TurnedAway},
        hold::{Holding, Refused},
        routes::Route,
    },
};

/// So much of a body is read while its request is held; the rest waits with the client.
const EARLY: usize = 16 << 10;

/// Where a connection came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrance {
    /// On the port that stands for one port of one service.
    Port(u16),
    /// On the port that all services share.
    Shared,
}

/// The connection that a request came over.
#[derive(Debug)]
pub(super) struct From {
    pub(super) resolver: Resolver,
    pub(super) entrance: Entrance,
    pub(super) source: SocketAddr,
    pub(super) talk: Arc<Talk>,
    /// Cancelled when the connection should end after what is under way.
    pub(super) leave: CancellationToken,
}

/// Why a request is not sent to a pod.
pub(super) enum Unplaced {
    Refused(Refused),
    /// Its body cannot be read.
    Unread,
}

/// A request that is on its way to a pod.
#[derive(Debug)]
pub(super) struct Going {
    pub(super) holding: Holding,
    pub(super) head: request::Parts,
    pub(super) body: Held,
}

pub(super) async fn handle(
    from: Arc<From>,
    request: Request<Incoming>,
) -> Result<Response<Answered>, Infallible> {
    let under_way = UnderWay::new(&from.talk);
    let (head, rest) = request.into_parts();
    let resolver = &from.resolver;
    let asked = Asked::of(&head, resolver.unbounded_metrics);
    let grpc = is_grpc(&head.headers);
    let route = match from.route(&head, &asked) {
        Ok(route) => route,
        Err(unknown) if grpc => return Ok(answer::in_grpc(*unknown)),
        Err(unknown) => return Ok(*unknown),
    };
    let (key, came) = (route.service.key.clone(), resolver.clock.uptime());
    let response = answer(&from, route, head, rest, under_way).await;
    resolver.meter.emit(&events::Answered {
        service: &key,
        asked: &asked,
        status: response.status(),
        took: resolver.clock.uptime().saturating_sub(came),
    });
    Ok(if grpc {
        answer::in_grpc(response)
    } else {
        response
    })
}

async fn answer(
    from: &Arc<From>,
    route: Arc<Route>,
    head: request::Parts,
    rest: Incoming,
    under_way: UnderWay,
) -> Response<Answered> {
    let (resolver, service) = (&from.resolver, &route.service);
    if let Some(canned) = service
        .probes
        .answer(&head.method, &head.uri, &head.headers)
    {
        return answer::canned(canned, &head.method);
    }
    if head.method == Method::CONNECT {
        resolver.turned_away(&route, answer::NOT_CARRIED, &"CONNECT");
        return answer::not_carried("CONNECT");
    }
    if service.out_of_path {
        from.leave.cancel();
    }
    let open = resolver.came(&route);
    let mut holding = Holding::new(&resolver.holds, route.clone(), size(&head));
    if service.waiting_page && is_browser(&head) {
        // Asks for the wake as a side effect; who does not pass at once gets the page.
        match holding.place().now_or_never() {
            Some(Ok(_)) => {}
            Some(Err(refused)) => {
                resolver.refused(&holding, &refused);
                return answer::refused(&refused);
            }
            None => return answer::page(&service.key),
        }
    }
    let body = Held {
        early: VecDeque::new(),
        rest,
    };
    let going = Going {
        holding,
        head,
        body,
    };
    forward::forward(from, going, open, under_way).await
}

impl From {
    /// Who is meant, or what is answered if that is nobody.
    fn route(
        &self,
        head: &request::Parts,
        asked: &Asked,
    ) -> Result<Arc<Route>, Box<Response<Answered>>> {
        let table = self.resolver.tables.now();
        match self.entrance {
            Entrance::Port(port) => table.route(port).cloned().ok_or_else(|| {
                // The service is there, but no longer one of ours: its own pods answer from now on.
                self.leave.cancel();
                self.unknown(answer::GONE);
                Box::new(answer::gone(head.version))
            }),
            Entrance::Shared => {
                let naming = &self.resolver.naming;
                let route = naming.route(&table, &head.headers, &head.uri);
                let service = route.as_ref().map(|route| &route.service.key);
                self.resolver.meter.emit(&LookedUp { service, asked });
                route.ok_or_else(|| {
                    self.unknown(answer::UNKNOWN);
                    Box::new(answer::unknown())
                })
            }
        }
    }

    fn unknown(&self, reason: &'static str) {
        self.resolver.meter.emit(&TurnedAway {
            service: None,
            protocol: Protocol::Http,
            reason,
            why: "nobody is known by what was asked".to_owned(),
        });
    }
}

impl Going {
    /// The pod to go to. A part of the body is read meanwhile: a client that has sent all of its
    /// request is noticed when it leaves.
    pub(super) async fn place(&mut self) -> Result<SocketAddr, Unplaced> {
        let mut read: usize = self.body.early.iter().map(sent::size).sum();
        let mut listening = read < EARLY && !self.body.rest.is_end_stream();
        loop {
            let frame = tokio::select! {
                biased;
                pod = self.holding.place() => return pod.map_err(Unplaced::Refused),
                frame = self.body.rest.frame(), if listening => frame,
            };
            let frame = match frame {
                Some(Ok(frame)) => frame,
                // Nothing of it was sent, and nobody waits for an answer to the rest.
                Some(Err(_)) => return Err(Unplaced::Unread),
                None => {
                    listening = false;
                    continue;
                }
            };
            let more = sent::size(&frame);
            read += more;
            self.body.early.push_back(frame);
            listening = self.holding.grow(more) && read < EARLY && !self.body.rest.is_end_stream();
        }
    }

    /// The request as it is sent.
    pub(super) fn request(self, source: SocketAddr) -> (Holding, Request<Sent>) {
        let mut head = self.head;
        let wanted = headers::wanted(head.version, &head.headers);
        let route = self.holding.route();
        headers::towards_pod(&mut head, source.ip(), route, wanted.as_ref());
        (
            self.holding,
            Request::from_parts(head, Sent::new(self.body)),
        )
    }
}

/// About how much a head takes in memory.
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
