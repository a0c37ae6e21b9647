//! Asks resolvers over their internal port.

use std::{collections::BTreeMap, fmt, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use http::{
    HeaderValue, Method, Request,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use neap_kit::clock::Clock;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    api::wire::{ACTIVITY, Activity, PROBE, Probe, Probed, TAKEN, Taken, Took},
    trigger::{Counters, Problem, Quiet},
};

/// A resolver in the same cluster answers sooner.
const LIMIT: Duration = Duration::from_secs(5);
/// No answer of a resolver is longer, whatever it was asked for.
const LONGEST: usize = 16 << 20;
/// Where a pod finds its token. It is read each time: the kubelet writes a new one now and then.
const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Why a resolver did not say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{resolver}: {why}")]
pub struct Silent {
    /// Which one.
    pub resolver: SocketAddr,
    /// Why, in words.
    pub why: String,
}

/// Asks resolvers in the name of this process. Cheap to copy.
#[derive(Clone)]
pub struct Resolvers {
    client: Client<HttpConnector, Full<Bytes>>,
    clock: Clock,
    token: PathBuf,
}

impl Resolvers {
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

    /// Has a resolver open connections.
    pub async fn probe(&self, resolver: SocketAddr, probe: &Probe) -> Result<Probed, Silent> {
        self.ask(resolver, Method::POST, PROBE, Some(probe)).await
    }

    /// Which of these connections a resolver took.
    pub async fn taken(&self, resolver: SocketAddr, asked: &Took) -> Result<Taken, Silent> {
        self.ask(resolver, Method::POST, TAKEN, Some(asked)).await
    }

    /// What a resolver was asked for.
    pub async fn activity(&self, resolver: SocketAddr) -> Result<Activity, Silent> {
        self.ask(resolver, Method::GET, ACTIVITY, None::<&Took>)
            .await
    }

    async fn ask<Q: Serialize, A: DeserializeOwned>(
        &self,
        resolver: SocketAddr,
        method: Method,
        path: &str,
        question: Option<&Q>,
    ) -> Result<A, Silent> {
        let body = question.map(serde_json::to_vec).transpose();
        let body = body.unwrap_or_default().unwrap_or_default();
        let asked = self.exchange(resolver, method, path, body);
        let answer = self.clock.within(LIMIT, asked).await;
        let late = || Err(format!("no answer within {LIMIT:?}"));
        let answer = answer.unwrap_or_else(late);
        let answer = answer.and_then(|body| {
            serde_json::from_slice(&body)
                .map_err(|error| format!("an answer of another kind: {error}"))
        });
        answer.map_err(|why| Silent { resolver, why })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the body that is collected is limited"
    )]
    async fn exchange(
        &self,
        resolver: SocketAddr,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Bytes, String> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{resolver}{path}"))
            .header(CONTENT_TYPE, "application/json");
        // A small file in memory, so nobody waits for it. Without one it asks all the same: a resolver
        // of KubeElasti wants none.
        if let Ok(token) = std::fs::read_to_string(&self.token)
            && let Ok(mut shown) = HeaderValue::from_str(&format!("Bearer {}", token.trim()))
        {
            shown.set_sensitive(true);
            request = request.header(AUTHORIZATION, shown);
        }
        let request = request
            .body(Full::from(body))
            .map_err(|error| error.to_string())?;
        let answer = self.client.request(request).await;
        let answer = answer.map_err(|error| neap_kit::why::chain(&error))?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LONGEST).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        if status.is_success() {
            Ok(body)
        } else {
            let said = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
            Err(format!("status {status}: {}", said.trim()))
        }
    }
}

impl fmt::Debug for Resolvers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolvers")
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

/// Says where resolvers are that may have been asked: the internal ports of all that run.
pub type Places = Arc<dyn Fn() -> Vec<SocketAddr> + Send + Sync>;

/// What all resolvers counted, together.
pub struct Counted {
    resolvers: Resolvers,
    places: Places,
}

impl Counted {
    /// Asks all that are at `places` at the time.
    pub fn new(resolvers: Resolvers, places: Places) -> Self {
        Self { resolvers, places }
    }
}

impl Counters for Counted {
    fn quiet(&self) -> BoxFuture<'_, Result<BTreeMap<String, Quiet>, Problem>> {
        Box::pin(async {
            let places = (self.places)();
            if places.is_empty() {
                return Err(Problem::Resolver("there is none".to_owned()));
            }
            let asked = places.into_iter().map(|one| self.resolvers.activity(one));
            let mut all = BTreeMap::new();
            for answer in join_all(asked).await {
                let answer = answer.map_err(|silent| Problem::Resolver(silent.to_string()))?;
                add(&mut all, answer);
            }
            Ok(all)
        })
    }
}

/// The last of all counts, and all that are held.
fn add(all: &mut BTreeMap<String, Quiet>, one: Activity) {
    for (service, activity) in one.services {
        let quiet = all.entry(service).or_default();
        quiet.held = quiet.held.saturating_add(activity.held);
        quiet.last = quiet.last.max(Some(activity.last));
    }
}

impl fmt::Debug for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted")
            .field("resolvers", &self.resolvers)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
