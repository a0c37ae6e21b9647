//! What operator and resolver may do. A test holds this to the generated manifests in `deploy/idle`.

use neap_kit::area::{Right, Role, RoleScope};

const READ: &[&str] = &["get", "list", "watch"];
const LOOK: &[&str] = &["list", "watch"];
const SCALE: &[&str] = &["get", "patch"];

/// The roles of an installation in one namespace that watches all of them.
pub(super) const ROLES: &[Role] = &[
    Role {
        name: "elasti-operator-manager-role",
        scope: RoleScope::Cluster,
        account: "elasti-operator-controller-manager",
        rights: &[
            Right::new(
                "elasti.truefoundry.com",
                &["elastiservices"],
                &[
                    "get", "list", "watch", "create", "update", "patch", "delete",
                ],
            ),
            Right::new(
                "elasti.truefoundry.com",
                &["elastiservices/status"],
                &["update", "patch"],
            ),
            Right::new(
                "elasti.truefoundry.com",
                &["elastiservices/finalizers"],
                &["update"],
            ),
        ],
    },
    Role {
        name: "elasti-operator-additional-access",
        scope: RoleScope::Cluster,
        account: "elasti-operator-controller-manager",
        rights: &[
            Right::new(
                "",
                &["services"],
                &["get", "list", "watch", "create", "update", "delete"],
            ),
            Right::new(
                "discovery.k8s.io",
                &["endpointslices"],
                &["get", "list", "watch", "create", "update", "delete"],
            ),
            Right::new("", &["pods"], &["list"]),
            Right::new("", &["events"], &["get", "create", "update"]),
            Right::new(
                "keda.sh",
                &["scaledobjects"],
                &["get", "list", "watch", "patch"],
            ),
            Right::new("autoscaling", &["horizontalpodautoscalers"], LOOK),
            Right::new("", &["namespaces"], LOOK),
            Right::new("authentication.k8s.io", &["tokenreviews"], &["create"]),
        ],
    },
    Role {
        name: "elasti-scale-targets-usual",
        scope: RoleScope::Cluster,
        account: "elasti-operator-controller-manager",
        rights: &[
            Right::new("apps", &["deployments", "statefulsets"], READ),
            Right::new("apps", &["deployments/scale", "statefulsets/scale"], SCALE),
            Right::new("argoproj.io", &["rollouts"], READ),
            Right::new("argoproj.io", &["rollouts/scale"], SCALE),
        ],
    },
    Role {
        name: "elasti-operator-leader-election-role",
        scope: RoleScope::OwnNamespace,
        account: "elasti-operator-controller-manager",
        rights: &[
            Right::new("", &["configmaps"], &["get", "create", "patch"]),
            Right::new(
                "coordination.k8s.io",
                &["leases"],
                &["get", "list", "watch", "create", "update"],
            ),
        ],
    },
    Role {
        name: "elasti-resolver-additional-access",
        scope: RoleScope::Cluster,
        account: "elasti-resolver",
        rights: &[
            Right::new("elasti.truefoundry.com", &["elastiservices"], LOOK),
            Right::new("", &["services"], LOOK),
            Right::new("discovery.k8s.io", &["endpointslices"], LOOK),
            Right::new("authentication.k8s.io", &["tokenreviews"], &["create"]),
        ],
    },
];

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_roles_are_those_of_the_manifests() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../deploy/idle/kustomize/rbac.yaml"
        );
        let text = std::fs::read_to_string(path).unwrap();
        let installed: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for role in ROLES {
            let [wanted, _] = role.objects("elasti");
            let found = installed
                .iter()
                .find(|one| one["kind"] == wanted["kind"] && one["metadata"]["name"] == role.name);
            let found = found.unwrap_or_else(|| panic!("{} is not installed", role.name));
            assert_eq!(found["rules"], wanted["rules"], "{}", role.name);
        }
        let granting = installed.iter().filter(|one| one["rules"].is_array());
        assert_eq!(
            granting.count(),
            ROLES.len(),
            "and no other role grants anything"
        );
    }
}
