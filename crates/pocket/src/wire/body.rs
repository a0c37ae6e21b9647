//! Bodies: requests are read with a limit and a timeout, responses are sent whole or as a stream.

use std::{
    fmt,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::{StreamExt, stream::BoxStream};
use http::StatusCode;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::half_close::Answering;
use crate::{
    environment::Clock,
    status::{ApiError, Result},
};

/// Bytes of a request body, at most.
const MAX_BODY_BYTES: usize = 3 << 20;
/// Bytes of all bodies of one connection that do not count against the shared budget.
const UNCOUNTED_BODY_BYTES: usize = 64 << 10;
/// Bytes of all other bodies together, at most.
const SHARED_BODY_BYTES: usize = 128 << 20;
/// Bytes of a body that is too large which are still read and discarded: a client that is cut off
/// while it sends never receives the error.
const MAX_DISCARDED_BYTES: usize = 4 * MAX_BODY_BYTES;
/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);

/// The body of a response.
pub struct Body {
    inner: Inner,
    /// Held until the body is sent or given up.
    answering: Option<Answering>,
}

enum Inner {
    Full(Option<Bytes>),
    Stream(BoxStream<'static, Bytes>),
}

impl Body {
    /// A complete body.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self::of(Inner::Full(Some(bytes.into())))
    }

    /// A streamed body.
    pub fn stream(stream: BoxStream<'static, Bytes>) -> Self {
        Self::of(Inner::Stream(stream))
    }

    fn of(inner: Inner) -> Self {
        Self {
            inner,
            answering: None,
        }
    }

    /// The same body, which counts as an open answer of its connection.
    pub(super) fn answering(mut self, answering: Option<Answering>) -> Self {
        self.answering = answering;
        self
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut self.inner {
            Inner::Full(bytes) => Poll::Ready(
                bytes
                    .take()
                    .filter(|b| !b.is_empty())
                    .map(|b| Ok(Frame::data(b))),
            ),
            Inner::Stream(stream) => stream
                .poll_next_unpin(context)
                .map(|next| next.map(|b| Ok(Frame::data(b)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.inner, Inner::Full(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Inner::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.inner {
            Inner::Full(bytes) => write!(f, "Body({:?} bytes)", bytes.as_ref().map(Bytes::len)),
            Inner::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

/// The memory budget for request bodies that are being read and handled, so that many large ones at
/// once cannot take all memory. Small bodies do not count, unless one connection has many of them.
#[derive(Debug, Clone)]
pub(super) struct BodyBudget {
    together: Arc<Semaphore>,
    /// The connection's own budget; without one, each body has it.
    own: Option<Arc<Semaphore>>,
}

impl Default for BodyBudget {
    fn default() -> Self {
        Self {
            together: Arc::new(Semaphore::new(SHARED_BODY_BYTES)),
            own: None,
        }
    }
}

/// The memory reserved by a body: from its connection's budget, and from the shared one.
#[derive(Debug, Default)]
struct ReservedMemory {
    own: Option<OwnedSemaphorePermit>,
    shared: Option<OwnedSemaphorePermit>,
}

/// A request body, and its reserved memory.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    pub(super) bytes: Bytes,
    _room: ReservedMemory,
}

/// Reads a whole request body, within the limit and in time. `left` resolves when the client can send
/// nothing more; by then all that it has sent can be read.
pub(super) async fn read<B>(
    body: B,
    room: &BodyBudget,
    clock: &dyn Clock,
    left: impl Future<Output = ()>,
) -> Result<Incoming>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let body = pin!(body);
    tokio::select! {
        biased;
        read = whole(body, room) => read,
        () = left => Err(ApiError::bad_request("the body could not be read: it was not sent to its end")),
        () = clock.sleep(BODY_TIMEOUT) => Err(ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "Timeout",
            format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs()),
        )),
    }
}

async fn whole<B>(mut body: Pin<&mut B>, room: &BodyBudget) -> Result<Incoming>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut held = ReservedMemory::default();
    let mut fits = body.size_hint().lower() <= MAX_BODY_BYTES as u64;
    let announced = body.size_hint().exact().filter(|_| fits);
    // Allocated at once: growing step by step would hold the outgrown buffer too. Memory that is
    // never written costs nothing.
    let large = announced.filter(|&size| size > UNCOUNTED_BODY_BYTES as u64);
    let mut bytes = BytesMut::with_capacity(large.map_or(0, |size| size as usize));
    while fits && let Some(mut data) = part(body.as_mut()).await? {
        let size = bytes.len() + data.remaining();
        fits = size <= MAX_BODY_BYTES;
        if !fits {
            break;
        }
        room.make(size, &mut held)?;
        if bytes.is_empty() && body.is_end_stream() {
            let bytes = data.copy_to_bytes(size);
            return Ok(Incoming { bytes, _room: held });
        }
        // Copied: a part keeps alive all that was received together with it.
        bytes.put(data);
    }
    if fits {
        let bytes = bytes.freeze();
        return Ok(Incoming { bytes, _room: held });
    }
    drop((bytes, held));
    discard(body).await
}

/// The next part of a body that has any data.
async fn part<B>(mut body: Pin<&mut B>) -> Result<Option<B::Data>>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let error: Box<dyn std::error::Error + Send + Sync> = error.into();
            ApiError::bad_request(format!("the body could not be read: {error}"))
        })?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

impl BodyBudget {
    /// The budget of one connection, which has a little of its own.
    pub(super) fn of_connection(&self) -> Self {
        Self {
            together: self.together.clone(),
            own: Some(Arc::new(Semaphore::new(UNCOUNTED_BODY_BYTES))),
        }
    }

