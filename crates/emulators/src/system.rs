//! A system outside the cluster: a service over a state value, with a log of calls and a fault book.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Request, Response};
use neap_kit::{
    client::{Body, Transport, TransportError},
    clock::Clock,
};
use tower::{Service, service_fn};

use crate::{call_log::CallLog, fault_book::FaultBook};

/// What a system outside the cluster does with a request.
pub trait System: Send + Sync + 'static {
    /// Carries out the request. Whatever it says, there is an answer: only injected faults break
    /// connections.
    fn respond(self: Arc<Self>, request: Request<Body>) -> BoxFuture<'static, Response<Body>>;
}

/// An extension of requests that arrived over an encrypted connection.
#[derive(Debug, Clone, Copy)]
pub struct OverTls;

/// A system with its log of calls and its fault book. Cheap to clone; clones are the same system.
///
/// It is a `tower::Service`: [`listen`](crate::listen) binds it to a socket, [`Self::transport`]
/// puts it under a client, and a [`Network`](crate::network::Network) mounts several under their
/// host names.
pub struct Emulator<S> {
    system: Arc<S>,
    clock: Clock,
    calls: CallLog,
    faults: FaultBook,
}

impl<S: System> Emulator<S> {
    /// A system without faults.
    pub fn new(system: S, clock: Clock) -> Self {
        Self::sharing(Arc::new(system), clock)
    }

    /// The same for a system that others use as well, each with a log and a fault book of its own.
    pub fn sharing(system: Arc<S>, clock: Clock) -> Self {
        Self {
            system,
            clock,
            calls: CallLog::default(),
            faults: FaultBook::default(),
        }
    }

    /// The system itself, for what its users would do without the network.
    pub fn system(&self) -> &Arc<S> {
        &self.system
    }

    /// The calls that it has received.
    pub fn calls(&self) -> &CallLog {
        &self.calls
    }

    /// The faults that its callers meet.
    pub fn faults(&self) -> &FaultBook {
        &self.faults
    }

    /// The same system under a client, without a socket.
    pub fn transport(&self) -> Transport {
        Transport::new(self.clone())
    }

    /// The system without its faults.
    fn faultless(&self) -> Transport {
        let (system, calls, clock) = (self.system.clone(), self.calls.clone(), self.clock);
        Transport::new(service_fn(move |request: Request<Body>| {
            let (system, calls) = (system.clone(), calls.clone());
            async move {
                let number = calls.arrived(clock.now(), &request);
                let response = system.respond(request).await;
                calls.answered(number, response.status());
                Ok::<_, TransportError>(response)
            }
        }))
    }
}

impl<S: System> Service<Request<Body>> for Emulator<S> {
    type Response = Response<Body>;
    type Error = TransportError;
    type Future = BoxFuture<'static, Result<Response<Body>, TransportError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let system = self.faultless();
        let fault = self.faults.next(request.method(), request.uri().path());
        let clock = self.clock;
        Box::pin(async move {
            match fault {
                None => tower::ServiceExt::oneshot(system, request).await,
                Some(fault) => {
                    tracing::info!(%fault, path = request.uri().path(), "an injected fault strikes");
                    fault.strike(clock, system, request).await
                }
            }
        })
    }
}

impl<S> Clone for Emulator<S> {
    fn clone(&self) -> Self {
        Self {
            system: self.system.clone(),
            clock: self.clock,
            calls: self.calls.clone(),
            faults: self.faults.clone(),
        }
    }
}

impl<S> fmt::Debug for Emulator<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Emulator")
            .field("calls", &self.calls)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}
