//! Asks resolvers over their internal port.

use std::{collections::BTreeMap, fmt, net::SocketAddr, path::PathBuf, sync::Arc};

use futures::future::{BoxFuture, join_all};
use http::{Method, StatusCode};
use neap_kit::clock::Clock;
use serde::{Serialize, de::DeserializeOwned};

use super::asking::{Asking, Unanswered};
use crate::{
    api::wire::{ACTIVITY, Activity, PROBE, Probe, Probed, TAKEN, Taken, Took},
    trigger::{Counters, Problem, Quiet},
};

/// Why a resolver did not say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{resolver}: {why}")]
pub struct Silent {
    /// Which one.
    pub resolver: SocketAddr,
    /// Why.
    pub why: Unanswered,
}

impl Silent {
    /// Whether it answered that it knows no such question. Ours know all that they are asked; those
    /// of KubeElasti say this.
    pub fn is_of_another_kind(&self) -> bool {
        matches!(self.why, Unanswered::Refused(StatusCode::NOT_FOUND, _))
    }
}

/// Asks resolvers in the name of this process. Cheap to copy.
#[derive(Debug, Clone)]
pub struct Resolvers(Asking);

impl Resolvers {
    /// Shows the token that the pod has.
    pub fn new(clock: Clock) -> Self {
        Self(Asking::new(clock))
    }

    /// With a token from another file.
    pub fn showing(self, token: PathBuf) -> Self {
        Self(self.0.showing(token))
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
        let whom = resolver.to_string();
        let answer = self.0.ask(&whom, method, path, question).await;
        answer.map_err(|why| Silent { resolver, why })
    }
}

impl From<Asking> for Resolvers {
    fn from(asking: Asking) -> Self {
        Self(asking)
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