    /// Ensures that `held` reserves `size` bytes.
    fn make(&self, size: usize, held: &mut ReservedMemory) -> Result<()> {
        let count = |permit: &Option<OwnedSemaphorePermit>| {
            permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
        };
        let free = match &self.own {
            Some(_) => count(&held.own),
            None => UNCOUNTED_BODY_BYTES,
        };
        let wants = size.saturating_sub(free + count(&held.shared));
        if wants == 0 {
            return Ok(());
        }
        let wants = u32::try_from(wants).unwrap_or(u32::MAX);
        let take = |from: &Arc<Semaphore>| from.clone().try_acquire_many_owned(wants).ok();
        if let Some(more) = self.own.as_ref().and_then(take) {
            add(&mut held.own, more);
            return Ok(());
        }
        let more = take(&self.together).ok_or_else(crowded)?;
        add(&mut held.shared, more);
        Ok(())
    }
}

fn add(held: &mut Option<OwnedSemaphorePermit>, more: OwnedSemaphorePermit) {
    match held {
        Some(held) => held.merge(more),
        None => *held = Some(more),
    }
}

async fn discard<B: http_body::Body>(mut body: Pin<&mut B>) -> Result<Incoming> {
    let mut size = 0;
    while size < MAX_DISCARDED_BYTES
        && let Some(Ok(frame)) = body.frame().await
    {
        size += frame.data_ref().map_or(0, Buf::remaining);
    }
    Err(too_large())
}

fn crowded() -> ApiError {
    let message = "too many large requests at once, please try again later";
    let mut error = ApiError::new(
        StatusCode::TOO_MANY_REQUESTS,
        "TooManyRequests",
        message.to_owned(),
    );
    error.retry_after = Some(1);
    error
}

fn too_large() -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "RequestEntityTooLarge",
        format!("Request entity too large: limit is {MAX_BODY_BYTES}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much of the shared budget bodies of these sizes take.
    fn taken(room: &BodyBudget, sizes: &[usize]) -> usize {
        let mut all = Vec::new();
        for &size in sizes {
            let mut held = ReservedMemory::default();
            // Received in two parts.
            room.make(size / 2, &mut held).unwrap();
            room.make(size, &mut held).unwrap();
            all.push(held);
        }
        SHARED_BODY_BYTES - room.together.available_permits()
    }

    #[test]
    fn many_small_bodies_of_one_connection_take_room() {
        let (small, room) = (UNCOUNTED_BODY_BYTES, BodyBudget::default());
        let connection = room.of_connection();
        assert_eq!(taken(&connection, &[small]), 0);
        assert_eq!(taken(&connection, &[small]), 0, "it was not given back");
        assert_eq!(taken(&connection, &[small; 10]), 9 * small);
        assert_eq!(taken(&connection, &[4 * small]), 4 * small);
        assert_eq!(taken(&room, &[small; 10]), 0);
        assert_eq!(taken(&room, &[4 * small]), 3 * small);
        let mut held = ReservedMemory::default();
        assert!(connection.make(SHARED_BODY_BYTES + 1, &mut held).is_err());
    }
}
