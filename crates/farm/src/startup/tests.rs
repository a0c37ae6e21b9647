use serde_json::{Value, json};

use super::*;

fn storage() -> Value {
    let local = json!({
        "keyLocationMapOnBlockDevice": {"file": {"path": "/m", "sizeBytes": 1 << 20}},
        "keyLocationMapMaximumGetAttempts": 16,
        "keyLocationMapMaximumPutAttempts": 64,
        "oldBlocks": 8, "currentBlocks": 24, "newBlocks": 1,
        "blocksOnBlockDevice": {
            "source": {"file": {"path": "/b", "sizeBytes": 1 << 30}}, "spareBlocks": 3,
        },
    });
    json!({
        "grpcServers": [{"listenAddresses": [":1"], "authenticationPolicy": {"allow": {}}}],
        "maximumMessageSizeBytes": 2,
        "contentAddressableStorage": {
            "backend": {"local": local},
            "getAuthorizer": {"allow": {}}, "putAuthorizer": {"allow": {}},
            "findMissingAuthorizer": {"allow": {}},
        },
        "actionCache": {
            "backend": {"local": local},
            "getAuthorizer": {"allow": {}}, "putAuthorizer": {"allow": {}},
        },
    })
}

fn found(program: Program, value: &Value) -> Vec<String> {
    let found = check(program, value);
    found
        .iter()
        .map(|it| format!("{}: {}", it.path, it.problem))
        .collect()
}

/// The findings after a change of a valid configuration.
fn after(pointer: &str, value: Value) -> Vec<String> {
    let mut configuration = storage();
    *configuration.pointer_mut(pointer).unwrap() = value;
    found(Program::Storage, &configuration)
}

#[test]
fn a_valid_configuration_has_no_findings() {
    assert_eq!(found(Program::Storage, &storage()), [""; 0]);
}

#[test]
fn servers_need_an_address_and_authentication() {
    assert_eq!(after("/grpcServers", json!([])).len(), 1);
    let open = json!([{"listenAddresses": [":1"]}]);
    let findings = after("/grpcServers", open);
    assert!(
        findings[0].contains("authentication policy not specified"),
        "{findings:?}"
    );
    let silent = json!([{"authenticationPolicy": {"allow": {}}}]);
    assert_eq!(
        after("/grpcServers", silent),
        ["grpcServers[0]: has to listen on an address or a path"]
    );
    let inner =
        json!([{"listenAddresses": [":1"], "authenticationPolicy": {"any": {"policies": [{}]}}}]);
    assert_eq!(after("/grpcServers", inner).len(), 1);
}

#[test]
fn two_servers_on_one_port_are_found() {
    let server = |addresses: &[&str]| json!({"listenAddresses": addresses, "authenticationPolicy": {"allow": {}}});
    for (one, other, conflicts) in [
        (":8980", ":8980", true),
        (":8980", "10.0.0.1:8980", true),
        ("[::]:8980", "10.0.0.1:8980", true),
        ("10.0.0.2:8980", "10.0.0.1:8980", false),
        (":8980", ":8981", false),
        (":0", ":0", false),
    ] {
        let findings = after("/grpcServers", json!([server(&[one]), server(&[other])]));
        let problem = "grpcServers[1].listenAddresses[0]: is the port of grpcServers[0].listenAddresses[0] too";
        let wanted: &[&str] = if conflicts { &[problem] } else { &[] };
        assert_eq!(findings, wanted, "{one} {other}");
    }
    let mut shared = storage();
    shared["global"] = json!({"diagnosticsHttpServer": {"httpServers": [server(&[":1"])]}});
    assert_eq!(found(Program::Storage, &shared).len(), 1);
}

#[test]
fn an_index_without_attempts_is_found() {
    for name in [
        "keyLocationMapMaximumGetAttempts",
        "keyLocationMapMaximumPutAttempts",
    ] {
        let pointer = format!("/contentAddressableStorage/backend/local/{name}");
        let findings = after(&pointer, json!(0));
        assert!(findings[0].contains("never found"), "{findings:?}");
    }
}

