//! Bodies: requests are read with a limit and a deadline, answers are sent whole or as they come.

use std::{
    fmt,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf, Bytes};
use futures::{StreamExt, stream::BoxStream};
use http::StatusCode;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::{
    environment::Clock,
    status::{ApiError, Result},
};

/// The largest request body.
pub(super) const LARGEST: usize = 3 << 20;
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

/// Reads a whole request body, within the limit and in time.
pub(super) async fn read<B>(body: B, clock: &dyn Clock) -> Result<Bytes>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let body = pin!(body);
    tokio::select! {
        biased;
        read = whole(body) => read,
        () = clock.sleep(PATIENCE) => Err(ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "Timeout",
            format!("the body did not arrive within {} s", PATIENCE.as_secs()),
        )),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads bodies, with a limit"
)]
async fn whole<B>(mut body: Pin<&mut B>) -> Result<Bytes>
where
    B: http_body::Body,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if body.size_hint().lower() <= LARGEST as u64 {
        match Limited::new(body.as_mut(), LARGEST).collect().await {
            Ok(collected) => return Ok(collected.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => {}
            Err(error) => {
                let message = format!("the body could not be read: {error}");
                return Err(ApiError::bad_request(message));
            }
        }
    }
    let mut size = 0;
    while size < DISCARDED
        && let Some(Ok(frame)) = body.frame().await
    {
        size += frame.data_ref().map_or(0, Buf::remaining);
    }
    Err(too_large())
}

fn too_large() -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "RequestEntityTooLarge",
        format!("Request entity too large: limit is {LARGEST}"),
    )
}
