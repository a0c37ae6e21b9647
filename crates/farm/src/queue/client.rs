//! The client of a scheduler.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use http::uri::PathAndQuery;
use neap_kit::{clock::Clock, why::chain};
use parking_lot::Mutex;
use tonic::{Code, Request, Status, body::Body, client::Grpc, transport::Endpoint};
use tonic_prost::ProstCodec;
use tower::{ServiceExt, util::BoxCloneSyncService};

use super::{
    BuildQueue, Error, QueueFacts, QueueState, WorkerFacts,
    messages::{
        AddOrRemoveDrainRequest, ListDrainsRequest, ListDrainsResponse, ListPlatformQueuesResponse,
        ListWorkersFilter, ListWorkersRequest, ListWorkersResponse, Platform, PlatformQueueName,
        Property, SizeClassQueueName, WorkerFilterKind, WorkerPosition,
    },
};
use crate::{
    api::PlatformProperty,
    platform::{QueueName, ordered},
};

/// How long the scheduler may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
const PAGE_SIZE: u32 = 1000;
/// A pool with more workers than this is not listed further.
const MAX_PAGES: usize = 200;
const SERVICE: &str = "/buildbarn.buildqueuestate.BuildQueueState";

/// What calls are sent with.
pub type Connection =
    BoxCloneSyncService<http::Request<Body>, http::Response<Body>, ConnectionError>;

/// Why a call could not be sent.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct ConnectionError(pub String);

/// Opens connections to schedulers.
pub trait Dial: Send + Sync + 'static {
    /// A connection to `address`, which is made when it is used.
    fn dial(&self, address: &str) -> Result<Connection, String>;
}

/// Connections over TCP, kept for further calls.
#[derive(Debug, Default)]
pub struct TcpDial {
    connections: Mutex<BTreeMap<String, Connection>>,
}

/// Schedulers whose connections are kept. Addresses change when a Service is created again.
const MAX_CONNECTIONS: usize = 1024;

impl Dial for TcpDial {
    fn dial(&self, address: &str) -> Result<Connection, String> {
        let mut connections = self.connections.lock();
        if let Some(connection) = connections.get(address) {
            return Ok(connection.clone());
        }
        let endpoint = Endpoint::from_shared(format!("http://{address}"));
        let endpoint = endpoint.map_err(|error| error.to_string())?;
        let channel = endpoint.connect_timeout(ANSWER_TIMEOUT).connect_lazy();
        let connection = Connection::new(channel.map_err(|error| ConnectionError(chain(&error))));
        if connections.len() >= MAX_CONNECTIONS {
            connections.clear();
        }
        connections.insert(address.to_owned(), connection.clone());
        Ok(connection)
    }
}

/// Speaks to schedulers over gRPC.
pub struct GrpcBuildQueue<D = TcpDial> {
    dial: Arc<D>,
    clock: Clock,
}

impl GrpcBuildQueue {
    /// A client over TCP.
    pub fn new(clock: Clock) -> Self {
        Self::with_dial(TcpDial::default(), clock)
    }
}

impl<D: Dial> GrpcBuildQueue<D> {
    /// A client over other connections.
    pub fn with_dial(dial: D, clock: Clock) -> Self {
        Self {
            dial: Arc::new(dial),
            clock,
        }
    }

    async fn call<Q, A>(&self, address: &str, method: &str, request: Q) -> Result<A, Error>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let unreachable = |cause: String| Error::Unreachable {
            address: address.to_owned(),
            cause,
        };
        let path = PathAndQuery::from_maybe_shared(format!("{SERVICE}/{method}"));
        let path = path.map_err(|error| unreachable(error.to_string()))?;
        let service = self.dial.dial(address).map_err(unreachable)?;
        let mut grpc = Grpc::new(service);
        let answer = async {
            grpc.ready()
                .await
                .map_err(|error| Status::unavailable(error.to_string()))?;
            let codec = ProstCodec::<Q, A>::default();
            grpc.unary(Request::new(request), path, codec).await
        };
        let answer = self.clock.within(ANSWER_TIMEOUT, answer).await;
        let answer = answer.ok_or_else(|| unreachable("no answer in time".to_owned()))?;
        match answer {
            Ok(response) => Ok(response.into_inner()),
            Err(status) if is_unreachable(&status) => Err(unreachable(status.message().to_owned())),
            Err(status) => Err(Error::Refused {
                address: address.to_owned(),
                unknown_queue: status.code() == Code::NotFound,
                message: status.message().to_owned(),
            }),
        }
    }

    /// The patterns of the drains of a queue.
    async fn list_drains(
        &self,
        address: &str,
        queue: &SizeClassQueueName,
    ) -> Result<Vec<BTreeMap<String, String>>, Error> {
        let request = ListDrainsRequest {
            size_class_queue_name: Some(queue.clone()),
        };
        let answer: ListDrainsResponse = self.call(address, "ListDrains", request).await?;
        let drains = answer.drains.into_iter();
        Ok(drains.map(|drain| drain.worker_id_pattern).collect())
    }

    async fn list_workers(
        &self,
        address: &str,
        queue: &SizeClassQueueName,
    ) -> Result<Vec<WorkerFacts>, Error> {
        let mut workers = Vec::new();
        let mut start_after = None;
        for _ in 0..MAX_PAGES {
            let request = ListWorkersRequest {
                filter: Some(ListWorkersFilter {
                    kind: Some(WorkerFilterKind::All(queue.clone())),
                }),
                page_size: PAGE_SIZE,
                start_after: start_after.take(),
            };
            let page: ListWorkersResponse = self.call(address, "ListWorkers", request).await?;
            let last = page.workers.last().map(|worker| worker.id.clone());
            let count = page.workers.len();
            workers.extend(page.workers.into_iter().map(|worker| WorkerFacts {
                id: worker.id,
                executing: worker.current_operation.is_some(),
                drained: worker.drained,
            }));
            if count < PAGE_SIZE as usize {
                break;
            }
            start_after = last.map(|worker_id| WorkerPosition { worker_id });
        }
        Ok(workers)
    }
}

