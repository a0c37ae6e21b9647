//! The calls of the service.

use std::{
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response};
use neap_kit::client::Body;
use tonic::{Status, server::Grpc};
use tonic_prost::ProstCodec;

use super::{
    BuildQueue, QueueContent, WorkerId, is_drained,
    messages::{
        Count, Drain, DrainRequest, FilterKind, Invocation, ListDrainsRequest, ListDrainsResponse,
        ListQueuesResponse, ListWorkersRequest, ListWorkersResponse, OperationMessage, Page,
        PlatformQueue, SizeClassQueue, SizeClassQueueName, WorkerMessage,
    },
};

const SERVICE: &str = "/buildbarn.buildqueuestate.BuildQueueState/";
const MAX_PAGE: usize = 1000;

pub(super) async fn respond(queue: Arc<BuildQueue>, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let method = path.strip_prefix(SERVICE).unwrap_or_default();
    match method {
        "ListPlatformQueues" => unary(queue, request, list_queues).await,
        "ListDrains" => unary(queue, request, list_drains).await,
        "ListWorkers" => unary(queue, request, list_workers).await,
        "AddDrain" => unary(queue, request, add_drain).await,
        "RemoveDrain" => unary(queue, request, remove_drain).await,
        _ => {
            let message = format!("{path} is not emulated");
            Status::unimplemented(message)
                .into_http::<tonic::body::Body>()
                .map(Body::new)
        }
    }
}

type Call<Q, A> = fn(&mut QueueContent, Q) -> Result<A, Status>;

async fn unary<Q, A>(
    queue: Arc<BuildQueue>,
    request: Request<Body>,
    call: Call<Q, A>,
) -> Response<Body>
where
    Q: prost::Message + Default + Send + 'static,
    A: prost::Message + Default + Send + 'static,
{
    let mut grpc = Grpc::new(ProstCodec::<A, Q>::default());
    let response = grpc.unary(Method { queue, call }, request).await;
    response.map(Body::new)
}

struct Method<Q, A> {
    queue: Arc<BuildQueue>,
    call: Call<Q, A>,
}

impl<Q, A> tower::Service<tonic::Request<Q>> for Method<Q, A> {
    type Response = tonic::Response<A>;
    type Error = Status;
    type Future = Ready<Result<tonic::Response<A>, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: tonic::Request<Q>) -> Self::Future {
        let mut state = self.queue.state.lock();
        ready((self.call)(&mut state, request.into_inner()).map(tonic::Response::new))
    }
}

fn known(
    state: &QueueContent,
    queue: Option<SizeClassQueueName>,
) -> Result<SizeClassQueueName, Status> {
    let queue = queue.ok_or_else(|| Status::invalid_argument("no queue is named"))?;
    if state.queues.contains(&queue) {
        Ok(queue)
    } else {
        Err(Status::not_found("no workers exist for this queue"))
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "every method of the service has one type"
)]
fn list_queues(state: &mut QueueContent, (): ()) -> Result<ListQueuesResponse, Status> {
    let queues = state.queues.iter().map(|queue| {
        let workers = state.workers.values().filter(|it| it.queue == *queue);
        let (mut executing, mut idle) = (0, 0);
        for worker in workers {
            if worker.operation.is_some() {
                executing += 1;
            } else {
                idle += 1;
            }
        }
        let drains = state.drains.iter().filter(|(it, _)| it == queue).count();
        let queued = state.queued.iter().filter(|(it, _)| it == queue).count();
        PlatformQueue {
            name: queue.platform_queue_name.clone(),
            size_classes: vec![SizeClassQueue {
                size_class: queue.size_class,
                workers: executing + idle,
                drains: u32::try_from(drains).unwrap_or(u32::MAX),
                root: Some(Invocation {
                    queued: Some(Count {
                        direct: u32::try_from(queued).unwrap_or(u32::MAX),
                        indirect: 0,
                    }),
                    executing,
                    idle,
                }),
            }],
        }
    });
    Ok(ListQueuesResponse {
        queues: queues.collect(),
    })
}

fn list_drains(
    state: &mut QueueContent,
    request: ListDrainsRequest,
) -> Result<ListDrainsResponse, Status> {
    let queue = known(state, request.queue)?;
    let drains = state.drains.iter().filter(|(it, _)| *it == queue);
    Ok(ListDrainsResponse {
        drains: drains
            .map(|(_, pattern)| Drain {
                pattern: pattern.clone(),
            })
            .collect(),
    })
}

fn list_workers(
    state: &mut QueueContent,
    request: ListWorkersRequest,
) -> Result<ListWorkersResponse, Status> {
    let Some(FilterKind::All(queue)) = request.filter.and_then(|filter| filter.kind) else {
        return Err(Status::invalid_argument(
            "only the workers of a queue are listed",
        ));
    };
    let queue = known(state, Some(queue))?;
    // Old lists know nothing of drains that are newer.
    let (workers, drains) = match &state.stale {
        Some(stale) => (stale, &[][..]),
        None => (&state.workers, &state.drains[..]),
    };
    let all: Vec<_> = workers.iter().filter(|(_, it)| it.queue == queue).collect();
    let after = request.start_after.map(|position| position.id);
    let begin = after.map_or(0, |after| all.partition_point(|(id, _)| **id <= after));
    let size = usize::try_from(request.page_size)
        .unwrap_or(MAX_PAGE)
        .min(MAX_PAGE);
    let page = all.iter().skip(begin).take(size);
    let workers = page.map(|(id, worker)| WorkerMessage {
        id: (*id).clone(),
        operation: worker
            .operation
            .clone()
            .map(|name| OperationMessage { name }),
        drained: is_drained(drains, &queue, id),
    });
    Ok(ListWorkersResponse {
        workers: workers.collect(),
        page: Some(Page {
            start_index: u32::try_from(begin).unwrap_or(u32::MAX),
            total_entries: u32::try_from(all.len()).unwrap_or(u32::MAX),
        }),
    })
}

fn drain_of(
    state: &QueueContent,
    request: DrainRequest,
) -> Result<(SizeClassQueueName, WorkerId), Status> {
    Ok((known(state, request.queue)?, request.pattern))
}

fn add_drain(state: &mut QueueContent, request: DrainRequest) -> Result<(), Status> {
    let drain = drain_of(state, request)?;
    if !state.drains.contains(&drain) {
        state.drains.push(drain);
    }
    Ok(())
}

fn remove_drain(state: &mut QueueContent, request: DrainRequest) -> Result<(), Status> {
    let drain = drain_of(state, request)?;
    state.drains.retain(|it| *it != drain);
    Ok(())
}
