//! Checks of services that sleep: the CRD, the resolvers, the operator and every ElastiService.

use neap_kit::area::{CheckFacts, Finding, ResourceType};
use serde_json::Value;

use crate::{
    account::{Account, State, account},
    api::ElastiService,
};

/// Services and their slices are read to find the resolvers.
pub(super) const SERVICE: ResourceType = ResourceType::namespaced("Service", "v1", "services");
pub(super) const SLICE: ResourceType =
    ResourceType::namespaced("EndpointSlice", "discovery.k8s.io/v1", "endpointslices");

/// Port name that identifies the Service of the resolvers, whatever its name.
const RESOLVER_PORT_NAME: &str = "http-resolver-reverse-proxy";
/// Label of an EndpointSlice with the name of its Service.
const SERVICE_NAME_LABEL: &str = "kubernetes.io/service-name";

pub(super) fn findings(facts: &CheckFacts) -> Vec<Finding> {
    if !facts.serves("ElastiService") {
        let hint = "install it with kubectl apply -k deploy/idle/kustomize";
        return vec![Finding::failed(
            "kind",
            "the server does not serve ElastiServices",
            hint,
        )];
    }
    let mut findings = vec![Finding::ok("kind", "the server serves ElastiServices")];
    findings.push(resolvers(&facts.objects));
    let services: Vec<ElastiService> = facts.typed("ElastiService");
    let accounts: Vec<_> = services.iter().map(|one| account(one, facts.now)).collect();
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
        (State::Stalled | State::Failed, advice) => {
            let hint = advice.unwrap_or(&more);
            Some(Finding::failed("service", message(why), hint))
        }
        (State::Asleep, _) if account.not_ready.is_some() => {
            Some(Finding::note("service", message(why), &more))
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

    use neap_kit::area::Level;

    use super::*;

    fn assessment_of(status: &Value, ready: bool) -> Vec<(String, Level)> {
        let service = json!({
            "kind": "ElastiService",
            "metadata": {"name": "cart", "namespace": "shop"},
            "spec": {
                "service": "cart", "triggers": [{"type": "requests"}],
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "cart"},
            },
            "status": status,
        });
        let facts = CheckFacts {
            unserved: vec![],
            now: "2026-01-01T12:00:00Z".parse().unwrap(),
            objects: vec![
                service,
                json!({"kind": "Service", "metadata": {"name": "r", "namespace": "elasti"},
                    "spec": {"ports": [{"name": RESOLVER_PORT_NAME}]}}),
                json!({"kind": "EndpointSlice",
                    "metadata": {"namespace": "elasti", "labels": {SERVICE_NAME_LABEL: "r"}},
                    "endpoints": [{"conditions": {"ready": ready}}]}),
            ],
        };
        findings(&facts)
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
        let nothing = findings(&CheckFacts {
            objects: vec![],
            unserved: vec!["ElastiService"],
            now: jiff::Timestamp::UNIX_EPOCH,
        });
        assert_eq!(nothing[0].level, Level::Failed);
    }
}
