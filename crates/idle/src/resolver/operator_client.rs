//! Requests wakes from the operator.

use futures::future::BoxFuture;
use http::Method;
use neap_kit::key::Key;

use super::hold::{WakeFailed, WakeRequester};
use crate::{
    api::wire::{AND_WAIT, INCOMING_REQUEST, IncomingRequest, IncomingRequestReply},
    http_api::ApiClient,
};

/// A client of the operators behind one address; each of them can wake a service.
#[derive(Debug, Clone)]
pub struct OperatorClient {
    client: ApiClient,
    /// Host and port.
    address: String,
}

impl OperatorClient {
    /// Asks at `address`, a host and port.
    pub fn new(client: ApiClient, address: String) -> Self {
        Self { client, address }
    }
}

impl WakeRequester for OperatorClient {
    fn wake(&self, service: Key, waiting: usize) -> BoxFuture<'static, Result<(), WakeFailed>> {
        let Self { client, address } = self.clone();
        let asked = IncomingRequest {
            count: i64::try_from(waiting).unwrap_or(i64::MAX),
            svc: service.name().to_owned(),
            namespace: service.namespace().to_owned(),
        };
        Box::pin(async move {
            let path = format!("{INCOMING_REQUEST}?{AND_WAIT}");
            let answer = client.call(&address, Method::POST, &path, Some(&asked));
            let answer: Result<IncomingRequestReply, _> = answer.await;
            answer
                .map(drop)
                .map_err(|why| WakeFailed(format!("{address}: {why}")))
        })
    }
}
