use base64::{Engine as _, engine::general_purpose::STANDARD};
use kube::api::DynamicObject;
use neap_kit::operation::StepKind;
use serde_json::{Value, json};

use super::{InstallRequest, Installation, hive, lists::steps_of};

fn document(state: &str) -> Value {
    json!({"openShiftCluster": {"properties": {"provisioningState": state}}})
}

#[test]
fn the_lists_have_the_steps_of_the_original_in_order() {
    for (state, first, last, total) in [
        ("Creating", "validateResources", "finishInstallation", 57),
        ("Updating", "validateResources", "aroDeploymentReady", 21),
        ("Deleting", "ensureResourceGroup", "deleteBillingRecord", 11),
    ] {
        let list = steps_of(&document(state)).unwrap();
        assert_eq!(list.steps.first().unwrap().name, first);
        assert_eq!(list.steps.last().unwrap().name, last);
        assert_eq!(list.steps.len(), total, "{state}");
    }
    assert!(steps_of(&document("Succeeded")).is_none());
}

#[test]
fn nothing_that_needs_a_cloud_pretends_to_run() {
    let list = steps_of(&document("Creating")).unwrap();
    let step = |name: &str| list.steps.iter().find(|step| step.name == name).unwrap();
    for name in ["createDNS", "deployBaseResourceTemplate", "removeBootstrap"] {
        let kind = &step(name).kind;
        assert_eq!(
            *kind,
            StepKind::Skipped {
                reason: "no cloud configured"
            }
        );
    }
    assert!(step("initializeKubernetesClients").reruns);
}

#[test]
fn hive_adopts_what_it_did_not_install() {
    let mut document = document("Updating");
    let properties = &mut document["openShiftCluster"]["properties"];
    properties["aroServiceKubeconfig"] = json!({"$sealed": "…"});
    properties["infraId"] = "blue-x2f5g".into();
    let last = |document: &Value| steps_of(document).unwrap().steps.pop().unwrap().name;
    assert_eq!(last(&document), "hiveResetCorrelationData");
    document["openShiftCluster"]["properties"]["hiveProfile"] = json!({"createdByHive": true});
    assert_eq!(last(&document), "aroDeploymentReady");
    document["id"] = "7".into();
    let request = InstallRequest {
        document: &document,
        subscription: &Value::Null,
        version: &Value::Null,
        location: "local",
        domain: "local.aroapp.example.com",
    };
    let adopted = hive::adopted(&request, "aro-7");
    let spec = &adopted["spec"];
    assert_eq!(
        (&spec["installed"], &spec["preserveOnDelete"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(spec["clusterMetadata"]["infraID"], "blue-x2f5g");
    assert!(
        spec.get("provisioning").is_none(),
        "Hive must not install it"
    );
    let label = &adopted["metadata"]["labels"]["aro.openshift.io/created-by-hive"];
    assert_eq!(label, "false");
    assert_eq!(hive::state(&deployment(&adopted)), Installation::Complete);
}

fn deployment(value: &Value) -> DynamicObject {
    let mut value = value.clone();
    value["metadata"] = json!({"name": "cluster"});
    serde_json::from_value(value).unwrap()
}

#[test]
fn reasons_of_hive_become_errors_that_customers_can_act_on() {
    let failed = |reason: &str| {
        let condition = json!({"type": "ProvisionFailed", "status": "True", "reason": reason, "message": "why"});
        hive::state(&deployment(
            &json!({"spec": {}, "status": {"conditions": [condition]}}),
        ))
    };
    let Installation::Failed(error) = failed("AzureZonalAllocationFailed") else {
        panic!("it failed");
    };
    assert_eq!((error.status, &*error.code), (400, "DeploymentFailed"));
    assert!(error.message.contains("capacity"), "{}", error.message);
    let Installation::Failed(error) = failed("SomethingNew") else {
        panic!("it failed");
    };
    assert_eq!(
        (error.status, &*error.details[0].code),
        (500, "SomethingNew")
    );
    let complete = hive::state(&deployment(&json!({"spec": {"installed": true}})));
    assert_eq!(complete, Installation::Complete);
    let running = hive::state(&deployment(&json!({"spec": {}})));
    assert!(matches!(running, Installation::Running(_)));
}

/// The text in the data of a Secret.
fn decoded(secrets: &[(&str, Value)], name: &str, key: &str) -> String {
    let (_, data) = secrets.iter().find(|(it, _)| *it == name).unwrap();
    let bytes = STANDARD.decode(data[key].as_str().unwrap()).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn installed<'a>(document: &'a Value, subscription: &'a Value) -> InstallRequest<'a> {
    InstallRequest {
        document,
        subscription,
        version: &Value::Null,
        location: "local",
        domain: "local.aroapp.example.com",
    }
}

#[test]
fn hive_gets_what_the_installer_of_the_original_reads() {
    let cluster = |domain: &str| {
        json!({"id": "7", "partitionKey": "s", "openShiftCluster": {
            "name": "blue",
            "properties": {
                "clusterProfile": {"domain": domain, "pullSecret": "{}"},
                "servicePrincipalProfile": {"clientId": "c", "clientSecret": "hush"},
            },
        }})
    };
    let subscription = json!({"id": "s", "subscription": {"state": "Registered"}});
    let document = cluster("blue");
    let secrets = hive::secrets(&installed(&document, &subscription));
    let installer = "cluster-service-principal-secret";
    let of_installer =
        |key: &str| -> Value { serde_json::from_str(&decoded(&secrets, installer, key)).unwrap() };
    assert_eq!(of_installer("99_aro.json"), document["openShiftCluster"]);
    assert_eq!(of_installer("99_sub.json"), subscription["subscription"]);
    let config = decoded(&secrets, "aro-installconfig", "install-config.yaml");
    let expected = "apiVersion: v1\nplatform:\n  azure:\n    region: \"local\"\n";
    assert_eq!(config, expected);
    let (_, variables) = secrets
        .iter()
        .find(|(name, _)| *name == "aro-env-secret")
        .unwrap();
    let spec = &hive::deployment(&installed(&document, &subscription), "aro-7")["spec"];
    let mut named = Vec::new();
    for variable in spec["provisioning"]["installerEnv"].as_array().unwrap() {
        let source = &variable["valueFrom"]["secretKeyRef"];
        if variable["name"] == "ARO_UUID" {
            assert_eq!(variable["value"], "7");
        } else {
            assert_eq!(source["name"], "aro-env-secret");
            assert_eq!(source["key"], variable["name"]);
            named.push(variable["name"].as_str().unwrap());
        }
    }
    let stored: Vec<_> = variables.as_object().unwrap().keys().collect();
    assert_eq!(stored, named);
    assert!(!named.is_empty());
    for (domain, full) in [
        ("blue", "blue.local.aroapp.example.com"),
        ("blue.example.org", "blue.example.org"),
    ] {
        let document = cluster(domain);
        let spec = &hive::deployment(&installed(&document, &subscription), "aro-7")["spec"];
        assert_eq!(spec["baseDomain"], full);
        let url = &spec["controlPlaneConfig"]["apiURLOverride"];
        assert_eq!(*url, format!("api-int.{full}:6443"));
    }
}
