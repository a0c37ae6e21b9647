//! Forms of older configurations, and what replaced them.

use serde_json::Value;

use super::check::json_name;

/// An older form: in which messages, which field, and what to write instead.
struct OlderForm {
    /// The end of the name of the message.
    message: &'static str,
    /// The field.
    field: &'static str,
    /// What replaced it, and when.
    replacement: &'static str,
}

const fn form(message: &'static str, field: &'static str, replacement: &'static str) -> OlderForm {
    OlderForm {
        message,
        field,
        replacement,
    }
}

const OLDER_FORMS: &[OlderForm] = &[
    form(
        "PlatformKeyExtractorConfiguration",
        "actionAndCommand",
        "removed on 2026-03-26: use \"action\"; clients have to speak REv2.2 or newer",
    ),
    form(
        "bb_worker.ApplicationConfiguration",
        "supportLegacyOutputFilesAndDirectories",
        "removed on 2026-03-26: delete it; clients have to speak REv2.2 or newer",
    ),
    form(
        "GrpcBlobAccessConfiguration",
        "*",
        "since 2026-03-02 the fields of the connection are in \"grpc.client\": \
         { grpc: { client: { address: … } } }",
    ),
    form(
        "ShardingBlobAccessConfiguration",
        "legacy",
        "removed on 2026-01-02: delete it, and expect that blobs move once",
    ),
    form(
        "ShardingBlobAccessConfiguration",
        "hashInitialization",
        "removed on 2025-04-08: shards have keys, which are their identity",
    ),
    form(
        "ShardingBlobAccessConfiguration",
        "shards",
        "since 2025-04-08 shards are a map from key to shard: { shards: { \"0\": { backend: …, weight: 1 } } }",
    ),
    form(
        "ShardingBlobAccessConfiguration.Shard",
        "shards",
        "since 2025-04-08 shards are a map from key to shard: { shards: { \"0\": { backend: …, weight: 1 } } }",
    ),
    form(
        "grpc.ClientConfiguration",
        "oauth",
        "renamed on 2025-09-26: use \"oauth2\"",
    ),
    form(
        "http.client.Configuration",
        "oauth",
        "renamed on 2025-09-26: use \"oauth2\"",
    ),
    form(
        "grpc.ClientConfiguration",
        "forwardMetadata",
        "removed on 2022-07-13: use \"addMetadataJmespathExpression\"",
    ),
    form(
        "FilePoolConfiguration",
        "inMemory",
        "removed on 2025-05-26: use \"blockDevice\"",
    ),
    form(
        "FilePoolConfiguration",
        "directoryPath",
        "removed on 2025-05-26: use \"blockDevice\"",
    ),
    form(
        "FUSEMountConfiguration",
        "directMount",
        "replaced on 2024-12-15: use \"mountMethod\": \"DIRECT\"",
    ),
    form(
        "PrefetchingConfiguration",
        "downloadConcurrency",
        "removed on 2024-07-15: use \"inputDownloadConcurrency\" of the worker",
    ),
    form(
        "PredeclaredPlatformQueueConfiguration",
        "maximumSizeClass",
        "replaced on 2024-06-04: use \"sizeClasses\", a list in ascending order",
    ),
    form(
        "BlobAccessConfiguration",
        "redis",
        "removed on 2023-10-08: use \"local\" or \"grpc\"",
    ),
    form(
        "BlobAccessConfiguration",
        "sizeDistinguishing",
        "removed on 2023-10-08: use one backend for all sizes",
    ),
    form(
        "BlobAccessConfiguration",
        "http",
        "removed on 2023-12-16: use \"grpc\"",
    ),
    form(
        "BlobAccessConfiguration",
        "circular",
        "removed in 2020-09: use \"local\"",
    ),
    form(
        "BlobAccessConfiguration",
        "cloud",
        "removed in 2020-09: use \"local\", or \"referenceExpanding\" to read from S3 and GCS",
    ),
    form(
        "InitialSizeClassFeedbackDrivenAnalyzerConfiguration",
        "acceptableExecutionTimeIncreaseExponent",
        "moved on 2023-10-10: the options of the page rank are in \"pageRank\"",
    ),
    form(
        "InitialSizeClassFeedbackDrivenAnalyzerConfiguration",
        "smallerSizeClassExecutionTimeoutMultiplier",
        "moved on 2023-10-10: the options of the page rank are in \"pageRank\"",
    ),
    form(
        "InitialSizeClassFeedbackDrivenAnalyzerConfiguration",
        "minimumExecutionTimeout",
        "moved on 2023-10-10: the options of the page rank are in \"pageRank\"",
    ),
    form(
        "InitialSizeClassFeedbackDrivenAnalyzerConfiguration",
        "maximumConvergenceError",
        "moved on 2023-10-10: the options of the page rank are in \"pageRank\"",
    ),
    form(
        "global.DiagnosticsHTTPServerConfiguration",
        "listenAddress",
        "replaced on 2023-08-30: use \"httpServers\": [{ listenAddresses: [\":9980\"], authenticationPolicy: { allow: {} } }]",
    ),
    form(
        "global.Configuration",
        "diagnosticsHttpListenAddress",
        "replaced: use \"diagnosticsHttpServer\" with \"httpServers\"",
    ),
    form(
        "bb_scheduler.ApplicationConfiguration",
        "adminHttpListenAddress",
        "replaced on 2023-08-29: use \"adminHttpServers\": [{ listenAddresses: [\":7982\"], authenticationPolicy: { allow: {} } }]",
    ),
    form(
        "bb_scheduler.ApplicationConfiguration",
        "httpListenAddress",
        "replaced on 2023-08-29: use \"adminHttpServers\": [{ listenAddresses: [\":7982\"], authenticationPolicy: { allow: {} } }]",
    ),
    form(
        "bb_browser.ApplicationConfiguration",
        "listenAddress",
        "replaced on 2023-08-29: use \"httpServers\": [{ listenAddresses: [\":7984\"], authenticationPolicy: { allow: {} } }]",
    ),
    form(
        "bb_scheduler.ApplicationConfiguration",
        "blobstore",
        "replaced: use \"contentAddressableStorage\", the only store that a scheduler reads",
    ),
    form(
        "bb_scheduler.ApplicationConfiguration",
        "defaultExecutionTimeout",
        "moved on 2021-12-01: use \"actionRouter.simple.initialSizeClassAnalyzer.defaultExecutionTimeout\"",
    ),
    form(
        "bb_scheduler.ApplicationConfiguration",
        "maximumExecutionTimeout",
        "moved on 2021-12-01: use \"actionRouter.simple.initialSizeClassAnalyzer.maximumExecutionTimeout\"",
    ),
    form(
        "tls.ServerConfiguration",
        "serverCertificate",
        "replaced on 2022-11-03: use \"serverKeyPair\": { files: { certificatePath: …, privateKeyPath: …, refreshInterval: \"3600s\" } }",
    ),
    form(
        "tls.ServerConfiguration",
        "serverPrivateKey",
        "replaced on 2022-11-03: use \"serverKeyPair\": { files: { certificatePath: …, privateKeyPath: …, refreshInterval: \"3600s\" } }",
    ),
    form(
        "tls.ClientConfiguration",
        "clientCertificate",
        "replaced on 2022-11-03: use \"clientKeyPair\"",
    ),
    form(
        "tls.ClientConfiguration",
        "clientPrivateKey",
        "replaced on 2022-11-03: use \"clientKeyPair\"",
    ),
    form(
        "bb_storage.ApplicationConfiguration",
        "blobstore",
        "replaced on 2022-02-28: each store is a field, such as \"contentAddressableStorage\": { backend: …, getAuthorizer: …, putAuthorizer: …, findMissingAuthorizer: … }",
    ),
    form(
        "bb_storage.ApplicationConfiguration",
        "contentAddressableStorageAuthorizers",
        "replaced on 2022-02-28: the authorizers are in \"contentAddressableStorage\"",
    ),
    form(
        "bb_storage.ApplicationConfiguration",
        "actionCacheAuthorizers",
        "replaced on 2022-02-28: the authorizers are in \"actionCache\"",
    ),
    form(
        "ApplicationConfiguration",
        "diagnosticsHttpServer",
        "is in \"global\"",
    ),
    form(
        "bb_worker.ApplicationConfiguration",
        "buildExecutor",
        "is no longer a level of its own: use \"buildDirectories\" of the worker",
    ),
];

