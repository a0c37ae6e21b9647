use serde_json::{Value, json};

use super::{CHECKS, Input, report, validate};
use crate::{
    api::find,
    cloud_error::CloudError,
    fixtures::{SUBSCRIPTION, VERSION, cluster, path, region},
    resource_id::ClusterId,
};

fn id() -> ClusterId {
    ClusterId::parse(path("blue", "").split('?').next().unwrap()).unwrap()
}

fn valid() -> Value {
    let mut cluster = cluster("blue");
    cluster["properties"]["clusterProfile"]["version"] = VERSION.into();
    cluster
}

fn validated(api: &str, cluster: &Value) -> Result<(), CloudError> {
    validate(&Input {
        api: find(api).unwrap(),
        id: &id(),
        cluster,
        current: None,
        region: &region(),
        first_architecture: false,
    })
}

fn subnet(name: &str) -> String {
    format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/vnet/providers/Microsoft.Network/virtualNetworks/vnet/subnets/{name}"
    )
}

/// What is changed in a valid cluster, and the code and target of the first error.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn table() -> Vec<(&'static str, Value, &'static str, String)> {
    let worker = |field: &str| format!("properties.workerProfiles['worker'].{field}");
    let of = |text: &str| text.to_owned();
    vec![
        (
            "/id",
            json!("/subscriptions/x"),
            "MismatchingResourceID",
            of("id"),
        ),
        ("/name", json!("red"), "MismatchingResourceName", of("name")),
        (
            "/type",
            json!("Microsoft.Other/things"),
            "MismatchingResourceType",
            of("type"),
        ),
        (
            "/location",
            json!("elsewhere"),
            "InvalidParameter",
            of("location"),
        ),
        (
            "/properties/provisioningState",
            json!("Resting"),
            "InvalidParameter",
            of("properties.provisioningState"),
        ),
        (
            "/properties/clusterProfile/pullSecret",
            json!("{"),
            "InvalidParameter",
            of("properties.clusterProfile.pullSecret"),
        ),
        (
            "/properties/clusterProfile/pullSecret",
            json!("{\"a\": 1}"),
            "InvalidParameter",
            of("properties.clusterProfile.pullSecret"),
        ),
        (
            "/properties/clusterProfile/domain",
            json!("Blue"),
            "InvalidParameter",
            of("properties.clusterProfile.domain"),
        ),
        (
            "/properties/clusterProfile/domain",
            json!("1blue"),
            "InvalidParameter",
            of("properties.clusterProfile.domain"),
        ),
        (
            "/properties/clusterProfile/domain",
            json!("b"),
            "InvalidParameter",
            of("properties.clusterProfile.domain"),
        ),
        (
            "/properties/clusterProfile/domain",
            json!("blue.other.aroapp.example.com"),
            "InvalidParameter",
            of("properties.clusterProfile.domain"),
        ),
        (
            "/properties/clusterProfile/domain",
            json!("a.blue.local.aroapp.example.com"),
            "InvalidParameter",
            of("properties.clusterProfile.domain"),
        ),
        (
            "/properties/clusterProfile/resourceGroupId",
            json!("group"),
            "InvalidParameter",
            of("properties.clusterProfile.resourceGroupId"),
        ),
        (
            "/properties/clusterProfile/resourceGroupId",
            json!(format!(
                "/subscriptions/{SUBSCRIPTION}/resourcegroups/GROUP"
            )),
            "InvalidParameter",
            of("properties.clusterProfile.resourceGroupId"),
        ),
        (
            "/properties/clusterProfile/resourceGroupId",
            json!("/subscriptions/00000000-0000-0000-0000-000000000002/resourcegroups/x"),
            "InvalidParameter",
            of("properties.clusterProfile.resourceGroupId"),
        ),
        (
            "/properties/clusterProfile/fipsValidatedModules",
            json!("Yes"),
            "InvalidParameter",
            of("properties.clusterProfile.fipsValidatedModules"),
        ),
        (
            "/properties/servicePrincipalProfile/clientId",
            json!("me"),
            "InvalidParameter",
            of("properties.servicePrincipalProfile.clientId"),
        ),
        (
            "/properties/servicePrincipalProfile/clientSecret",
            json!(""),
            "InvalidParameter",
            of("properties.servicePrincipalProfile.clientSecret"),
        ),
        (
            "/properties/networkProfile/podCidr",
            json!("10.128.0.0"),
            "InvalidParameter",
            of("properties.networkProfile.podCidr"),
        ),
        (
            "/properties/networkProfile/podCidr",
            json!("fd00::/14"),
            "InvalidParameter",
            of("properties.networkProfile.podCidr"),
        ),
        (
            "/properties/networkProfile/podCidr",
            json!("100.64.0.0/14"),
            "InvalidCIDRRange",
            of("networkProfile"),
        ),
        (
            "/properties/networkProfile/podCidr",
            json!("10.128.0.0/19"),
            "InvalidParameter",
            of("properties.networkProfile.podCidr"),
        ),
        (
            "/properties/networkProfile/podCidr",
            json!("10.129.0.0/14"),
            "InvalidNetworkAddress",
            of("properties.networkProfile.podCidr"),
        ),
        (
            "/properties/networkProfile/serviceCidr",
            json!("172.30.0.0/23"),
            "InvalidParameter",
            of("properties.networkProfile.serviceCidr"),
        ),
        (
            "/properties/networkProfile/outboundType",
            json!("Pigeon"),
            "InvalidParameter",
            of("properties.networkProfile.outboundType"),
        ),
        (
            "/properties/networkProfile/outboundType",
            json!("UserDefinedRouting"),
            "InvalidParameter",
            of("properties.networkProfile.outboundType"),
        ),
        (
            "/properties/networkProfile/loadBalancerProfile",
            json!({"managedOutboundIps": {"count": 21}}),
            "InvalidParameter",
            of("properties.networkProfile.loadBalancerProfile.managedOutboundIps.count"),
        ),
        (
            "/properties/masterProfile/vmSize",
            json!("Standard_D2s_v3"),
            "InvalidParameter",
            of("properties.masterProfile.vmSize"),
        ),
        (
            "/properties/masterProfile/subnetId",
            json!("master"),
            "InvalidParameter",
            of("properties.masterProfile.subnetId"),
        ),
        (
            "/properties/masterProfile/encryptionAtHost",
            json!("On"),
            "InvalidParameter",
            of("properties.masterProfile.encryptionAtHost"),
        ),
        (
            "/properties/masterProfile/diskEncryptionSetId",
            json!("set"),
            "InvalidParameter",
            of("properties.masterProfile.diskEncryptionSetId"),
        ),
        (
            "/properties/apiserverProfile/visibility",
            json!("Hidden"),
            "InvalidParameter",
            of("properties.apiserverProfile.visibility"),
        ),
        (
            "/properties/workerProfiles",
            json!([]),
            "InvalidParameter",
            of("properties.workerProfiles"),
        ),
        (
            "/properties/workerProfiles/0/vmSize",
            json!("Standard_X"),
            "InvalidParameter",
            worker("vmSize"),
        ),
        (
            "/properties/workerProfiles/0/diskSizeGB",
            json!(127),
            "InvalidParameter",
            worker("diskSizeGB"),
        ),
        (
            "/properties/workerProfiles/0/count",
            json!(51),
            "InvalidParameter",
            worker("count"),
        ),
        (
            "/properties/workerProfiles/0/subnetId",
            json!(subnet("master")),
            "InvalidParameter",
            worker("subnetId"),
        ),
        (
            "/properties/workerProfiles/0/subnetId",
            json!(subnet("worker").replace("Networks/vnet", "Networks/other")),
            "InvalidParameter",
            worker("subnetId"),
        ),
        (
            "/properties/ingressProfiles/0/visibility",
            json!("Hidden"),
            "InvalidParameter",
            of("properties.ingressProfiles['default'].visibility"),
        ),
        (
            "/properties/ingressProfiles/0/ip",
            json!("::1"),
            "InvalidParameter",
            of("properties.ingressProfiles['default'].ip"),
        ),
    ]
}

