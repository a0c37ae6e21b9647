//! What the services on a stage ask of its server.

use std::{collections::BTreeMap, sync::Arc};

use hyper::{Method, Request};
use kube::client::Body;
use parking_lot::Mutex;

/// A request, as far as it matters who makes it why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Call {
    /// `WATCH` if that is what the GET asks for.
    pub(crate) method: String,
    pub(crate) path: String,
}

/// Every request in its order. Copies note in the same place.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls(Arc<Mutex<Vec<Call>>>);

impl Calls {
    pub(super) fn note(&self, request: Request<Body>) -> Request<Body> {
        let uri = request.uri();
        let query = uri.query().unwrap_or_default();
        let watch = query.split('&').any(|part| part == "watch=true");
        let method = match *request.method() {
            Method::GET if watch => "WATCH".to_owned(),
            ref method => method.to_string(),
        };
        let path = uri.path().to_owned();
        self.0.lock().push(Call { method, path });
        request
    }

    /// What was asked since this was last called, and how often.
    pub(super) fn take(&self) -> BTreeMap<Call, usize> {
        let mut counts = BTreeMap::new();
        for call in std::mem::take(&mut *self.0.lock()) {
            *counts.entry(call).or_default() += 1;
        }
        counts
    }
}