/// What replaced an older form: a field that does not exist any more, or a `value` of an older type.
/// `message` is the one that the field belongs to, or that the value should have been.
pub fn older_form(message: &str, field: &str, value: &Value) -> Option<String> {
    let name = json_name(field);
    if message.ends_with("jmespath.Expression") {
        let text = value.as_str()?;
        return Some(format!(
            "since 2025-08-11 an expression is an object: {{ expression: {} }}",
            Value::from(text)
        ));
    }
    if message.ends_with("http.server.Configuration") && value.is_string() {
        let replacement = "since 2023-08-30 servers are lists with authentication: \
             [{ listenAddresses: [\":9980\"], authenticationPolicy: { allow: {} } }]";
        return Some(replacement.to_owned());
    }
    let found = OLDER_FORMS
        .iter()
        .filter(|form| message.ends_with(form.message));
    let mut found = found.filter(|form| {
        let any = form.field == "*" && is_connection_field(&name);
        any || form.field == name
    });
    found.next().map(|form| form.replacement.to_owned())
}

/// Fields of a connection, which were directly in `grpc` until 2026-03-02.
fn is_connection_field(name: &str) -> bool {
    let fields = [
        "address",
        "tls",
        "keepalive",
        "addMetadata",
        "addMetadataJmespathExpression",
        "oauth",
        "oauth2",
        "proxyUrl",
    ];
    fields.contains(&name)
}
