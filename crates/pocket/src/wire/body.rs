//! Bodies: requests are read with a limit and a deadline, answers are sent whole or as they come.

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

use crate::{
    environment::Clock,
    status::{ApiError, Result},
};

/// The largest request body.
const LARGEST: usize = 3 << 20;
/// The bodies of one connection need no room up to this size, all together.
const SMALL: usize = 64 << 10;
/// The room for all others together.
const TOGETHER: usize = 128 << 20;
/// How much of a body that is too large is still taken in and thrown away: a client that is cut off
/// while it sends never hears why.
const DISCARDED: usize = 4 * LARGEST;
/// How long a client may take to send a body.
const PATIENCE: Duration = Duration::from_mins(1);

/// The body of an answer.
pub struct Body(Inner);

enum Inner {
    Full(Option<Bytes>),
    Stream(BoxStream<'static, Bytes>),
}

impl Body {
    /// A body that is there already.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Inner::Full(Some(bytes.into())))
    }

    /// A body that is still being made.
    pub fn stream(stream: BoxStream<'static, Bytes>) -> Self {
        Self(Inner::Stream(stream))
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut self.0 {
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
        matches!(&self.0, Inner::Full(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Inner::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Full(bytes) => write!(f, "Body({:?} bytes)", bytes.as_ref().map(Bytes::len)),
            Inner::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

/// Room for the bodies that are being read and worked on, so that many large ones at once cannot
/// take all memory. What is small needs none, but many small ones of one connection are not small.
#[derive(Debug, Clone)]
pub(super) struct Room {
    together: Arc<Semaphore>,
    /// What the connection has of its own; without one, each body has it.
    own: Option<Arc<Semaphore>>,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            together: Arc::new(Semaphore::new(TOGETHER)),
            own: None,
        }
    }
}

/// The room that a body takes: of its connection's own, and of everybody's.
#[derive(Debug, Default)]
struct Held {
    own: Option<OwnedSemaphorePermit>,
    shared: Option<OwnedSemaphorePermit>,
}

/// A request body, and the room it takes.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    pub(super) bytes: Bytes,
    _room: Held,
}

/// Reads a whole request body, within the limit and in time.
pub(super) async fn read<B>(body: B, room: &Room, clock: &dyn Clock) -> Result<Incoming>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let body = pin!(body);
    tokio::select! {
        biased;
        read = whole(body, room) => read,
        () = clock.sleep(PATIENCE) => Err(ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "Timeout",
            format!("the body did not arrive within {} s", PATIENCE.as_secs()),
        )),
    }
}

async fn whole<B>(mut body: Pin<&mut B>, room: &Room) -> Result<Incoming>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut held = Held::default();
    let mut fits = body.size_hint().lower() <= LARGEST as u64;
    let announced = body.size_hint().exact().filter(|_| fits);
    // Not grown step by step, which would hold what is outgrown too. What never comes is not paid
    // for: memory is taken when it is written.
    let large = announced.filter(|&size| size > SMALL as u64);
    let mut bytes = BytesMut::with_capacity(large.map_or(0, |size| size as usize));
    while fits && let Some(mut data) = part(body.as_mut()).await? {
        let size = bytes.len() + data.remaining();
        fits = size <= LARGEST;
        if !fits {
            break;
        }
        room.make(size, &mut held)?;
        if bytes.is_empty() && body.is_end_stream() {
            let bytes = data.copy_to_bytes(size);
            return Ok(Incoming { bytes, _room: held });
        }
        // Copied: a part keeps all that was received together with it.
        bytes.put(data);
    }
    if fits {
        let bytes = bytes.freeze();
        return Ok(Incoming { bytes, _room: held });
    }
    drop((bytes, held));
    discard(body).await
}

/// The next part of a body that has any data in it.
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

impl Room {
    /// The room of one connection, which has a little of its own.
    pub(super) fn of_connection(&self) -> Self {
        Self {
            together: self.together.clone(),
            own: Some(Arc::new(Semaphore::new(SMALL))),
        }
    }

    /// Sees to it that `held` is room for `size` bytes.
    fn make(&self, size: usize, held: &mut Held) -> Result<()> {
        let count = |permit: &Option<OwnedSemaphorePermit>| {
            permit.as_ref().map_or(0, OwnedSemaphorePermit::num_permits)
        };
        let free = match &self.own {
            Some(_) => count(&held.own),
            None => SMALL,
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
    while size < DISCARDED
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
        format!("Request entity too large: limit is {LARGEST}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How much of everybody's room bodies of these sizes take.
    fn taken(room: &Room, sizes: &[usize]) -> usize {
        let mut all = Vec::new();
        for &size in sizes {
            let mut held = Held::default();
            // As it comes: in two parts.
            room.make(size / 2, &mut held).unwrap();
            room.make(size, &mut held).unwrap();
            all.push(held);
        }
        TOGETHER - room.together.available_permits()
    }

    #[test]
    fn many_small_bodies_of_one_connection_take_room() {
        let (small, room) = (SMALL, Room::default());
        let connection = room.of_connection();
        assert_eq!(taken(&connection, &[small]), 0);
        assert_eq!(taken(&connection, &[small]), 0, "it was not given back");
        assert_eq!(taken(&connection, &[small; 10]), 9 * small);
        assert_eq!(taken(&connection, &[4 * small]), 4 * small);
        assert_eq!(taken(&room, &[small; 10]), 0);
        assert_eq!(taken(&room, &[4 * small]), 3 * small);
        let mut held = Held::default();
        assert!(connection.make(TOGETHER + 1, &mut held).is_err());
    }
}
