//! Which resolvers are of this kind. Those of KubeElasti 0.1.30 are ready beside ours while one takes
//! the place of the other, and listen on none of the ports that stand in for services.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use futures::future::{BoxFuture, join_all};
use neap_kit::clock::{Clock, Uptime};
use tokio::sync::Mutex;

use super::Silent;
use crate::{api::wire::Activity, service::facts::Resolver};

/// So long after it was asked who is not known yet is asked again.
const AGAIN: Duration = Duration::from_secs(5);
/// Everybody waits for an answer, so none is waited for longer.
const LIMIT: Duration = Duration::from_secs(1);

/// A pod that lives once: another of its name has another address, or not both at once.
type Identity = (String, IpAddr);

/// Remembers who said what.
#[derive(Debug, Default)]
pub(super) struct Ours {
    /// Held while somebody is asked: whoever comes meanwhile needs the same answer.
    known: Mutex<BTreeMap<Identity, Said>>,
}

#[derive(Debug, Clone, Copy)]
enum Said {
    /// It answers what only ours are asked.
    Ours,
    /// It knows no such question.
    Another(Uptime),
    /// It did not say. It is ready by what the cluster says, and nothing shows that it is another.
    Nothing(Uptime),
}

impl Ours {
    /// Those of `resolvers` that are not known to be of another kind. Who is unknown is asked first.
    pub(super) async fn among<'a>(
        &self,
        resolvers: &[Resolver],
        clock: Clock,
        ask: impl Fn(IpAddr) -> BoxFuture<'a, Result<Activity, Silent>>,
    ) -> Vec<Resolver> {
        let mut listed = BTreeMap::new();
        for one in resolvers {
            listed.entry(one.pod.clone()).or_insert(one.address);
        }
        let mut known = self.known.lock().await;
        known.retain(|(pod, address), _| listed.get(pod) == Some(address));
        let now = clock.uptime();
        let due = |said: Option<&Said>| match said {
            None => true,
            Some(Said::Ours) => false,
            Some(Said::Another(asked) | Said::Nothing(asked)) => {
                now.saturating_sub(*asked) >= AGAIN
            }
        };
        let unknown = listed.into_iter().filter(|one| due(known.get(one)));
        let asked = unknown.map(|(pod, address)| {
            let answer = ask(address);
            async move {
                let answer = clock.within(LIMIT, answer).await;
                let asked = clock.uptime();
                let said = match answer {
                    Some(Ok(_)) => Said::Ours,
                    Some(Err(silent)) if silent.is_of_another_kind() => Said::Another(asked),
                    Some(Err(_)) | None => Said::Nothing(asked),
                };
                ((pod, address), said)
            }
        });
        let answers = join_all(asked.collect::<Vec<_>>()).await;
        known.extend(answers);
        let others = known.iter();
        let others = others.filter(|(_, said)| matches!(said, Said::Another(_)));
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
    use crate::operator::asking::Unanswered;

    fn resolver(pod: &str, address: &str) -> Resolver {
        Resolver {
            address: address.parse().unwrap(),
            pod: pod.to_owned(),
            node: None,
            zone: None,
        }
    }

    /// The pods that are taken for ours, and how many were asked.
    async fn among(
        ours: &Ours,
        clock: Clock,
        resolvers: &[Resolver],
        why: Option<&Unanswered>,
    ) -> (Vec<String>, usize) {
        let asked = AtomicUsize::new(0);
        let found = ours.among(resolvers, clock, |address| {
            asked.fetch_add(1, Ordering::Relaxed);
            let why = why.cloned();
            Box::pin(async move {
                if address.to_string().ends_with(".1") {
                    return Ok(Activity::default());
                }
                let Some(why) = why else {
                    return std::future::pending().await;
                };
                let resolver = SocketAddr::new(address, 8013);
                Err(Silent { resolver, why })
            })
        });
        let found = found.await.into_iter().map(|one| one.pod).collect();
        (found, asked.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn who_knows_no_such_question_is_another_until_it_does() {
        let (clock, ours) = (Clock::system(), Ours::default());
        let both = [resolver("new", "10.0.0.1"), resolver("old", "10.0.0.2")];
        let said = "404 page not found".to_owned();
        let other = &Unanswered::Refused(StatusCode::NOT_FOUND, said);
        let other = Some(other);
        let only = |pods: &[&str], asked| {
            let pods: Vec<_> = pods.iter().map(ToString::to_string).collect();
            (pods, asked)
        };
        assert_eq!(
            among(&ours, clock, &both, other).await,
            only(&["new"], 2),
            "each is asked"
        );
        assert_eq!(
            among(&ours, clock, &both, other).await,
            only(&["new"], 0),
            "it was asked just now"
        );
        clock.sleep(AGAIN).await;
        assert_eq!(
            among(&ours, clock, &both, other).await,
            only(&["new"], 1),
            "who is known is not asked again"
        );
        // Its place is taken by one of ours, at an address that is known for another.
        let both = [resolver("new", "10.0.0.1"), resolver("old", "10.0.1.1")];
        assert_eq!(
            among(&ours, clock, &both, other).await,
            only(&["new", "old"], 1)
        );
        assert_eq!(among(&ours, clock, &[], other).await, only(&[], 0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_say_is_not_taken_for_another() {
        let busy = Unanswered::Refused(StatusCode::SERVICE_UNAVAILABLE, "ask later".to_owned());
        let late = Unanswered::Failed("no answer within 5s".to_owned());
        for why in [None, Some(&late), Some(&busy)] {
            let (clock, ours) = (Clock::system(), Ours::default());
            let one = [resolver("slow", "10.0.0.2")];
            let before = clock.uptime();
            let (pods, _) = among(&ours, clock, &one, why).await;
            assert_eq!(pods, ["slow"], "{why:?}");
            assert!(clock.uptime().saturating_sub(before) <= LIMIT);
        }
    }
}
