//! Checks of services that sleep: the CRD, the resolvers, the operator and every ElastiService.

use jiff::Timestamp;
use neap_idle::{
    account::{Account, State, account},
    api::ElastiService,
};
use neap_kit::clock::Clock;
use serde_json::Value;

use super::Finding;
use crate::inspect::{
    cluster::Cluster,
    explain::decode_valid,
    read::{self, ELASTI_SERVICE, SERVICE, SLICE},
};

/// Port name that identifies the Service of the resolvers, whatever its name.
const RESOLVER_PORT_NAME: &str = "http-resolver-reverse-proxy";
/// Label of an EndpointSlice with the name of its Service.
const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

/// The objects that the checks need.
#[derive(Debug, Default)]
struct IdleSnapshot {
    served: bool,
    services: Vec<ElastiService>,
    /// Services and EndpointSlices of all namespaces.
    related: Vec<Value>,
}

/// Checks all namespaces.
pub(super) async fn check(cluster: &Cluster) -> Vec<Finding> {
    match read_snapshot(cluster).await {
        Ok(snapshot) => findings(&snapshot, Clock::system().now()),
        Err(error) => {
            let failure = cluster.failed("ElastiServices", &error);
            let finding = Finding::failed("objects", failure.to_string(), failure.advice());
            vec![finding]
        }
    }
}

async fn read_snapshot(cluster: &Cluster) -> Result<IdleSnapshot, kube::Error> {
    let client = &cluster.client;
    let path = format!("/apis/{}", ELASTI_SERVICE.api_version);
    let list = |kind| read::list(client, kind, None, None);
    let (kind, found, services, slices) = futures::try_join!(
        read::find(client, &path),
        list(ELASTI_SERVICE),
        list(SERVICE),
        list(SLICE),
    )?;
    Ok(IdleSnapshot {
        served: kind.is_some(),
        services: decode_valid(found),
        related: services.into_iter().chain(slices).collect(),
    })
}

fn findings(snapshot: &IdleSnapshot, now: Timestamp) -> Vec<Finding> {
    if !snapshot.served {
        let hint = "install it with kubectl apply -k deploy/idle/kustomize";
        return vec![Finding::failed(
            "kind",
            "the server does not serve ElastiServices",
            hint,
        )];
    }
    let mut findings = vec![Finding::ok("kind", "the server serves ElastiServices")];
    findings.push(resolvers(&snapshot.related));
    let accounts: Vec<_> = snapshot
        .services
        .iter()
        .map(|one| account(one, now))
        .collect();
    findings.push(operator(&accounts));
    let asleep = accounts.iter().filter(|one| one.state == State::Asleep);
    let message = format!("{}, {} asleep", accounts.len(), asleep.count());
    findings.push(Finding::ok("services", message));
    findings.extend(accounts.iter().filter_map(service_finding));
    findings
}

fn resolvers(related: &[Value]) -> Finding {
    let mut services = related.iter().filter(|one| one["kind"] == "Service");
    let has_port = |one: &&Value| {
        let ports = one["spec"]["ports"].as_array();
        ports
            .into_iter()
            .flatten()
            .any(|port| port["name"] == RESOLVER_PORT_NAME)
    };
    let hint = "no service sleeps until a resolver is ready; check the pods of elasti-resolver";
    let Some(service) = services.find(has_port) else {
        return Finding::failed(
            "resolvers",
            "the Service of the resolvers does not exist",
            hint,
        );
    };
    let slices = related.iter().filter(|one| {
        one["kind"] == "EndpointSlice"
            && one["metadata"]["namespace"] == service["metadata"]["namespace"]
            && one["metadata"]["labels"][SERVICE_NAME_LABEL] == service["metadata"]["name"]
    });
    let endpoints = slices
        .filter_map(|one| one["endpoints"].as_array())
        .flatten();
    let ready = endpoints
        .filter(|one| one["conditions"]["ready"] != false)
        .count();
    match ready {
        0 => Finding::failed("resolvers", "no resolver is ready", hint),
        count => Finding::ok("resolvers", format!("{count} ready")),
    }
}

/// The operator is judged by the ElastiServices that it has reconciled.
fn operator(accounts: &[Account]) -> Finding {
    let unseen = accounts
        .iter()
        .filter(|one| one.state == State::Unseen)
        .count();
    let hint = "check its pods: kubectl get pods -A -l control-plane=controller-manager";
    match (accounts.len(), unseen) {
        (0, _) => Finding::note(
            "operator",
            "unknown, because no ElastiService exists",
            "create an ElastiService, or annotate a Service",
        ),
        (_, 0) => Finding::ok("operator", "has reconciled all ElastiServices"),
        (all, unseen) if all == unseen => {
            Finding::failed("operator", "has reconciled no ElastiService", hint)
        }
        (_, unseen) => Finding::note(
            "operator",
            format!("has not reconciled {unseen} ElastiServices"),
            hint,
        ),
    }
}

fn service_finding(account: &Account) -> Option<Finding> {
    let Account {
        namespace, name, ..
    } = account;
    let message = |what: &str| format!("{namespace}/{name}: {what}");
    let more = format!("neap explain elastiservice/{name} -n {namespace}");
    let why = account.why.first().map_or("", String::as_str);
    match (account.state, account.advice.first()) {
        (State::Stalled, advice) => {
            let hint = advice.unwrap_or(&more);
            Some(Finding::failed("service", message(why), hint))
        }
        // The state is as intended, so only the advice matters, not the reason of the state.
        (State::Asleep | State::Awake, Some(advice)) => {
            Some(Finding::note("service", message(advice), &more))
        }
        (_, Some(advice)) => Some(Finding::note("service", message(why), advice)),
        (_, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::Level, *};

    fn assessment_of(status: &Value, ready: bool) -> Vec<(String, Level)> {
        let service = json!({
            "metadata": {"name": "cart", "namespace": "shop"},
            "spec": {
                "service": "cart", "triggers": [{"type": "requests"}],
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"},
            },
            "status": status,
        });
        let snapshot = IdleSnapshot {
            served: true,
            services: vec![serde_json::from_value(service).unwrap()],
            related: vec![
                json!({"kind": "Service", "metadata": {"name": "r", "namespace": "elasti"},
                    "spec": {"ports": [{"name": RESOLVER_PORT_NAME}]}}),
                json!({"kind": "EndpointSlice",
                    "metadata": {"namespace": "elasti", "labels": {SERVICE_NAME_LABEL: "r"}},
                    "endpoints": [{"conditions": {"ready": ready}}]}),
            ],
        };
        let findings = findings(&snapshot, "2026-01-01T12:00:00Z".parse().unwrap());
        findings
            .into_iter()
            .map(|one| (one.name, one.level))
            .collect()
    }

    #[test]
    fn unready_resolvers_missing_operator_and_stalled_services_fail() {
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
            let found = assessment_of(status, ready);
            let found = found.iter().filter(|(_, level)| *level == Level::Failed);
            let found: Vec<_> = found.map(|(name, _)| name.as_str()).collect();
            assert_eq!(found, failed, "{status}");
        }
        let nothing = findings(&IdleSnapshot::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(nothing[0].level, Level::Failed);
    }
}
