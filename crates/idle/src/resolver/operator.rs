//! Asks an operator for wakes.

use futures::future::BoxFuture;
use http::Method;
use neap_kit::key::Key;

use super::hold::{NotWoken, Waker};
use crate::{
    api::wire::{AND_WAIT, INCOMING_REQUEST, IncomingRequest, Received},
    operator::asking::Asking,
};

/// The operators behind one address; any of them wakes.
#[derive(Debug, Clone)]
pub struct Operator {
    asking: Asking,
    /// Host and port.
    address: String,
}

impl Operator {
    /// Asks at `address`, a host and port.
    pub fn new(asking: Asking, address: String) -> Self {
        Self { asking, address }
    }
}

impl Waker for Operator {
    fn wake(&self, service: Key, waiting: usize) -> BoxFuture<'static, Result<(), NotWoken>> {
        let Self { asking, address } = self.clone();
        let asked = IncomingRequest {
            count: i64::try_from(waiting).unwrap_or(i64::MAX),
            svc: service.name().to_owned(),
            namespace: service.namespace().to_owned(),
        };
        Box::pin(async move {
            let path = format!("{INCOMING_REQUEST}?{AND_WAIT}");
            let answer = asking.ask(&address, Method::POST, &path, Some(&asked));
            let answer: Result<Received, _> = answer.await;
            answer
                .map(drop)
                .map_err(|why| NotWoken(format!("{address}: {why}")))
        })
    }
}
