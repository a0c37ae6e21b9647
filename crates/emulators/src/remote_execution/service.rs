//! The calls of the services.

mod byte_stream;

use std::{future::Future, sync::Arc};

use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use http::{Request, Response};
use neap_kit::client::Body;
use prost::Message;
use tonic::{Code, Status, Streaming, server::Grpc};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::{
    RemoteExecution,
    executor::NewExecution,
    messages::{
        ActionCacheUpdateCapabilities, ActionResult, BatchReadBlobsRequest, BatchReadBlobsResponse,
        BatchUpdateBlobsRequest, BatchUpdateBlobsResponse, BlobContent, BlobUpdateResult,
        CacheCapabilities, ExecuteRequest, ExecutionCapabilities, FindMissingBlobsRequest,
        FindMissingBlobsResponse, GetActionResultRequest, GetCapabilitiesRequest, GetTreeRequest,
        GetTreeResponse, LongRunningOperation, RpcStatus, SHA256, SemVer, ServerCapabilities,
        SynchronizeRequest, UpdateActionResultRequest, WaitExecutionRequest,
    },
    store::{MAX_BLOB_BYTES, valid},
};
use crate::system::System;

/// The sum of the blobs of a batch.
const MAX_BATCH_BYTES: i64 = 3 << 20;
/// The number of directories of a page, if the client does not say.
const PAGE: usize = 1000;

type Updates = BoxStream<'static, Result<LongRunningOperation, Status>>;

pub(super) async fn respond(farm: Arc<RemoteExecution>, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let method = path.strip_prefix("/build.bazel.remote.execution.v2.");
    match method.unwrap_or(&path) {
        "Capabilities/GetCapabilities" => {
            unary(request, |_: GetCapabilitiesRequest| Ok(capabilities())).await
        }
        "ContentAddressableStorage/FindMissingBlobs" => {
            unary(request, |it| farm.find_missing(it)).await
        }
        "ContentAddressableStorage/BatchUpdateBlobs" => {
            unary(request, |it| Ok(farm.batch_update(it))).await
        }
        "ContentAddressableStorage/BatchReadBlobs" => {
            unary(request, |it| farm.batch_read(it)).await
        }
        "ContentAddressableStorage/GetTree" => {
            streamed(request, |it| farm.get_tree(it).map(stream::iter)).await
        }
        "ActionCache/GetActionResult" => unary(request, |it| farm.get_result(it)).await,
        "ActionCache/UpdateActionResult" => unary(request, |it| farm.update_result(it)).await,
        "Execution/Execute" => streamed(request, |it| farm.execute(it)).await,
        "Execution/WaitExecution" => {
            streamed(
                request,
                |it: WaitExecutionRequest| Ok(farm.updates(it.name)),
            )
            .await
        }
        "/google.bytestream.ByteStream/Read" => {
            streamed(request, |it| farm.read(&it).map(stream::iter)).await
        }
        "/google.bytestream.ByteStream/Write" => {
            received(request, |it| byte_stream::write(farm.clone(), it)).await
        }
        "/google.bytestream.ByteStream/QueryWriteStatus" => {
            unary(request, |it| farm.write_status(&it)).await
        }
        "/buildbarn.remoteworker.OperationQueue/Synchronize" => {
            awaited(request, |it: SynchronizeRequest| {
                let executor = farm.executor.clone();
                async move { executor.synchronize(it).await }
            })
            .await
        }
        path if path.starts_with("/buildbarn.buildqueuestate.") => {
            farm.executor.forget_silent_workers();
            let response = farm.build_queue().clone().respond(request).await;
            farm.executor.changed();
            response
        }
        _ => {
            let message = format!("{path} is not emulated");
            Status::unimplemented(message)
                .into_http::<tonic::body::Body>()
                .map(Body::new)
        }
    }
}

