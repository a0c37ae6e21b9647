//! The configuration of each program.

use serde_json::{Map, Value, json};

use super::{
    FarmSettings, RenderedFiles,
    access::{authorizer, policy, tls},
    address, global,
    jsonnet_text::{code, literal},
};
use crate::{
    api::{
        BuildbarnBrowserSpec, BuildbarnFrontendSpec, BuildbarnSchedulerSpec, BuildbarnStorageSpec,
        BuildbarnWorkerSpec, Execution, ListenOn, PlatformProperty, PodOptions, StoreGeometry,
        parse_quantity, ports,
    },
    platform::{ordered, platform},
    schema::Program,
};

/// Forwards what Bazel says about the action that a request is for.
const FORWARD_REQUEST_METADATA: &str = "{\"build.bazel.remote.execution.v2.requestmetadata-bin\": incomingGRPCMetadata.\"build.bazel.remote.execution.v2.requestmetadata-bin\"}";

fn listen_on(pod: Option<&PodOptions>) -> ListenOn {
    pod.map_or(ListenOn::AllAddresses, |pod| pod.listen_on)
}

fn grpc_server(listen: ListenOn, port: u16) -> Value {
    json!([{
        "listenAddresses": [address(listen, port)],
        "authenticationPolicy": {"allow": {}},
    }])
}

fn http_server(listen: ListenOn, port: u16) -> Value {
    grpc_server(listen, port)
}

/// bb_storage as a shard. The stores are those that have a volume.
pub fn storage(
    spec: &BuildbarnStorageSpec,
    settings: &FarmSettings,
    volumes: &[String],
) -> RenderedFiles {
    let listen = listen_on(spec.pod.as_ref());
    let common = settings.common(listen);
    let mut value = json!({
        "grpcServers": grpc_server(listen, ports::STORAGE),
        "maximumMessageSizeBytes": code("common.maximumMessageSizeBytes"),
        "global": code("common.global"),
    });
    for (volume, field) in [
        ("cas", "contentAddressableStorage"),
        ("ac", "actionCache"),
        ("fsac", "fileSystemAccessCache"),
    ] {
        let Some(geometry) = geometry(spec, volume) else {
            continue;
        };
        if !volumes.iter().any(|it| it == volume) {
            continue;
        }
        value[field] = json!({
            "backend": {"local": local(volume, geometry)},
            "getAuthorizer": {"allow": {}},
            "putAuthorizer": {"allow": {}},
        });
        if volume == "cas" {
            value[field]["findMissingAuthorizer"] = json!({"allow": {}});
        }
    }
    let file = (Program::Storage, "storage.jsonnet".to_owned(), value);
    RenderedFiles::new(Some(&common), vec![file])
}

/// The geometry of a store; none if its sizes are no quantities.
pub(crate) fn geometry(spec: &BuildbarnStorageSpec, volume: &str) -> Option<StoreGeometry> {
    let stores = spec.stores.as_ref();
    let (store, defaults) = match volume {
        "cas" => (stores.and_then(|it| it.cas.as_ref()), StoreGeometry::CAS),
        "ac" => (stores.and_then(|it| it.ac.as_ref()), StoreGeometry::AC),
        _ => (stores.and_then(|it| it.fsac.as_ref()), StoreGeometry::AC),
    };
    StoreGeometry::of(store, defaults)
}

fn local(volume: &str, geometry: StoreGeometry) -> Value {
    let folder = format!("/storage-{volume}");
    json!({
        "keyLocationMapOnBlockDevice": {"file": {
            "path": format!("{folder}/key_location_map"),
            "sizeBytes": geometry.index_size,
        }},
        "keyLocationMapMaximumGetAttempts": 16,
        "keyLocationMapMaximumPutAttempts": 64,
        "oldBlocks": geometry.old_blocks,
        "currentBlocks": geometry.current_blocks,
        "newBlocks": geometry.new_blocks,
        "blocksOnBlockDevice": {
            "source": {"file": {
                "path": format!("{folder}/blocks"),
                "sizeBytes": geometry.size,
            }},
            "spareBlocks": geometry.spare_blocks,
        },
        "persistent": {
            "stateDirectoryPath": format!("{folder}/persistent_state"),
            "minimumEpochInterval": "300s",
        },
    })
}