#[test]
fn only_the_cas_has_several_new_blocks() {
    assert_eq!(
        after(
            "/contentAddressableStorage/backend/local/newBlocks",
            json!(3)
        ),
        [""; 0]
    );
    assert_eq!(
        after("/actionCache/backend/local/newBlocks", json!(3)).len(),
        1
    );
    assert_eq!(
        after("/actionCache/backend/local/currentBlocks", json!(90)).len(),
        1
    );
}

#[test]
fn shards_have_weights_and_distinct_keys() {
    let backend = json!({"grpc": {"client": {"address": "a:1"}}});
    let cas = "/contentAddressableStorage/backend";
    let sharding = |shards: Value| after(cas, json!({"sharding": {"shards": shards}}));
    assert_eq!(
        sharding(json!({"0": {"backend": backend, "weight": 1}})),
        [""; 0]
    );
    assert_eq!(sharding(json!({"0": {"backend": backend}})).len(), 1);
    assert_eq!(sharding(json!({})).len(), 1);
    assert_eq!(
        sharding(json!({"0": {"backend": {}, "weight": 1}})).len(),
        1
    );
}

#[test]
fn completeness_checking_needs_a_cas() {
    let mut value = storage();
    let backend = value["actionCache"]["backend"].take();
    value["actionCache"]["backend"] = json!({"completenessChecking": {
        "backend": backend, "maximumTotalTreeSizeBytes": 1,
    }});
    assert_eq!(found(Program::Storage, &value), [""; 0]);
    value
        .as_object_mut()
        .unwrap()
        .remove("contentAddressableStorage");
    assert_eq!(found(Program::Storage, &value).len(), 1);
}

#[test]
fn expiring_results_need_a_positive_jitter() {
    let expiring = |jitter: &str| {
        let backend = storage()["actionCache"]["backend"].clone();
        after(
            "/actionCache/backend",
            json!({"actionResultExpiring": {
                "backend": backend, "minimumValidity": "1s", "maximumValidityJitter": jitter,
                "minimumTimestamp": "2026-01-01T00:00:00Z",
            }}),
        )
    };
    assert_eq!(expiring("1s"), [""; 0]);
    assert_eq!(expiring("0s").len(), 1);
}

#[test]
fn properties_in_a_wrong_order_are_found_before_workers_loop() {
    let properties = |list: Value| {
        let value = json!({"x": {"platform": {"properties": list}}});
        let findings = check(Program::Runner, &value);
        findings
            .into_iter()
            .filter(|it| it.path.contains("platform"))
            .count()
    };
    let property = |name: &str, value: &str| json!({"name": name, "value": value});
    assert_eq!(
        properties(json!([
            property("a", "1"),
            property("a", "2"),
            property("b", "1")
        ])),
        0
    );
    assert_eq!(
        properties(json!([property("b", "1"), property("a", "1")])),
        1
    );
    assert_eq!(
        properties(json!([property("a", "1"), property("a", "1")])),
        1
    );
}

#[test]
fn each_program_lacks_what_it_needs() {
    for (program, path) in [
        (Program::Scheduler, "synchronizeAuthorizer"),
        (Program::Scheduler, "actionRouter"),
        (Program::Scheduler, "platformQueueWithNoWorkersTimeout"),
        (Program::Worker, "inputDownloadConcurrency"),
        (Program::Worker, "buildDirectories"),
        (Program::Worker, "scheduler.address"),
        (Program::Runner, "buildDirectoryPath"),
        (Program::Runner, "grpcServers"),
        (Program::Browser, "requestMetadataLinksJmespathExpression"),
        (Program::Browser, "authorizer"),
        (Program::Storage, "maximumMessageSizeBytes"),
    ] {
        let findings = check(program, &json!({}));
        assert!(
            findings.iter().any(|it| it.path == path),
            "{program:?} {path} {findings:?}"
        );
    }
}