/// One request, one answer.
async fn unary<Q, A>(
    request: Request<Body>,
    call: impl Fn(Q) -> Result<A, Status> + Send + Sync,
) -> Response<Body>
where
    Q: Message + Default + Send + 'static,
    A: Message + Default + Send + 'static,
{
    awaited(request, |request| std::future::ready(call(request))).await
}

/// The same with an answer that takes time.
async fn awaited<Q, A, F>(
    request: Request<Body>,
    call: impl Fn(Q) -> F + Send + Sync,
) -> Response<Body>
where
    Q: Message + Default + Send + 'static,
    A: Message + Default + Send + 'static,
    F: Future<Output = Result<A, Status>> + Send,
{
    let service = service_fn(|request: tonic::Request<Q>| {
        let answer = call(request.into_inner());
        async move { answer.await.map(tonic::Response::new) }
    });
    let mut grpc = Grpc::new(ProstCodec::<A, Q>::default());
    grpc.unary(service, request).await.map(Body::new)
}

/// One request, and a stream of answers.
async fn streamed<Q, A, S>(
    request: Request<Body>,
    call: impl Fn(Q) -> Result<S, Status> + Send,
) -> Response<Body>
where
    Q: Message + Default + Send + 'static,
    A: Message + Default + Send + 'static,
    S: Stream<Item = Result<A, Status>> + Send + 'static,
{
    let service = service_fn(|request: tonic::Request<Q>| {
        let answers = call(request.into_inner());
        async move { answers.map(tonic::Response::new) }
    });
    let mut grpc = Grpc::new(ProstCodec::<A, Q>::default());
    grpc.server_streaming(service, request).await.map(Body::new)
}

/// A stream of requests, and one answer.
async fn received<Q, A, F>(
    request: Request<Body>,
    call: impl Fn(Streaming<Q>) -> F + Send,
) -> Response<Body>
where
    Q: Message + Default + Send + 'static,
    A: Message + Default + Send + 'static,
    F: Future<Output = Result<A, Status>> + Send,
{
    let service = service_fn(|request: tonic::Request<Streaming<Q>>| {
        let answer = call(request.into_inner());
        async move { answer.await.map(tonic::Response::new) }
    });
    let mut grpc = Grpc::new(ProstCodec::<A, Q>::default());
    grpc.client_streaming(service, request).await.map(Body::new)
}

fn capabilities() -> ServerCapabilities {
    let version = |minor| {
        Some(SemVer {
            major: 2,
            minor,
            ..SemVer::default()
        })
    };
    ServerCapabilities {
        cache_capabilities: Some(CacheCapabilities {
            digest_functions: vec![SHA256],
            action_cache_update_capabilities: Some(ActionCacheUpdateCapabilities {
                update_enabled: true,
            }),
            max_batch_total_size_bytes: MAX_BATCH_BYTES,
            max_cas_blob_size_bytes: MAX_BLOB_BYTES as i64,
            ..CacheCapabilities::default()
        }),
        execution_capabilities: Some(ExecutionCapabilities {
            digest_function: SHA256,
            exec_enabled: true,
            digest_functions: vec![SHA256],
            ..ExecutionCapabilities::default()
        }),
        low_api_version: version(3),
        high_api_version: version(12),
        ..ServerCapabilities::default()
    }
}

fn outcome<T>(result: &Result<T, Status>) -> RpcStatus {
    let (code, message) = match result {
        Ok(_) => (Code::Ok, String::new()),
        Err(status) => (status.code(), status.message().to_owned()),
    };
    RpcStatus {
        code: code.into(),
        message,
        details: Vec::new(),
    }
}

impl RemoteExecution {
    fn find_missing(
        &self,
        request: FindMissingBlobsRequest,
    ) -> Result<FindMissingBlobsResponse, Status> {
        let mut missing_blob_digests = Vec::new();
        for digest in request.blob_digests {
            let digest = valid(Some(digest))?;
            if !self.store.has(&digest) {
                missing_blob_digests.push(digest);
            }
        }
        Ok(FindMissingBlobsResponse {
            missing_blob_digests,
        })
    }

