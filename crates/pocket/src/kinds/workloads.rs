//! The rows of the kinds outside the core group.

use super::{
    BuiltinKind, Rules, admission_webhooks, controller_revision, cron_job, daemon_set, deployment,
    horizontal_pod_autoscaler, ingress, ingress_class, job, network_policy, pod_disruption_budget,
    priority_class, rbac, replica_set, runtime_class, stateful_set, storage_class,
};

const fn row(
    group: &'static str,
    version: &'static str,
    plural: &'static str,
    rules: Rules,
) -> BuiltinKind {
    BuiltinKind {
        group,
        version,
        plural,
        rules,
    }
}

const APPS: &str = "apps";
const NETWORKING: &str = "networking.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

static KINDS: [BuiltinKind; 21] = [
    row(APPS, "v1", "deployments", deployment::RULES),
    row(APPS, "v1", "replicasets", replica_set::RULES),
    row(APPS, "v1", "statefulsets", stateful_set::RULES),
    row(APPS, "v1", "daemonsets", daemon_set::RULES),
    row(
        APPS,
        "v1",
        "controllerrevisions",
        controller_revision::RULES,
    ),
    row("batch", "v1", "jobs", job::RULES),
    row("batch", "v1", "cronjobs", cron_job::RULES),
    row(
        "autoscaling",
        "v2",
        "horizontalpodautoscalers",
        horizontal_pod_autoscaler::RULES,
    ),
    row(
        "policy",
        "v1",
        "poddisruptionbudgets",
        pod_disruption_budget::RULES,
    ),
    row(NETWORKING, "v1", "ingresses", ingress::RULES),
    row(NETWORKING, "v1", "ingressclasses", ingress_class::RULES),
    row(NETWORKING, "v1", "networkpolicies", network_policy::RULES),
    row(RBAC, "v1", "roles", rbac::ROLE),
    row(RBAC, "v1", "clusterroles", rbac::CLUSTER_ROLE),
    row(RBAC, "v1", "rolebindings", rbac::ROLE_BINDING),
    row(
        RBAC,
        "v1",
        "clusterrolebindings",
        rbac::CLUSTER_ROLE_BINDING,
    ),
    row(
        "scheduling.k8s.io",
        "v1",
        "priorityclasses",
        priority_class::RULES,
    ),
    row(
        "storage.k8s.io",
        "v1",
        "storageclasses",
        storage_class::RULES,
    ),
    row("node.k8s.io", "v1", "runtimeclasses", runtime_class::RULES),
    row(
        ADMISSION,
        "v1",
        "validatingwebhookconfigurations",
        admission_webhooks::VALIDATING,
    ),
    row(
        ADMISSION,
        "v1",
        "mutatingwebhookconfigurations",
        admission_webhooks::MUTATING,
    ),
];

/// The built-in kinds of apps, batch and all other groups but core, events, coordination,
/// discovery and apiextensions.
pub fn workload_kinds() -> &'static [BuiltinKind] {
    &KINDS
}

#[cfg(test)]
mod tests;
