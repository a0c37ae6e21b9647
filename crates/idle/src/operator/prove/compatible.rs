//! Finds the resolvers of our kind. Those of KubeElasti 0.1.30 are ready beside ours while one kind replaces
//! the other, and listen on none of the ports that stand in for services.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use futures::future::{BoxFuture, join_all};
use neap_kit::clock::{Clock, Uptime};
use tokio::sync::Mutex;

use super::ResolverCallError;
use crate::{api::wire::ActivityReport, elasti_service::facts::ResolverEndpoint};

/// The delay before a resolver of an unknown or another kind is called again.
const RETRY_DELAY: Duration = Duration::from_secs(5);
/// The time within which a resolver has to respond; all decisions wait for it.
const CALL_TIMEOUT: Duration = Duration::from_secs(1);

/// A pod by name and address: one that is created again under the same name has another address.
type PodIdentity = (String, IpAddr);

/// The resolvers that were called, and their kinds.
#[derive(Debug, Default)]
pub(super) struct CompatibleResolvers {
    /// Locked during the calls: concurrent callers need the same result.
    known: Mutex<BTreeMap<PodIdentity, Compatibility>>,
}

#[derive(Debug, Clone, Copy)]
enum Compatibility {
    /// It has the route that only ours have.
    Compatible,
    /// It has no such route.
    Incompatible(Uptime),
    /// It did not respond. It is ready, and nothing shows that it is of another kind.
    Unknown(Uptime),
}

impl CompatibleResolvers {
    /// Those of `resolvers` that are not known to be of another kind. Unknown ones are called first.
    pub(super) async fn among<'a>(
        &self,
        resolvers: &[ResolverEndpoint],
        clock: Clock,
        call: impl Fn(IpAddr) -> BoxFuture<'a, Result<ActivityReport, ResolverCallError>>,
    ) -> Vec<ResolverEndpoint> {
        let mut listed = BTreeMap::new();
        for one in resolvers {
            listed.entry(one.pod.clone()).or_insert(one.address);
        }
        let mut known = self.known.lock().await;
        known.retain(|(pod, address), _| listed.get(pod) == Some(address));
        let now = clock.uptime();
        let due = |known: Option<&Compatibility>| match known {
            None => true,
            Some(Compatibility::Compatible) => false,
            Some(Compatibility::Incompatible(at) | Compatibility::Unknown(at)) => {
                now.saturating_sub(*at) >= RETRY_DELAY
            }
        };
        let unknown = listed.into_iter().filter(|one| due(known.get(one)));
        let calls = unknown.map(|(pod, address)| {
            let response = call(address);
            async move {
                let response = clock.within(CALL_TIMEOUT, response).await;
                let at = clock.uptime();
                let compatibility = match response {
                    Some(Ok(_)) => Compatibility::Compatible,
                    Some(Err(error)) if error.is_unknown_route() => Compatibility::Incompatible(at),
                    Some(Err(_)) | None => Compatibility::Unknown(at),
                };
                ((pod, address), compatibility)
            }
        });
        let results = join_all(calls.collect::<Vec<_>>()).await;
        known.extend(results);
        let others = known.iter();
        let others = others.filter(|(_, known)| matches!(known, Compatibility::Incompatible(_)));
        let others: Vec<_> = others.map(|((pod, _), _)| pod).collect();
        let ours = resolvers.iter().filter(|one| !others.contains(&&one.pod));
        ours.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::SocketAddr,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use http::StatusCode;

    use super::*;
    use crate::http_api::CallError;

    fn resolver(pod: &str, address: &str) -> ResolverEndpoint {
        ResolverEndpoint {
            address: address.parse().unwrap(),
            pod: pod.to_owned(),
            node: None,
            zone: None,
        }
    }

    /// The pods that are selected, and the number of calls.
    async fn among(
        compatible: &CompatibleResolvers,
        clock: Clock,
        resolvers: &[ResolverEndpoint],
        error: Option<&CallError>,
    ) -> (Vec<String>, usize) {
        let calls = AtomicUsize::new(0);
        let found = compatible.among(resolvers, clock, |address| {
            calls.fetch_add(1, Ordering::Relaxed);
            let error = error.cloned();
            Box::pin(async move {
                if address.to_string().ends_with(".1") {
                    return Ok(ActivityReport::default());
                }
                let Some(error) = error else {
                    return std::future::pending().await;
                };
                let resolver = SocketAddr::new(address, 8013);
                Err(ResolverCallError { resolver, error })
            })
        });
        let found = found.await.into_iter().map(|one| one.pod).collect();
        (found, calls.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn a_resolver_without_the_route_is_incompatible_until_it_has_it() {
        let (clock, compatible) = (Clock::system(), CompatibleResolvers::default());
        let both = [resolver("new", "10.0.0.1"), resolver("old", "10.0.0.2")];
        let text = "404 page not found".to_owned();
        let other = &CallError::Status(StatusCode::NOT_FOUND, text);
        let other = Some(other);
        let only = |pods: &[&str], asked| {
            let pods: Vec<_> = pods.iter().map(ToString::to_string).collect();
            (pods, asked)
        };
        assert_eq!(
            among(&compatible, clock, &both, other).await,
            only(&["new"], 2),
            "each is called"
        );
        assert_eq!(
            among(&compatible, clock, &both, other).await,
            only(&["new"], 0),
            "it was called just now"
        );
        clock.sleep(RETRY_DELAY).await;
        assert_eq!(
            among(&compatible, clock, &both, other).await,
            only(&["new"], 1),
            "a compatible one is not called again"
        );
        // One of ours replaces it, with a pod of the same name at another address.
        let both = [resolver("new", "10.0.0.1"), resolver("old", "10.0.1.1")];
        assert_eq!(
            among(&compatible, clock, &both, other).await,
            only(&["new", "old"], 1)
        );
        assert_eq!(among(&compatible, clock, &[], other).await, only(&[], 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_resolver_that_does_not_respond_is_not_incompatible() {
        let busy = CallError::Status(StatusCode::SERVICE_UNAVAILABLE, "ask later".to_owned());
        let late = CallError::Failed("no answer within 5s".to_owned());
        for error in [None, Some(&late), Some(&busy)] {
            let (clock, compatible) = (Clock::system(), CompatibleResolvers::default());
            let one = [resolver("slow", "10.0.0.2")];
            let before = clock.uptime();
            let (pods, _) = among(&compatible, clock, &one, error).await;
            assert_eq!(pods, ["slow"], "{error:?}");
            assert!(clock.uptime().saturating_sub(before) <= CALL_TIMEOUT);
        }
    }
}
