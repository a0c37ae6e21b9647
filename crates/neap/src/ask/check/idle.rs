//! Services that sleep: whether somebody answers for them, and how each of them is.

use jiff::Timestamp;
use neap_idle::{
    account::{Account, State, account},
    api::ElastiService,
};
use neap_kit::clock::Clock;
use serde_json::Value;

use super::Finding;
use crate::ask::{
    cluster::Cluster,
    explain::readable,
    read::{self, ELASTI_SERVICE, SERVICE, SLICE},
};

/// The port by which the Service of the resolvers is known, whatever it is called.
const SHARED: &str = "http-resolver-reverse-proxy";
/// On a slice: the Service that it is part of.
const OF: &str = "kubernetes.io/service-name";

/// Everything that is looked at.
#[derive(Debug, Default)]
struct Seen {
    served: bool,
    services: Vec<ElastiService>,
    /// Services and slices of all namespaces.
    around: Vec<Value>,
}

/// Looks at all namespaces.
pub(super) async fn check(cluster: &Cluster) -> Vec<Finding> {
    match look(cluster).await {
        Ok(seen) => judge(&seen, Clock::system().now()),
        Err(error) => {
            let failure = cluster.failed("ElastiServices", &error);
            let finding = Finding::failed("objects", failure.to_string(), failure.advice());
            vec![finding]
        }
    }
}

async fn look(cluster: &Cluster) -> Result<Seen, kube::Error> {
    let client = &cluster.client;
    let path = format!("/apis/{}", ELASTI_SERVICE.api_version);
    let list = |kind| read::list(client, kind, None, None);
    let (kind, found, services, slices) = futures::try_join!(
        read::find(client, &path),
        list(ELASTI_SERVICE),
        list(SERVICE),
        list(SLICE),
    )?;
    Ok(Seen {
        served: kind.is_some(),
        services: readable(found),
        around: services.into_iter().chain(slices).collect(),
    })
}

fn judge(seen: &Seen, now: Timestamp) -> Vec<Finding> {
    if !seen.served {
        let hint = "kubectl apply -k deploy/idle/kustomize installs it";
        return vec![Finding::failed(
            "kind",
            "ElastiServices are not served",
            hint,
        )];
    }
    let mut findings = vec![Finding::ok("kind", "ElastiServices are served")];
    findings.push(resolvers(&seen.around));
    let accounts: Vec<_> = seen.services.iter().map(|one| account(one, now)).collect();
    findings.push(operator(&accounts));
    let asleep = accounts.iter().filter(|one| one.state == State::Asleep);
    let says = format!("{}, {} of them asleep", accounts.len(), asleep.count());
    findings.push(Finding::ok("services", says));
    findings.extend(accounts.iter().filter_map(unwell));
    findings
}

fn resolvers(around: &[Value]) -> Finding {
    let mut services = around.iter().filter(|one| one["kind"] == "Service");
    let has_port = |one: &&Value| {
        let ports = one["spec"]["ports"].as_array();
        ports
            .into_iter()
            .flatten()
            .any(|port| port["name"] == SHARED)
    };
    let hint = "services are kept awake until one is ready: look at the pods of elasti-resolver";
    let Some(service) = services.find(has_port) else {
        return Finding::failed("resolvers", "there is no Service of resolvers", hint);
    };
    let slices = around.iter().filter(|one| {
        one["kind"] == "EndpointSlice"
            && one["metadata"]["namespace"] == service["metadata"]["namespace"]
            && one["metadata"]["labels"][OF] == service["metadata"]["name"]
    });
    let endpoints = slices
        .filter_map(|one| one["endpoints"].as_array())
        .flatten();
    let ready = endpoints
        .filter(|one| one["conditions"]["ready"] != false)
        .count();
    match ready {
        0 => Finding::failed("resolvers", "none is ready", hint),
        count => Finding::ok("resolvers", format!("{count} ready")),
    }
}

/// An operator is known by what it has looked at.
fn operator(accounts: &[Account]) -> Finding {
    let unseen = accounts
        .iter()
        .filter(|one| one.state == State::Unseen)
        .count();
    let hint = "see whether it runs: kubectl get pods -A -l control-plane=controller-manager";
    match (accounts.len(), unseen) {
        (0, _) => Finding::note(
            "operator",
            "nothing shows whether one works",
            "there is no ElastiService yet",
        ),
        (_, 0) => Finding::ok("operator", "has looked at all of them"),
        (all, unseen) if all == unseen => {
            Finding::failed("operator", "has looked at none of them", hint)
        }
        (_, unseen) => Finding::note(
            "operator",
            format!("has not looked at {unseen} of them"),
            hint,
        ),
    }
}

fn unwell(account: &Account) -> Option<Finding> {
    let Account {
        namespace, name, ..
    } = account;
    let says = |what: &str| format!("{namespace}/{name}: {what}");
    let more = format!("neap explain elastiservice/{name} -n {namespace}");
    let why = account.why.first().map_or("", String::as_str);
    match (account.state, account.advice.first()) {
        (State::Stalled, advice) => {
            let hint = advice.unwrap_or(&more);
            Some(Finding::failed("service", says(why), hint))
        }
        // It does what it should, so why it does says nothing of what is to be done.
        (State::Asleep | State::Awake, Some(advice)) => {
            Some(Finding::note("service", says(advice), &more))
        }
        (_, Some(advice)) => Some(Finding::note("service", says(why), advice)),
        (_, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::Level, *};

    fn judged(status: &Value, ready: bool) -> Vec<(String, Level)> {
        let service = json!({
            "metadata": {"name": "cart", "namespace": "shop"},
            "spec": {
                "service": "cart", "triggers": [{"type": "requests"}],
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"},
            },
            "status": status,
        });
        let seen = Seen {
            served: true,
            services: vec![serde_json::from_value(service).unwrap()],
            around: vec![
                json!({"kind": "Service", "metadata": {"name": "r", "namespace": "elasti"},
                    "spec": {"ports": [{"name": SHARED}]}}),
                json!({"kind": "EndpointSlice",
                    "metadata": {"namespace": "elasti", "labels": {OF: "r"}},
                    "endpoints": [{"conditions": {"ready": ready}}]}),
            ],
        };
        let findings = judge(&seen, "2026-01-01T12:00:00Z".parse().unwrap());
        findings
            .into_iter()
            .map(|one| (one.name, one.level))
            .collect()
    }

    #[test]
    fn what_is_not_looked_after_fails() {
        let stalled = json!({"observedGeneration": 1, "conditions": [{
            "type": "Stalled", "status": "True", "reason": "ServiceMissing", "message": "none",
            "lastTransitionTime": "2026-01-01T11:00:00Z",
        }]});
        let asleep = json!({"observedGeneration": 1, "asleepSince": "2026-01-01T11:00:00Z"});
        for (status, ready, failed) in [
            (&asleep, true, &[][..]),
            (&asleep, false, &["resolvers"]),
            (&stalled, true, &["service"]),
            (&json!(null), true, &["operator"]),
        ] {
            let found = judged(status, ready);
            let found = found.iter().filter(|(_, level)| *level == Level::Failed);
            let found: Vec<_> = found.map(|(name, _)| name.as_str()).collect();
            assert_eq!(found, failed, "{status}");
        }
        let nothing = judge(&Seen::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(nothing[0].level, Level::Failed);
    }
}
