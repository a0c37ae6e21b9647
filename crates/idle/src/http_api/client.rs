//! Calls operators and resolvers over HTTP, with the token of this process.

use std::{error::Error, fmt, path::PathBuf, time::Duration};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use neap_kit::{clock::Clock, why::chain};
use serde::{Serialize, de::DeserializeOwned};

/// The time within which a process of the same cluster has to respond.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(5);
/// The time after which the operator responds to a request for a wake that is still in progress. Shorter
/// than [`CALL_TIMEOUT`], so that the resolver gets a response, and long enough for several attempts.
pub(crate) const WAKE_RESPONSE_TIMEOUT: Duration = Duration::from_secs(4);
/// The longest response body that is read.
const MAX_RESPONSE_BYTES: usize = 16 << 20;
/// The longest part of an error's body that is passed on.
const MAX_ERROR_TEXT: usize = 200;
/// The token of a pod. The file is read for every call, since the kubelet replaces it from time to time.
const TOKEN_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The response has a status that is not a success.
    #[error("status {0}: {1}")]
    Status(StatusCode, String),
    /// There was no response, or one that cannot be parsed.
    #[error("{0}")]
    Failed(String),
}

/// An HTTP client that authenticates as this process. Cheap to clone.
#[derive(Clone)]
pub struct ApiClient {
    client: Client<HttpConnector, Full<Bytes>>,
    clock: Clock,
    token_file: PathBuf,
}

impl ApiClient {
    /// A client that sends the token of the pod, or the one in `token_file`.
    pub fn new(clock: Clock, token_file: Option<PathBuf>) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build_http();
        Self {
            client,
            clock,
            token_file: token_file.unwrap_or_else(|| PathBuf::from(TOKEN_FILE)),
        }
    }

    /// Sends `body` to `address`, a host and port, and parses the response.
    pub async fn call<Q: Serialize, A: DeserializeOwned>(
        &self,
        address: &str,
        method: Method,
        path: &str,
        body: Option<&Q>,
    ) -> Result<A, CallError> {
        let body = body.map(serde_json::to_vec).transpose();
        let body = body.unwrap_or_default().unwrap_or_default();
        let exchange = self.exchange(address, method, path, body);
        let response = self.clock.within(CALL_TIMEOUT, exchange).await;
        let timeout = || {
            let message = format!("no response within {CALL_TIMEOUT:?}");
            Err(CallError::Failed(message))
        };
        let body = response.unwrap_or_else(timeout)?;
        serde_json::from_slice(&body)
            .map_err(|error| CallError::Failed(format!("unexpected response: {error}")))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the body that is collected is limited"
    )]
    async fn exchange(
        &self,
        address: &str,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, CallError> {
        let failed = |error: &(dyn Error + 'static)| CallError::Failed(chain(error));
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{address}{path}"))
            .header(CONTENT_TYPE, "application/json");
        // A small file in memory, so reading it does not block. Without one the request is sent without a
        // token: processes of KubeElasti require none.
        if let Ok(token) = std::fs::read_to_string(&self.token_file)
            && let Ok(mut bearer) = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
        {
            bearer.set_sensitive(true);
            request = request.header(AUTHORIZATION, bearer);
        }
        let request = request
            .body(Full::from(body))
            .map_err(|error| failed(&error))?;
        let response = self.client.request(request).await;
        let response = response.map_err(|error| failed(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES);
        let body = body.collect().await;
        let body = body.map_err(|error| failed(&*error))?.to_bytes();
        if status.is_success() {
            Ok(body)
        } else {
            let text = String::from_utf8_lossy(&body[..body.len().min(MAX_ERROR_TEXT)]);
            Err(CallError::Status(status, text.trim().to_owned()))
        }
    }
}

impl fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiClient")
            .field("token_file", &self.token_file)
            .finish_non_exhaustive()
    }
}
