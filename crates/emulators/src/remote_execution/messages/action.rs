//! Actions, their inputs and their results.

use bytes::Bytes;

use crate::build_queue::Platform;

/// The identity of a blob: its SHA-256 and its size.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, prost::Message)]
pub struct BlobDigest {
    #[prost(string, tag = "1")]
    pub hash: String,
    #[prost(int64, tag = "2")]
    pub size_bytes: i64,
}

/// What is executed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BuildAction {
    #[prost(message, optional, tag = "1")]
    pub command_digest: Option<BlobDigest>,
    #[prost(message, optional, tag = "2")]
    pub input_root_digest: Option<BlobDigest>,
    #[prost(message, optional, tag = "6")]
    pub timeout: Option<DurationMessage>,
    #[prost(bool, tag = "7")]
    pub do_not_cache: bool,
    #[prost(bytes = "bytes", tag = "9")]
    pub salt: Bytes,
    #[prost(message, optional, tag = "10")]
    pub platform: Option<Platform>,
}

/// The command of an action.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BuildCommand {
    #[prost(string, repeated, tag = "1")]
    pub arguments: Vec<String>,
    #[prost(message, repeated, tag = "2")]
    pub environment_variables: Vec<EnvironmentVariable>,
    #[prost(string, repeated, tag = "7")]
    pub output_paths: Vec<String>,
    #[prost(string, tag = "6")]
    pub working_directory: String,
    #[prost(string, repeated, tag = "8")]
    pub output_node_properties: Vec<String>,
    #[prost(int32, tag = "9")]
    pub output_directory_format: i32,
}

/// A variable of a command.
#[derive(Clone, PartialEq, prost::Message)]
pub struct EnvironmentVariable {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub value: String,
}

/// A directory of inputs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InputDirectory {
    #[prost(message, repeated, tag = "1")]
    pub files: Vec<FileNode>,
    #[prost(message, repeated, tag = "2")]
    pub directories: Vec<DirectoryNode>,
    #[prost(message, repeated, tag = "3")]
    pub symlinks: Vec<SymlinkNode>,
}

/// A file of a directory.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FileNode {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub digest: Option<BlobDigest>,
    #[prost(bool, tag = "4")]
    pub is_executable: bool,
}

/// A directory inside another.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DirectoryNode {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub digest: Option<BlobDigest>,
}

/// A symbolic link of a directory.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SymlinkNode {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub target: String,
}

/// A directory of outputs with all that are inside it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OutputTree {
    #[prost(message, optional, tag = "1")]
    pub root: Option<InputDirectory>,
    #[prost(message, repeated, tag = "2")]
    pub children: Vec<InputDirectory>,
}

/// What an action produced.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ActionResult {
    #[prost(message, repeated, tag = "2")]
    pub output_files: Vec<OutputFile>,
    #[prost(message, repeated, tag = "12")]
    pub output_symlinks: Vec<OutputSymlink>,
    #[prost(message, repeated, tag = "3")]
    pub output_directories: Vec<OutputDirectory>,
    #[prost(int32, tag = "4")]
    pub exit_code: i32,
    #[prost(bytes = "bytes", tag = "5")]
    pub stdout_raw: Bytes,
    #[prost(message, optional, tag = "6")]
    pub stdout_digest: Option<BlobDigest>,
    #[prost(bytes = "bytes", tag = "7")]
    pub stderr_raw: Bytes,
    #[prost(message, optional, tag = "8")]
    pub stderr_digest: Option<BlobDigest>,
    #[prost(message, optional, tag = "9")]
    pub execution_metadata: Option<ExecutedActionMetadata>,
}

/// A file that an action produced.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OutputFile {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(message, optional, tag = "2")]
    pub digest: Option<BlobDigest>,
    #[prost(bool, tag = "4")]
    pub is_executable: bool,
    #[prost(bytes = "bytes", tag = "5")]
    pub contents: Bytes,
}

/// A directory that an action produced.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OutputDirectory {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(message, optional, tag = "3")]
    pub tree_digest: Option<BlobDigest>,
    #[prost(bool, tag = "4")]
    pub is_topologically_sorted: bool,
    #[prost(message, optional, tag = "5")]
    pub root_directory_digest: Option<BlobDigest>,
}

/// A symbolic link that an action produced.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OutputSymlink {
    #[prost(string, tag = "1")]
    pub path: String,
    #[prost(string, tag = "2")]
    pub target: String,
}

/// Who executed an action, and when.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ExecutedActionMetadata {
    #[prost(string, tag = "1")]
    pub worker: String,
    #[prost(message, optional, tag = "2")]
    pub queued_timestamp: Option<TimestampMessage>,
    #[prost(message, optional, tag = "3")]
    pub worker_start_timestamp: Option<TimestampMessage>,
    #[prost(message, optional, tag = "4")]
    pub worker_completed_timestamp: Option<TimestampMessage>,
    #[prost(message, optional, tag = "5")]
    pub input_fetch_start_timestamp: Option<TimestampMessage>,
    #[prost(message, optional, tag = "6")]
    pub input_fetch_completed_timestamp: Option<TimestampMessage>,
    #[prost(message, optional, tag = "7")]
    pub execution_start_timestamp: Option<TimestampMessage>,
    #[prost(message, optional, tag = "8")]
    pub execution_completed_timestamp: Option<TimestampMessage>,
    #[prost(message, optional, tag = "12")]
    pub virtual_execution_duration: Option<DurationMessage>,
    #[prost(message, optional, tag = "9")]
    pub output_upload_start_timestamp: Option<TimestampMessage>,
    #[prost(message, optional, tag = "10")]
    pub output_upload_completed_timestamp: Option<TimestampMessage>,
    #[prost(message, repeated, tag = "11")]
    pub auxiliary_metadata: Vec<AnyMessage>,
}

/// A message of any type.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AnyMessage {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}

/// A time.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TimestampMessage {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// A duration.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DurationMessage {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// An outcome with details.
#[derive(Clone, PartialEq, prost::Message)]
pub struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<AnyMessage>,
}

/// What a client has to do before it tries again.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PreconditionFailure {
    #[prost(message, repeated, tag = "1")]
    pub violations: Vec<Violation>,
}

/// Something that is not as it has to be.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Violation {
    #[prost(string, tag = "1")]
    pub r#type: String,
    #[prost(string, tag = "2")]
    pub subject: String,
    #[prost(string, tag = "3")]
    pub description: String,
}