fn is_unreachable(status: &Status) -> bool {
    let codes = [
        Code::Unavailable,
        Code::DeadlineExceeded,
        Code::Cancelled,
        Code::Unknown,
        Code::Internal,
    ];
    codes.contains(&status.code())
}

impl<D> fmt::Debug for GrpcBuildQueue<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcBuildQueue").finish_non_exhaustive()
    }
}

impl<D: Dial> BuildQueue for GrpcBuildQueue<D> {
    fn queue<'a>(
        &'a self,
        scheduler: &'a str,
        queue: &'a QueueName,
    ) -> BoxFuture<'a, Result<QueueFacts, Error>> {
        Box::pin(async move {
            let name = message_of(queue);
            let drains = match self.list_drains(scheduler, &name).await {
                Ok(drains) => drains,
                // No worker has registered since the scheduler started, so there is nothing to drain.
                Err(Error::Refused {
                    unknown_queue: true,
                    ..
                }) => {
                    return Ok(QueueFacts {
                        unknown: true,
                        ..QueueFacts::default()
                    });
                }
                Err(error) => return Err(error),
            };
            let workers = self.list_workers(scheduler, &name).await?;
            let queues = self.queues(scheduler).await?;
            // A scheduler that was restarted in between has no drains any more, and its list of workers is
            // not about those that were read before.
            let kept = self.list_drains(scheduler, &name).await?;
            let operations = queues.iter().map(|it| it.queued + it.executing);
            Ok(QueueFacts {
                unknown: false,
                drains: drains
                    .into_iter()
                    .filter(|pattern| kept.contains(pattern))
                    .collect(),
                workers,
                operations: operations.sum(),
            })
        })
    }

    fn queues<'a>(&'a self, scheduler: &'a str) -> BoxFuture<'a, Result<Vec<QueueState>, Error>> {
        Box::pin(async move {
            let answer: ListPlatformQueuesResponse =
                self.call(scheduler, "ListPlatformQueues", ()).await?;
            let queues = answer.platform_queues.into_iter().flat_map(|platform| {
                let name = platform.name.unwrap_or_default();
                let queues = platform.size_class_queues.into_iter();
                queues.map(move |queue| {
                    let root = queue.root_invocation.unwrap_or_default();
                    let queued = root.queued_operations_count.unwrap_or_default();
                    QueueState {
                        name: name_of(&name, queue.size_class),
                        workers: queue.workers_count,
                        queued: queued.direct + queued.indirect,
                        executing: root.executing_workers_count,
                        drains: queue.drains_count,
                    }
                })
            });
            Ok(queues.collect())
        })
    }

    fn workers<'a>(
        &'a self,
        scheduler: &'a str,
        queue: &'a QueueName,
    ) -> BoxFuture<'a, Result<Vec<WorkerFacts>, Error>> {
        Box::pin(async move { self.list_workers(scheduler, &message_of(queue)).await })
    }

    fn set_drain<'a>(
        &'a self,
        scheduler: &'a str,
        queue: &'a QueueName,
        pattern: &'a BTreeMap<String, String>,
        drained: bool,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let request = AddOrRemoveDrainRequest {
                size_class_queue_name: Some(message_of(queue)),
                worker_id_pattern: pattern.clone(),
            };
            let method = if drained { "AddDrain" } else { "RemoveDrain" };
            match self.call::<_, ()>(scheduler, method, request).await {
                Err(Error::Refused {
                    unknown_queue: true,
                    ..
                }) => Ok(()),
                other => other,
            }
        })
    }
}

fn message_of(queue: &QueueName) -> SizeClassQueueName {
    let properties = queue.platform.iter().map(|property| Property {
        name: property.name.clone(),
        value: property.value.clone(),
    });
    SizeClassQueueName {
        platform_queue_name: Some(PlatformQueueName {
            instance_name_prefix: queue.instance_name_prefix.clone(),
            platform: Some(Platform {
                properties: properties.collect(),
            }),
        }),
        size_class: queue.size_class,
    }
}

fn name_of(name: &PlatformQueueName, size_class: u32) -> QueueName {
    let properties = name.platform.iter().flat_map(|it| &it.properties);
    let properties: Vec<_> = properties
        .map(|it| PlatformProperty::new(&*it.name, &*it.value))
        .collect();
    QueueName {
        instance_name_prefix: name.instance_name_prefix.clone(),
        platform: ordered(&properties),
        size_class,
    }
}
