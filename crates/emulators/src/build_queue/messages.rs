//! The messages of the service that are served.

use std::collections::BTreeMap;

/// A platform.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Platform {
    /// The properties, in order.
    #[prost(message, repeated, tag = "1")]
    pub properties: Vec<Property>,
}

/// A platform property.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Property {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// The name of a platform queue.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PlatformQueueName {
    /// The prefix of the instance names.
    #[prost(string, tag = "1")]
    pub instance_name_prefix: String,
    /// The platform.
    #[prost(message, optional, tag = "2")]
    pub platform: Option<Platform>,
}

/// The name of the queue of a size class.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SizeClassQueueName {
    /// The platform queue.
    #[prost(message, optional, tag = "1")]
    pub platform_queue_name: Option<PlatformQueueName>,
    /// The size class.
    #[prost(uint32, tag = "2")]
    pub size_class: u32,
}

impl SizeClassQueueName {
    /// The queue of a platform, for all instance names and of size class 0.
    pub fn of_platform(properties: &[(&str, &str)]) -> Self {
        let properties = properties.iter().map(|(name, value)| Property {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        });
        Self {
            platform_queue_name: Some(PlatformQueueName {
                instance_name_prefix: String::new(),
                platform: Some(Platform {
                    properties: properties.collect(),
                }),
            }),
            size_class: 0,
        }
    }
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DrainRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) queue: Option<SizeClassQueueName>,
    #[prost(btree_map = "string, string", tag = "2")]
    pub(super) pattern: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListDrainsRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) queue: Option<SizeClassQueueName>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListDrainsResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) drains: Vec<Drain>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Drain {
    #[prost(btree_map = "string, string", tag = "1")]
    pub(super) pattern: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListWorkersRequest {
    #[prost(message, optional, tag = "1")]
    pub(super) filter: Option<WorkersFilter>,
    #[prost(uint32, tag = "3")]
    pub(super) page_size: u32,
    #[prost(message, optional, tag = "4")]
    pub(super) start_after: Option<Position>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WorkersFilter {
    #[prost(oneof = "FilterKind", tags = "1")]
    pub(super) kind: Option<FilterKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum FilterKind {
    #[prost(message, tag = "1")]
    All(SizeClassQueueName),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Position {
    #[prost(btree_map = "string, string", tag = "1")]
    pub(super) id: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListWorkersResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) workers: Vec<WorkerMessage>,
    #[prost(message, optional, tag = "2")]
    pub(super) page: Option<Page>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct WorkerMessage {
    #[prost(btree_map = "string, string", tag = "1")]
    pub(super) id: BTreeMap<String, String>,
    #[prost(message, optional, tag = "3")]
    pub(super) operation: Option<OperationMessage>,
    #[prost(bool, tag = "4")]
    pub(super) drained: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OperationMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Page {
    #[prost(uint32, tag = "1")]
    pub(super) start_index: u32,
    #[prost(uint32, tag = "2")]
    pub(super) total_entries: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListQueuesResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) queues: Vec<PlatformQueue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PlatformQueue {
    #[prost(message, optional, tag = "1")]
    pub(super) name: Option<PlatformQueueName>,
    #[prost(message, repeated, tag = "2")]
    pub(super) size_classes: Vec<SizeClassQueue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SizeClassQueue {
    #[prost(uint32, tag = "1")]
    pub(super) size_class: u32,
    #[prost(uint32, tag = "5")]
    pub(super) workers: u32,
    #[prost(uint32, tag = "7")]
    pub(super) drains: u32,
    #[prost(message, optional, tag = "9")]
    pub(super) root: Option<Invocation>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Invocation {
    #[prost(message, optional, tag = "2")]
    pub(super) queued: Option<Count>,
    #[prost(uint32, tag = "4")]
    pub(super) executing: u32,
    #[prost(uint32, tag = "5")]
    pub(super) idle: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Count {
    #[prost(uint32, tag = "1")]
    pub(super) direct: u32,
    #[prost(uint32, tag = "2")]
    pub(super) indirect: u32,
}
