use serde_json::json;

use super::*;
use crate::why::{Class, Code, Retry};
use jiff::Timestamp;

const ENTRY: CatalogueEntry = CatalogueEntry {
    code: Code("NT-SHOP-0001"),
    title: "the shop is closed",
    cause: "The shop is closed on Sundays.",
    remedy: "Come back on Monday morning.",
    class: Class::UserFixable,
    retry: Retry::WithBackoff,
    http: 409,
};

#[test]
fn an_area_with_well_formed_parts_has_no_problems() {
    let area = Area {
        codes: &[ENTRY],
        ..Area::new("shop", "shops")
    };
    assert_eq!(area.problems(), [""; 0]);
}

#[test]
fn foreign_codes_missing_definitions_and_wide_rights_are_named() {
    let area = Area {
        codes: const {
            &[CatalogueEntry {
                code: Code("NT-IDLE-0001"),
                cause: "",
                ..ENTRY
            }]
        },
        kinds: const {
            &[AreaKind {
                resource: ResourceType::namespaced("Shop", "sea.example/v1", "shops"),
                title: "Shops",
                key: "shops",
                summary: |_, _| String::new(),
                assess: |_, _| None,
                related: &[],
            }]
        },
        roles: const {
            &[Role {
                name: "shop",
                scope: RoleScope::Cluster,
                account: "shop",
                rights: const { &[Right::new("", &["*"], &["get"])] },
            }]
        },
        metrics: &[Metric {
            name: "neap_shop_sales",
            help: "",
        }; 2],
        ..Area::new("shop", "shops")
    };
    let problems = area.problems().join("\n");
    for named in [
        "NT-SHOP-",
        "cause",
        "Shop has no definition",
        "a right with *",
        "neap_shop_sales",
    ] {
        assert!(problems.contains(named), "{named} is missing in {problems}");
    }
}

#[test]
fn all_kinds_of_an_area_can_be_viewed_by_those_who_may_view() {
    assert_eq!(Area::new("shop", "shops").view_role(), None);
    let area = Area {
        definitions: || {
            let one = |plural: &str| {
                let mut definition = CustomResourceDefinition::default();
                definition.spec.group = "sea.example".to_owned();
                definition.spec.names.plural = plural.to_owned();
                definition
            };
            vec![one("shops"), one("boats")]
        },
        foreign_kinds: const {
            &[AreaKind {
                resource: ResourceType::namespaced("Quay", "land.example/v1", "quays"),
                title: "Quays",
                key: "quays",
                summary: |_, _| String::new(),
                assess: |_, _| None,
                related: &[],
            }]
        },
        ..Area::new("shop", "shops")
    };
    let role = serde_json::to_value(area.view_role().unwrap()).unwrap();
    assert_eq!(role["metadata"]["name"], "neap-shop-view");
    let labels = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    assert_eq!(role["metadata"]["labels"], labels);
    let verbs = ["get", "list", "watch"];
    let expected = json!([
        {"apiGroups": ["land.example"], "resources": ["quays"], "verbs": verbs},
        {"apiGroups": ["sea.example"], "resources": ["boats", "shops"], "verbs": verbs},
    ]);
    assert_eq!(role["rules"], expected);
}

#[test]
fn a_role_becomes_a_role_and_its_binding() {
    let role = Role {
        name: "neap-shop",
        scope: RoleScope::OwnNamespace,
        account: "keeper",
        rights: const {
            &[Right::new(
                "coordination.k8s.io",
                &["leases"],
                &["get", "update"],
            )]
        },
    };
    let [role, binding] = role.objects("market");
    assert_eq!(role["kind"], "Role");
    assert_eq!(role["metadata"]["namespace"], "market");
    assert_eq!(
        role["rules"],
        json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "update"]}])
    );
    assert_eq!(binding["subjects"][0]["namespace"], "market");
    assert_eq!(binding["roleRef"]["name"], "neap-shop");
}

#[test]
fn a_check_sees_its_objects_by_kind_and_by_type() {
    #[derive(serde::Deserialize)]
    struct Shop {
        size: u32,
    }
    let facts = CheckFacts {
        objects: vec![
            json!({"kind": "Shop", "size": 3}),
            json!({"kind": "Shop", "size": "wide"}),
            json!({"kind": "Boat"}),
        ],
        unserved: vec!["Boat"],
        now: Timestamp::UNIX_EPOCH,
    };
    assert_eq!(facts.of("Shop").count(), 2);
    let typed: Vec<Shop> = facts.typed("Shop");
    assert_eq!(typed.iter().map(|one| one.size).collect::<Vec<_>>(), [3]);
    assert!(facts.serves("Shop") && !facts.serves("Boat"));
}
