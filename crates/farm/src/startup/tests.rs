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
    let diagnostics = json!({"listenAddresses": [":9980"], "authenticationPolicy": {"allow": {}}});
    json!({
        "grpcServers": [{"listenAddresses": [":1"], "authenticationPolicy": {"allow": {}}}],
        "global": {"diagnosticsHttpServer": {"httpServers": [diagnostics]}},
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
    let servers = json!([server(&[":9980", ":1"])]);
    let pointer = "/global/diagnosticsHttpServer/httpServers";
    assert_eq!(after(pointer, servers).len(), 1);
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

#[test]
fn health_is_where_the_kubelet_asks_for_it() {
    let pointer = "/global/diagnosticsHttpServer/httpServers";
    let server = |address: &str| json!({"listenAddresses": [address], "authenticationPolicy": {"allow": {}}});
    let mut encrypted = server(":9980");
    encrypted["tls"] = json!({});
    for (servers, is_probed) in [
        (json!([server(":9980")]), true),
        (json!([server("10.0.0.1:9980")]), true),
        (json!([server("[::]:9980")]), true),
        (json!([server(":80"), server(":9980")]), true),
        (json!([server("localhost:9980")]), false),
        (json!([server("127.0.0.1:9980")]), false),
        (json!([server(":9981")]), false),
        (json!([encrypted]), false),
        (json!([]), false),
    ] {
        let findings = after(pointer, servers.clone());
        let named = findings.iter().any(|it| {
            it.starts_with("global.diagnosticsHttpServer.httpServers: the pod is restarted")
        });
        assert_eq!(!named, is_probed, "{servers}: {findings:?}");
    }
    let path = "global.diagnosticsHttpServer.httpServers";
    let asked = |program| check(program, &json!({})).iter().any(|it| it.path == path);
    for program in [Program::Scheduler, Program::Worker, Program::Browser] {
        assert!(asked(program), "{program:?}");
    }
    assert!(
        !asked(Program::Runner),
        "it is probed only if it is rendered"
    );
}

#[test]
fn labels_are_declared_once_and_before_they_are_used() {
    let grpc = || json!({"grpc": {"client": {"address": "a:1"}}});
    let with = |labels: Value, backend: Value| json!({"withLabels": {"labels": labels, "backend": backend}});
    let label = |name: &str| json!({"label": name});
    let pointer = "/contentAddressableStorage/backend";
    let path = "contentAddressableStorage.backend";
    for (backend, expected) in [
        (with(json!({"a": grpc()}), label("a")), vec![]),
        (
            // A label of the outer backend is visible everywhere inside.
            with(
                json!({"a": grpc()}),
                with(json!({"b": label("a")}), label("a")),
            ),
            vec![],
        ),
        (
            label("a"),
            vec![format!(
                "{path}.label: no withLabels around it declares the label \"a\""
            )],
        ),
        (
            with(json!({"a": grpc()}), label("b")),
            vec![format!(
                "{path}.withLabels.backend.label: no withLabels around it declares the label \"b\""
            )],
        ),
        (
            // Those of one backend do not see each other.
            with(json!({"a": grpc(), "b": label("a")}), label("b")),
            vec![format!(
                "{path}.withLabels.labels[\"b\"].label: no withLabels around it declares the label \"a\""
            )],
        ),
        (
            with(json!({"a": grpc()}), with(json!({"a": grpc()}), label("a"))),
            vec![format!(
                "{path}.withLabels.backend.withLabels.labels[\"a\"]: the label \"a\" is declared around it already"
            )],
        ),
    ] {
        assert_eq!(after(pointer, backend.clone()), expected, "{backend}");
    }
}

#[test]
fn credentials_of_a_peer_exclude_encryption() {
    let peer = json!({"peerCredentialsJmespathExpression": {"expression": "`{}`"}});
    let server = |policy: &Value, extra: (&str, Value)| {
        let mut server = json!({"listenPaths": ["/s"], "authenticationPolicy": policy});
        server[extra.0] = extra.1;
        after("/grpcServers", json!([server]))
    };
    let none = ("stopGracefully", json!(true));
    let tls = ("tls", json!({"serverKeyPair": {}}));
    assert_eq!(server(&peer, none), [""; 0]);
    let field = "authenticationPolicy.peerCredentialsJmespathExpression";
    let expected = format!("grpcServers[0].{field}: excludes grpcServers[0].tls");
    assert_eq!(server(&peer, tls.clone()), [expected]);
    assert_eq!(server(&peer, ("alts", json!({}))).len(), 1);
    let any = json!({"any": {"policies": [{"allow": {}}, peer]}});
    let expected = "grpcServers[0].authenticationPolicy.any.policies[1].peerCredentialsJmespathExpression: \
         excludes grpcServers[0].tls";
    assert_eq!(server(&any, tls.clone()), [expected]);
    assert_eq!(server(&json!({"allow": {}}), tls), [""; 0]);
}

#[test]
fn expressions_have_to_compile() {
    let pointer = "/contentAddressableStorage/getAuthorizer";
    let path = "contentAddressableStorage.getAuthorizer.jmespathExpression.expression";
    for (expression, compiles) in [
        ("`true`", true),
        (
            "a == 'it\\'s' && contains(['a', 'b'], instanceName) || !b.c",
            true,
        ),
        ("{\"public\": @, \"private\": files.token}", true),
        (
            "groups[?name == 'ci' && size > `1`] | [0].{a: b, c: [d, e]}",
            true,
        ),
        ("a.*.b[*].c[][?d].e[-1] | sort_by(@, &f)[::-1]", true),
        ("*", true),
        ("[*].a[1:2].\"b c\"", true),
        ("{\"a-bin\": b.\"a-bin\"}", true),
        ("length(a)", true),
        ("f()", true),
        ("(a || b) && c", true),
        ("", false),
        ("a.", false),
        ("a b", false),
        ("contains(a, 'b'", false),
        ("contains(a 'b')", false),
        ("\"f\"(a)", false),
        ("a == = b", false),
        ("a = b", false),
        ("`{`", false),
        ("a[b]", false),
        ("a.[1", false),
        ("{a}", false),
        ("[?a", false),
        ("'open", false),
        ("a.#", false),
        ("a.`1`", false),
        ("1", false),
    ] {
        let authorizer = json!({"jmespathExpression": {"expression": expression}});
        let findings = after(pointer, authorizer);
        let expected = format!("{path}: is no ");
        let named = findings.iter().filter(|it| it.starts_with(&expected));
        let found = (named.count(), findings.len());
        let count = usize::from(!compiles);
        assert_eq!(found, (count, count), "{expression}: {findings:?}");
    }
    let findings = after(
        pointer,
        json!({"jmespathExpression": {"expression": "a == = b"}}),
    );
    let expected = format!("{path}: is no JMESPath expression from character 6 on");
    assert_eq!(findings, [expected]);
    // One that is nested without an end is left to the program.
    let endless = "(".repeat(1 << 20);
    let authorizer = json!({"jmespath_expression": {"expression": endless}});
    assert_eq!(after(pointer, authorizer), [""; 0]);
}
