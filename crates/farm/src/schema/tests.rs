use serde_json::{Value, json};

use super::*;

fn findings(program: Program, value: &Value) -> Vec<String> {
    let schema = Schema::of(SchemaVersion::Newest);
    let findings = check(schema, program, value);
    findings.iter().map(ToString::to_string).collect()
}

#[test]
fn both_versions_have_all_programs() {
    for version in [SchemaVersion::Newest, SchemaVersion::March2026] {
        let schema = Schema::of(version);
        for program in [
            Program::Storage,
            Program::Scheduler,
            Program::Worker,
            Program::Runner,
            Program::Browser,
        ] {
            assert!(
                schema.message(program.message()).is_some(),
                "{version:?} {program:?}"
            );
        }
        assert!(schema.messages().count() > 80);
    }
}

#[test]
fn the_tag_of_an_image_says_which_schema_it_reads() {
    use TagVersion::{Known, TooOld, Unknown};
    for (image, version) in [
        (
            "ghcr.io/buildbarn/bb-worker:20260527T162223Z-c48dcda",
            Known(SchemaVersion::Newest),
        ),
        (
            "ghcr.io/buildbarn/bb-worker:20260319T042723Z-cd89f05",
            Known(SchemaVersion::March2026),
        ),
        (
            "bb-worker:20260319T042723Z-cd89f05@sha256:00",
            Known(SchemaVersion::March2026),
        ),
        (
            "bb-worker:20250829T000000Z-0123456",
            TooOld("2025-08-29".to_owned()),
        ),
        (
            "localhost:5000/bb-worker:latest",
            Unknown("latest".to_owned()),
        ),
        ("localhost:5000/bb-worker", Unknown("latest".to_owned())),
        (
            "bb-worker:20260527T16222éZ-c48dcda",
            Unknown("20260527T16222éZ-c48dcda".to_owned()),
        ),
    ] {
        assert_eq!(version_of(image), version, "{image}");
    }
}

#[test]
fn what_readers_accept_is_accepted() {
    for value in [
        json!({"maximumMessageSizeBytes": 2}),
        json!({"maximum_message_size_bytes": "2"}),
        json!({"maximumMessageSizeBytes": 2.0}),
        json!({"grpcServers": null}),
        json!({"supportedCompressors": ["ZSTD", 1]}),
        json!({"grpc_servers": [{"listen_addresses": [":1"]}]}),
    ] {
        assert_eq!(findings(Program::Storage, &value), [""; 0], "{value}");
    }
}

#[test]
fn what_readers_refuse_is_found_with_its_path() {
    for (value, finding) in [
        (
            json!({"grpcServer": []}),
            "grpcServer: is no field of bb_storage.ApplicationConfiguration; did you mean \"grpcServers\"?",
        ),
        (
            json!({"grpcServers": {}}),
            "grpcServers: is an object, and has to be a list",
        ),
        (
            json!({"grpcServers": [null]}),
            "grpcServers[0]: is null, which an element cannot be",
        ),
        (
            json!({"maximumMessageSizeBytes": 1.5}),
            "maximumMessageSizeBytes: is 1.5, and has to be a whole number",
        ),
        (
            json!({"maximumMessageSizeBytes": 1, "maximum_message_size_bytes": 1}),
            "maximum_message_size_bytes: is the same field as \"maximumMessageSizeBytes\"",
        ),
        (
            json!({"supportedCompressors": ["LZ4"]}),
            "supportedCompressors[0]: is \"LZ4\"; use one of BROTLI, DEFLATE, IDENTITY, ZSTD",
        ),
        (
            json!({"executeAuthorizer": {"allow": {}, "deny": {}}}),
            "executeAuthorizer: \"allow\" and \"deny\" exclude each other; keep one of them",
        ),
        (
            json!({"executeAuthorizer": {"allow": {"x": 1}}}),
            "executeAuthorizer.allow: is an object, and has to be an empty object: {}",
        ),
    ] {
        assert_eq!(findings(Program::Storage, &value), [finding], "{value}");
    }
}

#[test]
fn durations_are_seconds() {
    let timeout = |text: &str| json!({"platformQueueWithNoWorkersTimeout": text});
    for text in ["900s", "0.5s", "-3s", "1.000000001s"] {
        assert_eq!(
            findings(Program::Scheduler, &timeout(text)),
            [""; 0],
            "{text}"
        );
    }
    for text in ["15m", "900", "s", "1.s", "1.0000000001s", "1e3s", ""] {
        assert_eq!(
            findings(Program::Scheduler, &timeout(text)).len(),
            1,
            "{text}"
        );
    }
    let number = json!({"platformQueueWithNoWorkersTimeout": 900});
    assert_eq!(findings(Program::Scheduler, &number).len(), 1);
    assert_eq!(duration("1.5s"), Some(1_500_000_000));
}

