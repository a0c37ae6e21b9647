//! Proofs as resolvers give them: each opens connections to the Service, and all say which they
//! took.

use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use neap_idle::{
    api::Towards,
    resolver::prove::prove,
    service::prove::{Prover, Search},
};

use crate::{plane::Plane, resolvers::Row, street::is_pod};

/// So many connections each resolver opens.
const TRIES: usize = 8;

#[derive(Debug)]
pub(crate) struct Probes {
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
        let failed = tries.iter().any(Option::is_none);
        let tries = tries.into_iter().flatten();
        let taken = tries.filter(|taken| *taken).count();
        match search.question.towards {
            Towards::Resolvers => !failed && taken > 0,
            Towards::Pods if search.question.beside => !failed && taken < TRIES,
            Towards::Pods => !failed && taken == 0,
        }
    }

    /// Whether a resolver took one connection; nothing if nobody did.
    async fn once(&self, node: usize) -> Option<bool> {
        let place = self.plane.pick(node)?;
        let all = self.row.all();
        let source = prove(all.get(node)?, place, 1).await.sources.pop()?;
        let mut taken = all.iter().map(|one| one.taken.of(&[source]));
        // In a cluster all go to the address of the Service, so no two have the same source. Here one
        // to a pod may have that of an earlier one to a resolver.
        Some(taken.any(|taken| !taken.is_empty()) && !is_pod(place))
    }
}