    fn batch_update(&self, request: BatchUpdateBlobsRequest) -> BatchUpdateBlobsResponse {
        let results = request.requests.into_iter().map(|update| {
            let stored = if update.compressor == 0 {
                valid(update.digest.clone()).and_then(|it| self.store.put(&it, update.data))
            } else {
                Err(Status::invalid_argument("compression is not supported"))
            };
            BlobUpdateResult {
                digest: update.digest,
                status: Some(outcome(&stored)),
            }
        });
        BatchUpdateBlobsResponse {
            responses: results.collect(),
        }
    }

    fn batch_read(&self, request: BatchReadBlobsRequest) -> Result<BatchReadBlobsResponse, Status> {
        let sizes = request.digests.iter().map(|it| it.size_bytes.max(0));
        let sum = sizes.fold(0, i64::saturating_add);
        if sum > MAX_BATCH_BYTES {
            let message = format!("a batch has at most {MAX_BATCH_BYTES} bytes");
            return Err(Status::invalid_argument(message));
        }
        let contents = request.digests.into_iter().map(|digest| {
            let content = valid(Some(digest.clone())).and_then(|it| {
                let content = self.store.get(&it);
                content.ok_or_else(|| Status::not_found("the blob is not there"))
            });
            BlobContent {
                digest: Some(digest),
                status: Some(outcome(&content)),
                data: content.unwrap_or_default(),
                compressor: 0,
            }
        });
        Ok(BatchReadBlobsResponse {
            responses: contents.collect(),
        })
    }

    /// The pages of directories.
    fn get_tree(
        &self,
        request: GetTreeRequest,
    ) -> Result<Vec<Result<GetTreeResponse, Status>>, Status> {
        let root = valid(request.root_digest)?;
        if !self.store.has(&root) {
            return Err(Status::not_found("the root directory is not there"));
        }
        let (directories, _) = self.store.tree(&root)?;
        let size = usize::try_from(request.page_size).unwrap_or_default();
        let size = if size == 0 { PAGE } else { size };
        let begin = match request.page_token.as_str() {
            "" => 0,
            token => token
                .parse()
                .map_err(|_| Status::invalid_argument("the page token is none of this server"))?,
        };
        let rest = directories.get(begin..).unwrap_or_default();
        let pages = rest.chunks(size).enumerate().map(|(number, page)| {
            let end = begin + number * size + page.len();
            let is_last = end >= directories.len();
            let token = if is_last {
                String::new()
            } else {
                end.to_string()
            };
            Ok(GetTreeResponse {
                directories: page.to_vec(),
                next_page_token: token,
            })
        });
        Ok(pages.collect())
    }

    fn get_result(&self, request: GetActionResultRequest) -> Result<ActionResult, Status> {
        let digest = valid(request.action_digest)?;
        let result = self.store.result(&request.instance_name, &digest);
        result.ok_or_else(|| Status::not_found("the action has no result"))
    }

    fn update_result(&self, request: UpdateActionResultRequest) -> Result<ActionResult, Status> {
        let digest = valid(request.action_digest)?;
        let result = request.action_result;
        let result = result.ok_or_else(|| Status::invalid_argument("no result is given"))?;
        self.store
            .set_result(&request.instance_name, digest, result.clone())?;
        Ok(result)
    }

    fn execute(&self, request: ExecuteRequest) -> Result<Updates, Status> {
        let digest = valid(request.action_digest)?;
        let action = self.store.action(&digest)?;
        let cached = if request.skip_cache_lookup || action.do_not_cache {
            None
        } else {
            self.store.result(&request.instance_name, &digest)
        };
        let name = self.executor.begin(NewExecution {
            instance: request.instance_name,
            digest,
            action,
            cached,
        })?;
        Ok(self.updates(name))
    }

    fn updates(&self, name: String) -> Updates {
        self.executor.clone().updates(name).boxed()
    }
}
