//! Executions, and what workers do.

use std::collections::BTreeMap;

use super::action::{
    ActionResult, AnyMessage, BlobDigest, BuildAction, ExecutedActionMetadata, RpcStatus,
    TimestampMessage,
};
use crate::build_queue::Platform;

/// Asks for the execution of an action.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecuteRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
    #[prost(bool, tag = "3")]
    pub skip_cache_lookup: bool,
    #[prost(message, optional, tag = "6")]
    pub action_digest: Option<BlobDigest>,
    #[prost(int32, tag = "9")]
    pub digest_function: i32,
    #[prost(bool, tag = "10")]
    pub inline_stdout: bool,
    #[prost(bool, tag = "11")]
    pub inline_stderr: bool,
    #[prost(string, repeated, tag = "12")]
    pub inline_output_files: Vec<String>,
}

/// Asks for the state of an execution from now on.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WaitExecutionRequest {
    #[prost(string, tag = "1")]
    pub name: String,
}

/// How far an execution is.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecuteOperationMetadata {
    #[prost(int32, tag = "1")]
    pub stage: i32,
    #[prost(message, optional, tag = "2")]
    pub action_digest: Option<BlobDigest>,
    #[prost(string, tag = "3")]
    pub stdout_stream_name: String,
    #[prost(string, tag = "4")]
    pub stderr_stream_name: String,
    #[prost(message, optional, tag = "5")]
    pub partial_execution_metadata: Option<ExecutedActionMetadata>,
    #[prost(int32, tag = "6")]
    pub digest_function: i32,
}

/// How an execution ended.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecuteResponse {
    #[prost(message, optional, tag = "1")]
    pub result: Option<ActionResult>,
    #[prost(bool, tag = "2")]
    pub cached_result: bool,
    #[prost(message, optional, tag = "3")]
    pub status: Option<RpcStatus>,
    #[prost(string, tag = "5")]
    pub message: String,
}

/// The state of an execution.
#[derive(Clone, PartialEq, prost::Message)]
pub struct LongRunningOperation {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<AnyMessage>,
    #[prost(bool, tag = "3")]
    pub done: bool,
    #[prost(oneof = "OperationResult", tags = "4, 5")]
    pub result: Option<OperationResult>,
}

/// One of the forms of [`LongRunningOperation`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum OperationResult {
    #[prost(message, tag = "4")]
    Error(RpcStatus),
    #[prost(message, tag = "5")]
    Response(AnyMessage),
}

/// What a worker says that it does.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SynchronizeRequest {
    #[prost(btree_map = "string, string", tag = "1")]
    pub worker_id: BTreeMap<String, String>,
    #[prost(string, tag = "2")]
    pub instance_name_prefix: String,
    #[prost(message, optional, tag = "3")]
    pub platform: Option<Platform>,
    #[prost(uint32, tag = "5")]
    pub size_class: u32,
    #[prost(message, optional, tag = "4")]
    pub current_state: Option<CurrentState>,
    #[prost(bool, tag = "6")]
    pub prefer_being_idle: bool,
}

/// What it shall do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SynchronizeResponse {
    #[prost(message, optional, tag = "1")]
    pub next_synchronization_at: Option<TimestampMessage>,
    #[prost(message, optional, tag = "2")]
    pub desired_state: Option<DesiredState>,
}

/// What a worker does.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CurrentState {
    #[prost(oneof = "CurrentWork", tags = "1, 2")]
    pub worker_state: Option<CurrentWork>,
}

/// One of the forms of [`CurrentState`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum CurrentWork {
    #[prost(message, tag = "1")]
    Idle(()),
    #[prost(message, boxed, tag = "2")]
    Executing(Box<CurrentExecution>),
}

/// The action that it executes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CurrentExecution {
    #[prost(message, optional, tag = "1")]
    pub action_digest: Option<BlobDigest>,
    #[prost(oneof = "ExecutionProgress", tags = "2, 3, 4, 5, 6")]
    pub execution_state: Option<ExecutionProgress>,
}

/// One of the forms of [`CurrentExecution`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ExecutionProgress {
    #[prost(message, tag = "2")]
    Started(()),
    #[prost(message, tag = "3")]
    FetchingInputs(()),
    #[prost(message, tag = "4")]
    Running(()),
    #[prost(message, tag = "5")]
    UploadingOutputs(()),
    #[prost(message, boxed, tag = "6")]
    Completed(Box<ExecuteResponse>),
}

/// What a worker shall do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DesiredState {
    #[prost(oneof = "DesiredWork", tags = "1, 2")]
    pub worker_state: Option<DesiredWork>,
}

/// One of the forms of [`DesiredState`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum DesiredWork {
    #[prost(message, tag = "1")]
    Idle(()),
    #[prost(message, boxed, tag = "2")]
    Executing(Box<DesiredExecution>),
}

/// The action that it shall execute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DesiredExecution {
    #[prost(message, optional, tag = "1")]
    pub action_digest: Option<BlobDigest>,
    #[prost(message, optional, tag = "2")]
    pub action: Option<BuildAction>,
    #[prost(message, optional, tag = "4")]
    pub queued_timestamp: Option<TimestampMessage>,
    #[prost(message, repeated, tag = "6")]
    pub auxiliary_metadata: Vec<AnyMessage>,
    #[prost(string, tag = "7")]
    pub instance_name_suffix: String,
    #[prost(btree_map = "string, string", tag = "8")]
    pub w3c_trace_context: BTreeMap<String, String>,
    #[prost(int32, tag = "9")]
    pub digest_function: i32,
}
