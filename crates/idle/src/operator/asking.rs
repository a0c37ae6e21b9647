//! Asks operators and resolvers over HTTP, as who this process is.

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

/// Somebody in the same cluster answers sooner.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// Whoever waits for a wake is answered within this time: well before they give up, and late enough
/// for several tries.
pub(super) const OUTCOME_WITHIN: Duration = Duration::from_secs(4);
/// No answer is longer, whatever was asked for.
const LONGEST: usize = 16 << 20;
/// Where a pod finds its token. It is read each time: the kubelet writes a new one now and then.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Why nobody gave the answer that was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    /// Somebody answered, and not with that.
    #[error("status {0}: {1}")]
    Refused(StatusCode, String),
    /// Nobody answered, or nobody understands what.
    #[error("{0}")]
    Failed(String),
}

/// Asks in the name of this process. Cheap to copy.
#[derive(Clone)]
pub struct Asking {
    client: Client<HttpConnector, Full<Bytes>>,
    clock: Clock,
    token: PathBuf,
}

impl Asking {
    /// Shows the token that the pod has.
    pub fn new(clock: Clock) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .build_http();
        let token = PathBuf::from(TOKEN);
        Self {
            client,
            clock,
            token,
        }
    }

    /// With a token from another file.
    pub fn showing(mut self, token: PathBuf) -> Self {
        self.token = token;
        self
    }

    /// What `whom`, a host and port, answers, or why that is nothing.
    pub async fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        whom: &str,
        method: Method,
        path: &str,
        question: Option<&Q>,
    ) -> Result<A, Unanswered> {
        let body = question.map(serde_json::to_vec).transpose();
        let body = body.unwrap_or_default().unwrap_or_default();
        let asked = self.exchange(whom, method, path, body);
        let answer = self.clock.within(LIMIT, asked).await;
        let late = || Err(Unanswered::Failed(format!("no answer within {LIMIT:?}")));
        let body = answer.unwrap_or_else(late)?;
        serde_json::from_slice(&body)
            .map_err(|error| Unanswered::Failed(format!("an answer of another kind: {error}")))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the body that is collected is limited"
    )]
    async fn exchange(
        &self,
        whom: &str,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, Unanswered> {
        let failed = |error: &(dyn Error + 'static)| Unanswered::Failed(chain(error));
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{whom}{path}"))
            .header(CONTENT_TYPE, "application/json");
        // A small file in memory, so nobody waits for it. Without one it asks all the same: those of
        // KubeElasti want none.
        if let Ok(token) = std::fs::read_to_string(&self.token)
            && let Ok(mut shown) = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
        {
            shown.set_sensitive(true);
            request = request.header(AUTHORIZATION, shown);
        }
        let request = request
            .body(Full::from(body))
            .map_err(|error| failed(&error))?;
        let answer = self.client.request(request).await;
        let answer = answer.map_err(|error| failed(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        let body = body.map_err(|error| failed(&*error))?.to_bytes();
        if status.is_success() {
            Ok(body)
        } else {
            let said = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            Err(Unanswered::Refused(status, said.trim().to_owned()))
        }
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}
