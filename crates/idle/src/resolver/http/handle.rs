//! One request, from its head to the head of its answer.

use std::{collections::VecDeque, convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use futures::FutureExt;
use http::{HeaderMap, Method, Request, Response, header, request};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::sync::Notify;

use super::{
    answer,
    body::{Answered, Sent, UnderWay},
    forward,
    guard::Talk,
    headers,
};
use crate::resolver::{
    Resolver,
    hold::{Holding, Refused},
    routes::Route,
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
    /// Told when the client should connect anew.
    pub(super) leave: Notify,
}

/// A request that is on its way to a pod.
#[derive(Debug)]
pub(super) struct Going {
    pub(super) holding: Holding,
    pub(super) head: request::Parts,
    pub(super) body: Sent,
}

pub(super) async fn handle(
    from: Arc<From>,
    request: Request<Incoming>,
) -> Result<Response<Answered>, Infallible> {
    let under_way = UnderWay::new(&from.talk);
    let (head, rest) = request.into_parts();
    let Some(route) = from.route(&head) else {
        return Ok(answer::unknown());
    };
    let service = &route.service;
    if let Some(canned) = service
        .probes
        .answer(&head.method, &head.uri, &head.headers)
    {
        return Ok(answer::canned(canned, &head.method));
    }
    if head.method == Method::CONNECT {
        return Ok(answer::not_carried("CONNECT"));
    }
    if service.out_of_path {
        from.leave.notify_one();
    }
    let open = from.resolver.activity.begin(&service.key);
    let mut holding = Holding::new(&from.resolver.holds, route.clone(), size(&head));
    if service.waiting_page && is_browser(&head) {
        // Asks for the wake as a side effect; who does not pass at once gets the page.
        match holding.place().now_or_never() {
            Some(Ok(_)) => {}
            Some(Err(refused)) => {
                from.resolver.turned_away(&route, &refused);
                return Ok(answer::refused(&refused));
            }
            None => return Ok(answer::page(&service.key)),
        }
    }
    let body = Sent {
        early: VecDeque::new(),
        rest,
    };
    let going = Going {
        holding,
        head,
        body,
    };
    Ok(forward::forward(&from, going, open, under_way).await)
}

impl From {
    fn route(&self, head: &request::Parts) -> Option<Arc<Route>> {
        let table = self.resolver.tables.now();
        match self.entrance {
            Entrance::Port(port) => table.route(port).cloned(),
            Entrance::Shared => {
                let naming = &self.resolver.naming;
                naming.route(&table, &head.headers, &head.uri)
            }
        }
    }
}

impl Going {
    /// The pod to go to. A part of the body is read meanwhile: a client that has sent all of its
    /// request is noticed when it leaves.
    pub(super) async fn place(&mut self) -> Result<SocketAddr, Refused> {
        let data = self.body.early.iter().filter_map(Frame::data_ref);
        let mut read: usize = data.map(Bytes::len).sum();
        let mut listening = read < EARLY && !self.body.rest.is_end_stream();
        loop {
            let frame = tokio::select! {
                biased;
                pod = self.holding.place() => return pod,
                frame = self.body.rest.frame(), if listening => frame,
            };
            let Some(Ok(frame)) = frame else {
                // The end; an error is met again by whoever reads on.
                listening = false;
                continue;
            };
            let more = frame.data_ref().map_or(0, Bytes::len);
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
        (self.holding, Request::from_parts(head, self.body))
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
