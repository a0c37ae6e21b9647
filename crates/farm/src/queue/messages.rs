//! The messages of `buildbarn.buildqueuestate` that the operator uses. Fields that it does not read are
//! left out, and skipped when they are received.

use std::collections::BTreeMap;

/// A platform: the properties that an action needs.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Platform {
    /// The properties, in order.
    #[prost(message, repeated, tag = "1")]
    pub properties: Vec<Property>,
}

/// A platform property.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Property {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// The name of a platform queue.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PlatformQueueName {
    /// The prefix of the instance names.
    #[prost(string, tag = "1")]
    pub instance_name_prefix: String,
    /// The platform.
    #[prost(message, optional, tag = "2")]
    pub platform: Option<Platform>,
}

/// The name of the queue of a size class.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SizeClassQueueName {
    /// The platform queue.
    #[prost(message, optional, tag = "1")]
    pub platform_queue_name: Option<PlatformQueueName>,
    /// The size class.
    #[prost(uint32, tag = "2")]
    pub size_class: u32,
}

/// The name of an invocation; of all of a queue if it has no ids.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InvocationName {
    /// The queue.
    #[prost(message, optional, tag = "1")]
    pub size_class_queue_name: Option<SizeClassQueueName>,
}

/// Asks to add or remove a drain.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AddOrRemoveDrainRequest {
    /// The queue.
    #[prost(message, optional, tag = "1")]
    pub size_class_queue_name: Option<SizeClassQueueName>,
    /// The fields of the ids of the workers.
    #[prost(btree_map = "string, string", tag = "2")]
    pub worker_id_pattern: BTreeMap<String, String>,
}

/// Asks for the drains of a queue.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListDrainsRequest {
    /// The queue.
    #[prost(message, optional, tag = "1")]
    pub size_class_queue_name: Option<SizeClassQueueName>,
}

/// The drains of a queue.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListDrainsResponse {
    /// The drains.
    #[prost(message, repeated, tag = "1")]
    pub drains: Vec<DrainState>,
}

/// A drain.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DrainState {
    /// The fields of the ids of the workers.
    #[prost(btree_map = "string, string", tag = "1")]
    pub worker_id_pattern: BTreeMap<String, String>,
}

/// Asks for workers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListWorkersRequest {
    /// Which workers.
    #[prost(message, optional, tag = "1")]
    pub filter: Option<ListWorkersFilter>,
    /// The size of a page.
    #[prost(uint32, tag = "3")]
    pub page_size: u32,
    /// The last worker of the page before.
    #[prost(message, optional, tag = "4")]
    pub start_after: Option<WorkerPosition>,
}

/// Which workers are listed.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListWorkersFilter {
    /// One of the kinds.
    #[prost(oneof = "WorkerFilterKind", tags = "1, 2, 3")]
    pub kind: Option<WorkerFilterKind>,
}

/// The kinds of [`ListWorkersFilter`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum WorkerFilterKind {
    /// All workers of a queue.
    #[prost(message, tag = "1")]
    All(SizeClassQueueName),
    /// Those that run an action.
    #[prost(message, tag = "2")]
    Executing(InvocationName),
    /// Those that wait for one.
    #[prost(message, tag = "3")]
    IdleSynchronizing(InvocationName),
}

/// A place in the list of workers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WorkerPosition {
    /// The id of the worker.
    #[prost(btree_map = "string, string", tag = "1")]
    pub worker_id: BTreeMap<String, String>,
}

/// A page of workers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListWorkersResponse {
    /// The workers.
    #[prost(message, repeated, tag = "1")]
    pub workers: Vec<WorkerState>,
    /// Where the page is.
    #[prost(message, optional, tag = "2")]
    pub pagination_info: Option<PaginationInfo>,
}

/// A worker.
#[derive(Clone, PartialEq, prost::Message)]
pub struct WorkerState {
    /// Its id.
    #[prost(btree_map = "string, string", tag = "1")]
    pub id: BTreeMap<String, String>,
    /// The action that it runs.
    #[prost(message, optional, tag = "3")]
    pub current_operation: Option<OperationState>,
    /// Whether it is drained.
    #[prost(bool, tag = "4")]
    pub drained: bool,
}

/// An action.
#[derive(Clone, PartialEq, prost::Message)]
pub struct OperationState {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The target that it builds.
    #[prost(string, tag = "11")]
    pub target_id: String,
}

/// Where a page is.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PaginationInfo {
    /// The number of entries before it.
    #[prost(uint32, tag = "1")]
    pub start_index: u32,
    /// The number of all entries.
    #[prost(uint32, tag = "2")]
    pub total_entries: u32,
}

/// All queues.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListPlatformQueuesResponse {
    /// The queues.
    #[prost(message, repeated, tag = "1")]
    pub platform_queues: Vec<PlatformQueueState>,
}

/// A platform queue.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PlatformQueueState {
    /// Its name.
    #[prost(message, optional, tag = "1")]
    pub name: Option<PlatformQueueName>,
    /// Its size classes.
    #[prost(message, repeated, tag = "2")]
    pub size_class_queues: Vec<SizeClassQueueState>,
}

/// The queue of a size class.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SizeClassQueueState {
    /// The size class.
    #[prost(uint32, tag = "1")]
    pub size_class: u32,
    /// Its workers.
    #[prost(uint32, tag = "5")]
    pub workers_count: u32,
    /// Its drains.
    #[prost(uint32, tag = "7")]
    pub drains_count: u32,
    /// The actions of all invocations.
    #[prost(message, optional, tag = "9")]
    pub root_invocation: Option<InvocationState>,
}

/// The numbers of an invocation.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InvocationState {
    /// Actions that wait.
    #[prost(message, optional, tag = "2")]
    pub queued_operations_count: Option<ObjectCount>,
    /// Workers that run actions.
    #[prost(uint32, tag = "4")]
    pub executing_workers_count: u32,
    /// Workers that are idle.
    #[prost(uint32, tag = "5")]
    pub idle_workers_count: u32,
}

/// A number of things, of an invocation itself and of those below it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ObjectCount {
    /// Of itself.
    #[prost(uint32, tag = "1")]
    pub direct: u32,
    /// Of those below it.
    #[prost(uint32, tag = "2")]
    pub indirect: u32,
}
