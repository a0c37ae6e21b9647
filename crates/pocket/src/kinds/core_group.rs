//! The core group's kinds and their close relatives, as rows of the table.

use super::{
    BuiltinKind, Rules, Traits, claim, config_map, endpoint_slice, endpoints, event, lease, limits,
    namespace, node, pod, replication_controller, secret, service, volume,
};

/// The rules of ServiceAccounts: only the schema.
const SERVICE_ACCOUNT: Rules = Rules {
    traits: Traits {
        delete_returns_object: true,
        status: false,
        ..Traits::USUAL
    },
    ..Rules::SHAPE_ONLY
};

const fn core(plural: &'static str, rules: Rules) -> BuiltinKind {
    BuiltinKind {
        group: "",
        version: "v1",
        plural,
        rules,
    }
}

const fn of(group: &'static str, plural: &'static str, rules: Rules) -> BuiltinKind {
    BuiltinKind {
        group,
        version: "v1",
        plural,
        rules,
    }
}

static KINDS: [BuiltinKind; 18] = [
    core("configmaps", config_map::RULES),
    core("endpoints", endpoints::RULES),
    core("events", event::CORE_RULES),
    core("limitranges", limits::LIMIT_RANGE),
    core("namespaces", namespace::RULES),
    core("nodes", node::RULES),
    core("persistentvolumeclaims", claim::RULES),
    core("persistentvolumes", volume::RULES),
    core("pods", pod::RULES),
    core("podtemplates", replication_controller::POD_TEMPLATE),
    core("replicationcontrollers", replication_controller::RULES),
    core("resourcequotas", limits::RESOURCE_QUOTA),
    core("secrets", secret::RULES),
    core("serviceaccounts", SERVICE_ACCOUNT),
    core("services", service::RULES),
    of("coordination.k8s.io", "leases", lease::RULES),
    of("discovery.k8s.io", "endpointslices", endpoint_slice::RULES),
    of("events.k8s.io", "events", event::RULES),
];

/// The rows of the core group, and of leases, endpoint slices and events.
pub fn core_kinds() -> &'static [BuiltinKind] {
    &KINDS
}

#[cfg(test)]
mod tests;