#[test]
fn every_rule_has_a_code_and_a_target_in_every_version() {
    for api in ["2023-11-22", "2025-07-25"] {
        validated(api, &valid()).unwrap();
        for (pointer, value, code, target) in table() {
            let mut cluster = valid();
            crate::documents::set(&mut cluster, "/name", json!("blue"));
            let (parent, name) = pointer.rsplit_once('/').unwrap();
            if cluster.pointer(pointer).is_none()
                && cluster.pointer(parent).is_some_and(Value::is_object)
            {
                cluster.pointer_mut(parent).unwrap()[name] = Value::Null;
            }
            *cluster.pointer_mut(pointer).expect(pointer) = value.clone();
            let error = validated(api, &cluster).expect_err(pointer);
            assert_eq!(
                (&*error.code, &*error.target),
                (code, &*target),
                "{api} {pointer} {value}"
            );
            assert_eq!(error.status, 400);
        }
    }
}

#[test]
fn versions_differ_in_who_the_cluster_may_be() {
    let mut cluster = valid();
    cluster["properties"]
        .as_object_mut()
        .unwrap()
        .remove("servicePrincipalProfile");
    let error = validated("2023-11-22", &cluster).unwrap_err();
    assert_eq!(error.target, "properties.servicePrincipalProfile");
    cluster["properties"]["platformWorkloadIdentityProfile"] =
        json!({"platformWorkloadIdentities": {}});
    let error = validated("2025-07-25", &cluster).unwrap_err();
    assert_eq!(error.code, "InvalidClusterMSICount");
    let mut cluster = valid();
    cluster["properties"]
        .as_object_mut()
        .unwrap()
        .remove("apiserverProfile");
    let error = validated("2025-07-25", &cluster).unwrap_err();
    assert_eq!(error.target, "properties.apiserverProfile");
}