/// bb_scheduler.
pub fn scheduler(
    name: &str,
    spec: &BuildbarnSchedulerSpec,
    settings: &FarmSettings,
) -> RenderedFiles {
    let listen = listen_on(spec.pod.as_ref());
    let common = settings.common(listen);
    let seconds = |seconds: i64| format!("{seconds}s");
    let execution = spec.execution.as_ref();
    let queues = spec.predeclared_queues.iter().map(|queue| {
        let classes = if queue.size_classes.is_empty() {
            vec![0]
        } else {
            queue.size_classes.clone()
        };
        json!({
            "instanceNamePrefix": literal(queue.instance_name_prefix.as_deref().unwrap_or_default()),
            "platform": properties(&queue.platform),
            "sizeClasses": classes,
        })
    });
    let value = json!({
        "adminHttpServers": http_server(listen, ports::SCHEDULER_HTTP),
        "clientGrpcServers": grpc_server(listen, ports::SCHEDULER_CLIENT),
        "workerGrpcServers": grpc_server(listen, ports::SCHEDULER_WORKER),
        "buildQueueStateGrpcServers": grpc_server(listen, ports::BUILD_QUEUE_STATE),
        "browserUrl": code("common.browserUrl"),
        "contentAddressableStorage": code("common.blobstore.contentAddressableStorage"),
        "maximumMessageSizeBytes": code("common.maximumMessageSizeBytes"),
        "global": code("common.global"),
        "executeAuthorizer": {"allow": {}},
        "modifyDrainsAuthorizer": {"allow": {}},
        "killOperationsAuthorizer": {"allow": {}},
        "synchronizeAuthorizer": {"allow": {}},
        "actionRouter": {"simple": {
            "platformKeyExtractor": {"action": {}},
            "invocationKeyExtractors": [{"correlatedInvocationsId": {}}, {"toolInvocationId": {}}],
            "initialSizeClassAnalyzer": {
                "defaultExecutionTimeout": seconds(Execution::default_seconds(execution)),
                "maximumExecutionTimeout": seconds(Execution::maximum_seconds(execution)),
            },
        }},
        "platformQueueWithNoWorkersTimeout": seconds(spec.no_workers_timeout_seconds.unwrap_or(900)),
        "predeclaredPlatformQueues": queues.collect::<Value>(),
    });
    let file = (Program::Scheduler, format!("{name}.jsonnet"), value);
    RenderedFiles::new(Some(&common), vec![file])
}

fn properties(platform: &[PlatformProperty]) -> Value {
    let properties = ordered(platform).into_iter().map(
        |property| json!({"name": literal(&property.name), "value": literal(&property.value)}),
    );
    json!({"properties": properties.collect::<Value>()})
}

/// bb_worker and bb_runner. `scheduler` is the name of the scheduler.
#[expect(
    clippy::too_many_lines,
    reason = "the configuration of a worker, in its own order"
)]
pub fn worker(
    spec: &BuildbarnWorkerSpec,
    settings: &FarmSettings,
    scheduler: &str,
) -> RenderedFiles {
    let listen = listen_on(spec.pod.as_ref());
    let common = settings.common(listen);
    let instance = spec.instance_name();
    let cache_size = spec.cache_size.as_deref().and_then(parse_quantity);
    let environment: Map<_, _> = spec
        .environment_variables
        .iter()
        .map(|(name, value)| (name.clone(), literal(value)))
        .collect();
    let port = ports::SCHEDULER_WORKER;
    let mut process = global(listen, ports::DIAGNOSTICS);
    process["setUmask"] = json!({"umask": 0});
    let mut value = json!({
        "blobstore": code("common.blobstore"),
        "browserUrl": code("common.browserUrl"),
        "maximumMessageSizeBytes": code("common.maximumMessageSizeBytes"),
        "scheduler": {"address": format!("{scheduler}.{}:{port}", settings.namespace)},
        "global": process,
        "buildDirectories": [{
            "native": {
                "buildDirectoryPath": "/worker/build",
                "cacheDirectoryPath": "/worker/cache",
                "maximumCacheFileCount": spec.cache_file_count.unwrap_or(10_000),
                "maximumCacheSizeBytes": cache_size.unwrap_or(1 << 30),
                "cacheReplacementPolicy": "LEAST_RECENTLY_USED",
            },
            "runners": [{
                "endpoint": {"address": "unix:///worker/runner"},
                "concurrency": spec.concurrency.unwrap_or(8),
                "instanceNamePrefix": literal(spec.instance_name_prefix.as_deref().unwrap_or_default()),
                "platform": properties(&platform(spec)),
                "sizeClass": spec.size_class.unwrap_or(0),
                "workerId": {
                    "pod": code("std.extVar('POD_NAME')"),
                    "node": code("std.extVar('NODE_NAME')"),
                },
                "environmentVariables": environment,
            }],
        }],
        "inputDownloadConcurrency": spec.input_download_concurrency.unwrap_or(10),
        "outputUploadConcurrency": spec.output_upload_concurrency.unwrap_or(11),
        "directoryCache": {
            "maximumCount": 1000,
            "maximumSizeBytes": 1000 << 10,
            "cacheReplacementPolicy": "LEAST_RECENTLY_USED",
        },
    });
    if spec.legacy_outputs {
        value["supportLegacyOutputFilesAndDirectories"] = true.into();
    }
    let runner = json!({
        "buildDirectoryPath": "/worker/build",
        "grpcServers": [{
            "listenPaths": ["/worker/runner"],
            "authenticationPolicy": {"allow": {}},
            // An action that runs when the pod is stopped is finished.
            "stopGracefully": true,
        }],
        "global": global(listen, ports::RUNNER_DIAGNOSTICS),
    });
    let files = vec![
        (Program::Worker, format!("worker-{instance}.jsonnet"), value),
        (
            Program::Runner,
            format!("runner-{instance}.jsonnet"),
            runner,
        ),
    ];
    RenderedFiles::new(Some(&common), files)
}

