//! Requests to the storage: blobs and results of actions.

use bytes::Bytes;

use super::action::{ActionResult, BlobDigest, InputDirectory, RpcStatus};

/// A version.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SemVer {
    #[prost(int32, tag = "1")]
    pub major: i32,
    #[prost(int32, tag = "2")]
    pub minor: i32,
    #[prost(int32, tag = "3")]
    pub patch: i32,
    #[prost(string, tag = "4")]
    pub prerelease: String,
}

/// Asks what the server can do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetCapabilitiesRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
}

/// What the server can do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ServerCapabilities {
    #[prost(message, optional, tag = "1")]
    pub cache_capabilities: Option<CacheCapabilities>,
    #[prost(message, optional, tag = "2")]
    pub execution_capabilities: Option<ExecutionCapabilities>,
    #[prost(message, optional, tag = "3")]
    pub deprecated_api_version: Option<SemVer>,
    #[prost(message, optional, tag = "4")]
    pub low_api_version: Option<SemVer>,
    #[prost(message, optional, tag = "5")]
    pub high_api_version: Option<SemVer>,
}

/// What its caches can do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CacheCapabilities {
    #[prost(int32, repeated, tag = "1")]
    pub digest_functions: Vec<i32>,
    #[prost(message, optional, tag = "2")]
    pub action_cache_update_capabilities: Option<ActionCacheUpdateCapabilities>,
    #[prost(int64, tag = "4")]
    pub max_batch_total_size_bytes: i64,
    #[prost(int32, tag = "5")]
    pub symlink_absolute_path_strategy: i32,
    #[prost(int32, repeated, tag = "6")]
    pub supported_compressors: Vec<i32>,
    #[prost(int32, repeated, tag = "7")]
    pub supported_batch_update_compressors: Vec<i32>,
    #[prost(int64, tag = "8")]
    pub max_cas_blob_size_bytes: i64,
    #[prost(bool, tag = "9")]
    pub split_blob_support: bool,
    #[prost(bool, tag = "10")]
    pub splice_blob_support: bool,
}

/// Whether results of actions can be written.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ActionCacheUpdateCapabilities {
    #[prost(bool, tag = "1")]
    pub update_enabled: bool,
}

/// Whether actions can be executed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecutionCapabilities {
    #[prost(int32, tag = "1")]
    pub digest_function: i32,
    #[prost(bool, tag = "2")]
    pub exec_enabled: bool,
    #[prost(string, repeated, tag = "4")]
    pub supported_node_properties: Vec<String>,
    #[prost(int32, repeated, tag = "5")]
    pub digest_functions: Vec<i32>,
}

/// Asks which blobs are missing.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FindMissingBlobsRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
    #[prost(message, repeated, tag = "2")]
    pub blob_digests: Vec<BlobDigest>,
    #[prost(int32, tag = "3")]
    pub digest_function: i32,
}

/// The blobs that are missing.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FindMissingBlobsResponse {
    #[prost(message, repeated, tag = "2")]
    pub missing_blob_digests: Vec<BlobDigest>,
}

/// Writes small blobs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchUpdateBlobsRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
    #[prost(message, repeated, tag = "2")]
    pub requests: Vec<BlobUpdate>,
    #[prost(int32, tag = "5")]
    pub digest_function: i32,
}

/// A blob to write.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BlobUpdate {
    #[prost(message, optional, tag = "1")]
    pub digest: Option<BlobDigest>,
    #[prost(bytes = "bytes", tag = "2")]
    pub data: Bytes,
    #[prost(int32, tag = "3")]
    pub compressor: i32,
}

/// The results of the writes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchUpdateBlobsResponse {
    #[prost(message, repeated, tag = "1")]
    pub responses: Vec<BlobUpdateResult>,
}

/// The result of a write.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BlobUpdateResult {
    #[prost(message, optional, tag = "1")]
    pub digest: Option<BlobDigest>,
    #[prost(message, optional, tag = "2")]
    pub status: Option<RpcStatus>,
}

