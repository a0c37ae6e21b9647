//! Proofs as resolvers give them: each opens connections to the Service, and all say which they
//! took.

use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use neap_idle::{
    api::Towards,
    resolver::prove::{Tried, prove},
    service::prove::{Prover, Search},
};
use neap_kit::clock::Clock;

use crate::{plane::Plane, resolvers::Row};

/// So many connections each resolver opens.
const TRIES: usize = 8;

#[derive(Debug)]
pub(crate) struct Probes {
    pub(crate) clock: Clock,
    pub(crate) plane: Arc<Plane>,
    pub(crate) row: Row,
}

impl Prover for Probes {
    fn prove<'a>(&'a self, search: &'a Search) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let asked = search.resolvers.iter();
            let asked = asked.filter_map(|one| self.row.number(one.address));
            let asked = asked.map(|node| self.from(node, search));
            let answers = join_all(asked).await;
            !answers.is_empty() && answers.into_iter().all(|holds| holds)
        })
    }
}

impl Probes {
    async fn from(&self, node: usize, search: &Search) -> bool {
        let tries = join_all((0..TRIES).map(|_| self.once(node))).await;
        let failed: usize = tries.iter().map(|tried| tried.failed).sum();
        let sources: Vec<_> = tries.into_iter().flat_map(|tried| tried.sources).collect();
        let taken: usize = (self.row.taken().iter())
            .map(|taken| taken.of(&sources).len())
            .sum();
        match search.question.towards {
            Towards::Resolvers => failed == 0 && taken > 0,
            Towards::Pods if search.question.beside => failed == 0 && taken < sources.len(),
            Towards::Pods => failed == 0 && taken == 0,
        }
    }

    async fn once(&self, node: usize) -> Tried {
        match self.plane.pick(node) {
            Some(place) => prove(&self.row.taken()[node], place, 1, self.clock).await,
            None => Tried {
                sources: Vec::new(),
                failed: 1,
            },
        }
    }
}