/// bb_storage as the frontend.
pub fn frontend(spec: &BuildbarnFrontendSpec, settings: &FarmSettings) -> RenderedFiles {
    let listen = listen_on(spec.pod.as_ref());
    let common = settings.common(listen);
    let access = spec.access.as_ref();
    let mut server = json!({
        "listenAddresses": [address(listen, ports::FRONTEND)],
        "authenticationPolicy": policy(access),
    });
    if let Some(tls) = tls(access) {
        server["tls"] = tls;
    }
    let schedulers: Map<_, _> = settings
        .schedulers
        .iter()
        .map(|(prefix, name)| {
            let port = ports::SCHEDULER_CLIENT;
            let mut scheduler = json!({"endpoint": {
                "address": format!("{name}.{}:{port}", settings.namespace),
                "addMetadataJmespathExpression": {"expression": FORWARD_REQUEST_METADATA},
            }});
            if !prefix.is_empty() {
                scheduler["addInstanceNamePrefix"] = literal(prefix);
            }
            (prefix.clone(), scheduler)
        })
        .collect();
    let read = authorizer(access.and_then(|it| it.read.as_ref()), false);
    let write = authorizer(access.and_then(|it| it.write.as_ref()), false);
    let result = access.and_then(|it| it.action_cache_write.as_ref());
    let value = json!({
        "grpcServers": [server],
        "schedulers": schedulers,
        "maximumMessageSizeBytes": code("common.maximumMessageSizeBytes"),
        "global": code("common.global"),
        "contentAddressableStorage": {
            "backend": code("common.blobstore.contentAddressableStorage"),
            "getAuthorizer": read,
            "putAuthorizer": write,
            "findMissingAuthorizer": read,
        },
        "actionCache": {
            "backend": code("common.blobstore.actionCache"),
            "getAuthorizer": read,
            "putAuthorizer": authorizer(result, true),
        },
        "executeAuthorizer": authorizer(access.and_then(|it| it.execute.as_ref()), false),
    });
    let file = (Program::Storage, "frontend.jsonnet".to_owned(), value);
    RenderedFiles::new(Some(&common), vec![file])
}

/// bb_browser.
pub fn browser(spec: &BuildbarnBrowserSpec, settings: &FarmSettings) -> RenderedFiles {
    let listen = listen_on(spec.pod.as_ref());
    let common = settings.common(listen);
    let value = json!({
        "blobstore": code("common.blobstore"),
        "maximumMessageSizeBytes": code("common.maximumMessageSizeBytes"),
        "httpServers": http_server(listen, ports::BROWSER),
        "global": code("common.global"),
        "authorizer": {"allow": {}},
        "requestMetadataLinksJmespathExpression": {"expression": "`{}`"},
    });
    let file = (Program::Browser, "browser.jsonnet".to_owned(), value);
    RenderedFiles::new(Some(&common), vec![file])
}
