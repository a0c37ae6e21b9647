//! The requests of the components to the API server.

use std::{collections::BTreeMap, sync::Arc};

use http::{Method, Request};
use kube::client::Body;
use parking_lot::Mutex;

/// The parts of a request that show its purpose.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ApiCall {
    /// The method; `WATCH` for a GET that opens a watch.
    pub method: String,
    /// The path, without its query.
    pub path: String,
}

/// Every request in order. Clones record into the same list.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallLog(Arc<Mutex<Vec<ApiCall>>>);

impl CallLog {
    pub(crate) fn record(&self, request: Request<Body>) -> Request<Body> {
        let uri = request.uri();
        let query = uri.query().unwrap_or_default();
        let watch = query.split('&').any(|part| part == "watch=true");
        let method = match *request.method() {
            Method::GET if watch => "WATCH".to_owned(),
            ref method => method.to_string(),
        };
        let path = uri.path().to_owned();
        self.0.lock().push(ApiCall { method, path });
        request
    }

    /// The requests since the last call, each with its count.
    pub(crate) fn take(&self) -> BTreeMap<ApiCall, usize> {
        let mut counts = BTreeMap::new();
        for call in std::mem::take(&mut *self.0.lock()) {
            *counts.entry(call).or_default() += 1;
        }
        counts
    }
}