/// Every older form of the history, and a word of what replaced it.
#[expect(clippy::too_many_lines, reason = "a table")]
fn older_forms() -> Vec<(Program, Value, &'static str)> {
    let grpc = |value: Value| json!({"contentAddressableStorage": {"backend": value}});
    vec![
        (
            Program::Scheduler,
            json!({"actionRouter": {"simple": {"platformKeyExtractor": {"actionAndCommand": {}}}}}),
            "use \"action\"",
        ),
        (
            Program::Worker,
            json!({"supportLegacyOutputFilesAndDirectories": true}),
            "removed on 2026-03-26",
        ),
        (
            Program::Storage,
            grpc(json!({"grpc": {"address": "a:1"}})),
            "grpc.client",
        ),
        (
            Program::Storage,
            grpc(json!({"sharding": {"legacy": {}}})),
            "removed on 2026-01-02",
        ),
        (
            Program::Storage,
            grpc(json!({"grpc": {"client": {"address": "a:1", "oauth": {}}}})),
            "use \"oauth2\"",
        ),
        (
            Program::Storage,
            grpc(
                json!({"grpc": {"client": {"address": "a:1", "addMetadataJmespathExpression": "{}"}}}),
            ),
            "an expression is an object",
        ),
        (
            Program::Browser,
            json!({"requestMetadataLinksJmespathExpression": "`{}`"}),
            "an expression is an object",
        ),
        (
            Program::Worker,
            json!({"filePool": {"inMemory": {}}}),
            "use \"blockDevice\"",
        ),
        (
            Program::Worker,
            json!({"filePool": {"directoryPath": "/tmp"}}),
            "use \"blockDevice\"",
        ),
        (
            Program::Storage,
            grpc(json!({"sharding": {"shards": [{"weight": 1}]}})),
            "shards are a map",
        ),
        (
            Program::Storage,
            grpc(json!({"sharding": {"hashInitialization": 1}})),
            "shards have keys",
        ),
        (
            Program::Worker,
            json!({"buildDirectories": [{"virtual": {"mount": {"fuse": {"directMount": true}}}}]}),
            "mountMethod",
        ),
        (
            Program::Worker,
            json!({"prefetching": {"downloadConcurrency": 10}}),
            "inputDownloadConcurrency",
        ),
        (
            Program::Scheduler,
            json!({"predeclaredPlatformQueues": [{"maximumSizeClass": 4}]}),
            "sizeClasses",
        ),
        (
            Program::Storage,
            grpc(json!({"http": {}})),
            "removed on 2023-12-16",
        ),
        (
            Program::Storage,
            grpc(json!({"redis": {}})),
            "removed on 2023-10-08",
        ),
        (
            Program::Storage,
            grpc(json!({"sizeDistinguishing": {}})),
            "removed on 2023-10-08",
        ),
        (
            Program::Scheduler,
            json!({"actionRouter": {"simple": {"initialSizeClassAnalyzer": {"feedbackDriven": {
                "minimumExecutionTimeout": "10s",
            }}}}}),
            "pageRank",
        ),
        (
            Program::Scheduler,
            json!({"adminHttpListenAddress": ":7982"}),
            "adminHttpServers",
        ),
        (
            Program::Browser,
            json!({"listenAddress": ":7984"}),
            "httpServers",
        ),
        (
            Program::Storage,
            json!({"global": {"diagnosticsHttpServer": {"listenAddress": ":9980"}}}),
            "httpServers",
        ),
        (
            Program::Storage,
            json!({"diagnosticsHttpServer": {}}),
            "is in \"global\"",
        ),
        (
            Program::Storage,
            json!({"grpcServers": [{"tls": {"serverCertificate": "x"}}]}),
            "serverKeyPair",
        ),
        (
            Program::Storage,
            grpc(json!({"grpc": {"client": {"forwardMetadata": ["x"]}}})),
            "addMetadataJmespathExpression",
        ),
        (
            Program::Storage,
            json!({"blobstore": {}}),
            "each store is a field",
        ),
        (
            Program::Scheduler,
            json!({"defaultExecutionTimeout": "1s"}),
            "actionRouter",
        ),
        (
            Program::Storage,
            grpc(json!({"circular": {}})),
            "use \"local\"",
        ),
        (
            Program::Storage,
            grpc(json!({"cloud": {}})),
            "referenceExpanding",
        ),
    ]
}

#[test]
fn older_forms_are_named_with_what_replaced_them() {
    for (program, value, replacement) in older_forms() {
        let found = findings(program, &value);
        let named = found.iter().any(|finding| finding.contains(replacement));
        assert!(named, "{value}: {found:?}");
    }
}

#[test]
fn what_an_image_of_march_2026_still_reads_is_accepted_for_it() {
    let schema = Schema::of(SchemaVersion::March2026);
    let value = json!({"supportLegacyOutputFilesAndDirectories": true});
    assert_eq!(check(schema, Program::Worker, &value), []);
}

#[test]
fn a_configuration_that_nests_without_an_end_is_refused() {
    let mut value = json!({"error": {}});
    for _ in 0..100 {
        value = json!({"hierarchicalInstanceNames": value});
    }
    let value = json!({"contentAddressableStorage": {"backend": value}});
    let found = findings(Program::Storage, &value);
    assert!(found[0].contains("nested too deeply"), "{found:?}");
}