/// Reads small blobs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchReadBlobsRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
    #[prost(message, repeated, tag = "2")]
    pub digests: Vec<BlobDigest>,
    #[prost(int32, repeated, tag = "3")]
    pub acceptable_compressors: Vec<i32>,
    #[prost(int32, tag = "4")]
    pub digest_function: i32,
}

/// The blobs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BatchReadBlobsResponse {
    #[prost(message, repeated, tag = "1")]
    pub responses: Vec<BlobContent>,
}

/// A blob, or why it cannot be read.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BlobContent {
    #[prost(message, optional, tag = "1")]
    pub digest: Option<BlobDigest>,
    #[prost(bytes = "bytes", tag = "2")]
    pub data: Bytes,
    #[prost(int32, tag = "4")]
    pub compressor: i32,
    #[prost(message, optional, tag = "3")]
    pub status: Option<RpcStatus>,
}

/// Asks for a directory and all below it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetTreeRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
    #[prost(message, optional, tag = "2")]
    pub root_digest: Option<BlobDigest>,
    #[prost(int32, tag = "3")]
    pub page_size: i32,
    #[prost(string, tag = "4")]
    pub page_token: String,
    #[prost(int32, tag = "5")]
    pub digest_function: i32,
}

/// A page of directories.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetTreeResponse {
    #[prost(message, repeated, tag = "1")]
    pub directories: Vec<InputDirectory>,
    #[prost(string, tag = "2")]
    pub next_page_token: String,
}

/// Asks for the result of an action.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetActionResultRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
    #[prost(message, optional, tag = "2")]
    pub action_digest: Option<BlobDigest>,
    #[prost(bool, tag = "3")]
    pub inline_stdout: bool,
    #[prost(bool, tag = "4")]
    pub inline_stderr: bool,
    #[prost(string, repeated, tag = "5")]
    pub inline_output_files: Vec<String>,
    #[prost(int32, tag = "6")]
    pub digest_function: i32,
}

/// Writes the result of an action.
#[derive(Clone, PartialEq, prost::Message)]
pub struct UpdateActionResultRequest {
    #[prost(string, tag = "1")]
    pub instance_name: String,
    #[prost(message, optional, tag = "2")]
    pub action_digest: Option<BlobDigest>,
    #[prost(message, optional, tag = "3")]
    pub action_result: Option<ActionResult>,
    #[prost(int32, tag = "5")]
    pub digest_function: i32,
}

/// Reads a blob.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReadRequest {
    #[prost(string, tag = "1")]
    pub resource_name: String,
    #[prost(int64, tag = "2")]
    pub read_offset: i64,
    #[prost(int64, tag = "3")]
    pub read_limit: i64,
}

/// A part of a blob.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ReadResponse {
    #[prost(bytes = "bytes", tag = "10")]
    pub data: Bytes,
}

/// A part of a blob to write.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WriteRequest {
    #[prost(string, tag = "1")]
    pub resource_name: String,
    #[prost(int64, tag = "2")]
    pub write_offset: i64,
    #[prost(bool, tag = "3")]
    pub finish_write: bool,
    #[prost(bytes = "bytes", tag = "10")]
    pub data: Bytes,
}

/// How much was written.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WriteResponse {
    #[prost(int64, tag = "1")]
    pub committed_size: i64,
}

/// Asks how much was written.
#[derive(Clone, PartialEq, prost::Message)]
pub struct QueryWriteStatusRequest {
    #[prost(string, tag = "1")]
    pub resource_name: String,
}

/// How much was written, and whether that is all.
#[derive(Clone, PartialEq, prost::Message)]
pub struct QueryWriteStatusResponse {
    #[prost(int64, tag = "1")]
    pub committed_size: i64,
    #[prost(bool, tag = "2")]
    pub complete: bool,
}
