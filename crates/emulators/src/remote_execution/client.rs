//! What clients and workers send, for tests.

use bytes::Bytes;
use futures::StreamExt;
use http::uri::PathAndQuery;
use neap_kit::client::{Body, Transport, TransportError};
use prost::Message;
use tonic::{Request, Status, Streaming, client::Grpc};
use tonic_prost::ProstCodec;
use tower::{ServiceExt, util::BoxCloneSyncService};

use super::messages::{
    ActionResult, BatchUpdateBlobsRequest, BatchUpdateBlobsResponse, BlobDigest, BlobUpdate,
    BuildAction, BuildCommand, CurrentExecution, CurrentState, CurrentWork, DesiredExecution,
    DesiredWork, ExecuteRequest, ExecuteResponse, ExecutionProgress, InputDirectory,
    LongRunningOperation, SynchronizeRequest, SynchronizeResponse,
};
pub use super::precondition::violations;
use crate::build_queue::{Platform, SizeClassQueueName, WorkerId};

type Connection = BoxCloneSyncService<
    http::Request<tonic::body::Body>,
    http::Response<tonic::body::Body>,
    TransportError,
>;

/// A client of a farm. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RemoteExecutionClient {
    connection: Connection,
}

impl RemoteExecutionClient {
    /// A client over a transport.
    pub fn new(transport: Transport) -> Self {
        let connection = tower::service_fn(move |request: http::Request<tonic::body::Body>| {
            let response = transport.clone().oneshot(request.map(Body::new));
            async move { Ok(response.await?.map(tonic::body::Body::new)) }
        });
        Self {
            connection: Connection::new(connection),
        }
    }

    async fn ready(&self) -> Result<Grpc<Connection>, Status> {
        let mut grpc = Grpc::new(self.connection.clone());
        let ready = grpc.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        Ok(grpc)
    }

    /// A call with one answer. The path is that of the method, such as `/google.bytestream.ByteStream/Read`.
    pub async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let codec = ProstCodec::<Q, A>::default();
        let path = PathAndQuery::from_static(path);
        let response = self
            .ready()
            .await?
            .unary(Request::new(request), path, codec)
            .await?;
        Ok(response.into_inner())
    }

    /// A call with a stream of answers.
    pub async fn stream<Q, A>(&self, path: &'static str, request: Q) -> Result<Streaming<A>, Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let codec = ProstCodec::<Q, A>::default();
        let path = PathAndQuery::from_static(path);
        let mut grpc = self.ready().await?;
        let response = grpc.server_streaming(Request::new(request), path, codec);
        Ok(response.await?.into_inner())
    }

    /// A call with a stream of requests.
    pub async fn send_all<Q, A>(&self, path: &'static str, requests: Vec<Q>) -> Result<A, Status>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let codec = ProstCodec::<Q, A>::default();
        let path = PathAndQuery::from_static(path);
        let requests = Request::new(futures::stream::iter(requests));
        let mut grpc = self.ready().await?;
        Ok(grpc
            .client_streaming(requests, path, codec)
            .await?
            .into_inner())
    }

    /// Uploads a small blob.
    pub async fn upload(&self, content: impl Into<Bytes>) -> Result<BlobDigest, Status> {
        let data = content.into();
        let digest = BlobDigest::of(&data);
        let update = BlobUpdate {
            digest: Some(digest.clone()),
            data,
            compressor: 0,
        };
        let request = BatchUpdateBlobsRequest {
            requests: vec![update],
            ..BatchUpdateBlobsRequest::default()
        };
        let method = "/build.bazel.remote.execution.v2.ContentAddressableStorage/BatchUpdateBlobs";
        let response: BatchUpdateBlobsResponse = self.call(method, request).await?;
        let status = response.responses.into_iter().find_map(|it| it.status);
        match status.unwrap_or_default() {
            status if status.code == 0 => Ok(digest),
            status => Err(Status::new(status.code.into(), status.message)),
        }
    }

    /// Uploads an action without inputs.
    pub async fn upload_action(
        &self,
        arguments: &[&str],
        platform: Platform,
    ) -> Result<BlobDigest, Status> {
        let command = BuildCommand {
            arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
            ..BuildCommand::default()
        };
        let action = BuildAction {
            command_digest: Some(self.upload(command.encode_to_vec()).await?),
            input_root_digest: Some(
                self.upload(InputDirectory::default().encode_to_vec())
                    .await?,
            ),
            platform: Some(platform),
            ..BuildAction::default()
        };
        self.upload(action.encode_to_vec()).await
    }

    /// Executes an action, and returns how that ended.
    pub async fn execute(&self, action: BlobDigest) -> Result<ExecuteResponse, Status> {
        let request = ExecuteRequest {
            action_digest: Some(action),
            ..ExecuteRequest::default()
        };
        let method = "/build.bazel.remote.execution.v2.Execution/Execute";
        let mut updates = self
            .stream::<_, LongRunningOperation>(method, request)
            .await?;
        while let Some(update) = updates.next().await {
            if let Some(response) = update?.response() {
                return Ok(response);
            }
        }
        Err(Status::unavailable(
            "the updates ended before the execution",
        ))
    }
}

/// A worker: one thread of a pod.
#[derive(Debug, Clone)]
pub struct WorkerClient {
    client: RemoteExecutionClient,
    queue: SizeClassQueueName,
    id: WorkerId,
}

impl WorkerClient {
    /// A worker of a queue.
    pub fn new(client: RemoteExecutionClient, queue: SizeClassQueueName, id: WorkerId) -> Self {
        Self { client, queue, id }
    }

    /// The next action; none if there was none for a while.
    pub async fn next(&self) -> Result<Option<DesiredExecution>, Status> {
        let response = self.synchronize(CurrentWork::Idle(()), false).await?;
        let work = response.desired_state.and_then(|it| it.worker_state);
        Ok(match work {
            Some(DesiredWork::Executing(execution)) => Some(*execution),
            _ => None,
        })
    }

    /// Says that an action runs.
    pub async fn keep_running(&self, action: &BlobDigest) -> Result<SynchronizeResponse, Status> {
        let work = executing(action, ExecutionProgress::Running(()));
        self.synchronize(work, false).await
    }

    /// Says that an action has ended with an exit code, and asks for no other.
    pub async fn complete(&self, action: &BlobDigest, exit_code: i32) -> Result<(), Status> {
        let response = ExecuteResponse {
            result: Some(ActionResult {
                exit_code,
                ..ActionResult::default()
            }),
            ..ExecuteResponse::default()
        };
        let work = executing(action, ExecutionProgress::Completed(Box::new(response)));
        self.synchronize(work, true).await.map(|_| ())
    }

    async fn synchronize(
        &self,
        work: CurrentWork,
        prefer_being_idle: bool,
    ) -> Result<SynchronizeResponse, Status> {
        let name = self.queue.platform_queue_name.clone().unwrap_or_default();
        let request = SynchronizeRequest {
            worker_id: self.id.clone(),
            instance_name_prefix: name.instance_name_prefix,
            platform: name.platform,
            size_class: self.queue.size_class,
            current_state: Some(CurrentState {
                worker_state: Some(work),
            }),
            prefer_being_idle,
        };
        let method = "/buildbarn.remoteworker.OperationQueue/Synchronize";
        self.client.call(method, request).await
    }
}

fn executing(action: &BlobDigest, progress: ExecutionProgress) -> CurrentWork {
    CurrentWork::Executing(Box::new(CurrentExecution {
        action_digest: Some(action.clone()),
        execution_state: Some(progress),
    }))
}
