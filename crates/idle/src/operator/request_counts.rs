//! The requests that all resolvers counted, together.

use std::{collections::BTreeMap, fmt};

use futures::future::{BoxFuture, join_all};

use crate::{
    api::wire::ActivityReport,
    resolver::client::{ListResolvers, ResolverClient},
    trigger::{Problem, RecentRequests, RequestCounts},
};

/// Queries every resolver and adds up the results.
pub(super) struct ResolverRequestCounts {
    client: ResolverClient,
    resolvers: ListResolvers,
}

impl ResolverRequestCounts {
    /// Queries all that `resolvers` lists at the time.
    pub(super) fn new(client: ResolverClient, resolvers: ListResolvers) -> Self {
        Self { client, resolvers }
    }
}

impl RequestCounts for ResolverRequestCounts {
    fn by_service(&self) -> BoxFuture<'_, Result<BTreeMap<String, RecentRequests>, Problem>> {
        Box::pin(async {
            let resolvers = (self.resolvers)();
            if resolvers.is_empty() {
                return Err(Problem::Resolver("there is none".to_owned()));
            }
            let calls = resolvers.into_iter().map(|one| self.client.activity(one));
            let mut all = BTreeMap::new();
            for report in join_all(calls).await {
                let report = report.map_err(|error| Problem::Resolver(error.to_string()))?;
                add(&mut all, report);
            }
            Ok(all)
        })
    }
}

/// Keeps the latest time and the sum of the held requests.
fn add(all: &mut BTreeMap<String, RecentRequests>, one: ActivityReport) {
    for (service, activity) in one.services {
        let recent = all.entry(service).or_default();
        recent.held = recent.held.saturating_add(activity.held);
        recent.last = recent.last.max(Some(activity.last));
    }
}

impl fmt::Debug for ResolverRequestCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolverRequestCounts")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