#[test]
fn the_network_of_a_cluster_without_ingress_is_not_checked() {
    let mut cluster = valid();
    cluster["properties"]["ingressProfiles"] = json!([]);
    cluster["properties"]["networkProfile"]["podCidr"] = "nonsense".into();
    let error = validated("2023-11-22", &cluster).unwrap_err();
    assert_eq!(
        error.target, "properties.ingressProfiles",
        "the next rule is the first that fails"
    );
}

#[test]
fn a_report_ends_with_the_first_failure() {
    let mut cluster = valid();
    cluster["properties"]["apiserverProfile"]["visibility"] = "Hidden".into();
    let (id, region) = (id(), region());
    let input = Input {
        api: find("2023-11-22").unwrap(),
        id: &id,
        cluster: &cluster,
        current: None,
        region: &region,
        first_architecture: false,
    };
    let report: Vec<_> = report(&input).collect();
    let (last, before) = report.split_last().unwrap();
    assert_eq!(last.0, "API server profile");
    assert!(last.1.is_err() && before.iter().all(|(_, result)| result.is_ok()));
    assert!(report.len() < CHECKS.len());
}

#[test]
fn tags_have_the_limits_of_the_resource_manager() {
    let with = |tags: Value| {
        let mut cluster = valid();
        cluster["tags"] = tags;
        cluster
    };
    let many = |count: usize| {
        let tags = (0..count).map(|it| (format!("tag{it}"), Value::from("x")));
        Value::Object(tags.collect())
    };
    let longest = json!({"ä".repeat(512): "ö".repeat(256), "with space": ""});
    for tags in [json!({}), many(50), longest] {
        validated("2025-07-25", &with(tags)).unwrap();
    }
    let mut refused = vec![
        (many(51), "tags".to_owned()),
        (json!({"": "x"}), "tags.".to_owned()),
        (
            json!({"k".repeat(513): "x"}),
            format!("tags.{}", "k".repeat(64)),
        ),
        (json!({"team": "x".repeat(257)}), "tags.team".to_owned()),
    ];
    for character in "<>%&\\?/\u{7}\n".chars() {
        let key = format!("a{character}b");
        refused.push((json!({&*key: "x"}), format!("tags.{key}")));
    }
    for (tags, target) in refused {
        let error = validated("2025-07-25", &with(tags.clone())).expect_err(&target);
        assert_eq!(error.target, target, "{tags}");
        assert_eq!((error.status, &*error.code), (400, "InvalidParameter"));
    }
}
