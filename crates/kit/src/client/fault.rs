//! Faults of the systems that are called, for tests and trials to inject.
//!
//! What can go wrong between a client and a system has one vocabulary: the emulators' fault books and
//! the trial's plans both use it.

use std::{fmt, time::Duration};

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderValue, Request, Response, StatusCode, header::RETRY_AFTER};
use tower::{BoxError, ServiceExt};

use super::{body::Body, error::TransportError, transport::Transport};
use crate::clock::Clock;

/// The longest request that is delivered twice. A longer one is delivered once.
const MAX_DUPLICATED: usize = 64 << 20;

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fault {
    /// There is no connection.
    Unreachable,
    /// The connection breaks before the system has seen the request.
    RequestLost,
    /// The system carries out the request, and the connection breaks before the answer.
    AnswerLost,
    /// The system refuses the request with this status, and does nothing.
    Refused(Refusal),
    /// The system carries out the request, and answers with this status all the same.
    FailedAfterwards(Refusal),
    /// The answer is late by this time.
    Slow(Duration),
    /// There is never an answer, and the request is not carried out.
    Silent,
    /// The body of the answer breaks off after this number of bytes.
    Truncated(u64),
    /// One byte of the answer's body is another, at about this position.
    Corrupted(u64),
    /// The system gets the request twice; the second answer arrives.
    Twice,
}

/// A status that stands in for the real answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Refusal {
    /// The status.
    pub status: StatusCode,
    /// The seconds that Retry-After shows.
    pub retry_after: Option<u64>,
}

impl Refusal {
    /// A status without Retry-After.
    pub fn of(status: StatusCode) -> Self {
        Self {
            status,
            retry_after: None,
        }
    }

    /// The answer that the caller sees.
    pub fn response(self) -> Response<Body> {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status;
        if let Some(seconds) = self.retry_after {
            let seconds = HeaderValue::from(seconds);
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
        response
    }
}

impl Fault {
    /// Sends `request` to `system`, with this fault.
    pub async fn strike(
        self,
        clock: Clock,
        system: Transport,
        request: Request<Body>,
    ) -> Result<Response<Body>, TransportError> {
        match self {
            Self::Unreachable => Err(TransportError::NotSent(injected(self))),
            Self::RequestLost => Err(TransportError::Interrupted(injected(self))),
            Self::AnswerLost => {
                finish(system, request).await?;
                Err(TransportError::Interrupted(injected(self)))
            }
            Self::Refused(refusal) => Ok(refusal.response()),
            Self::FailedAfterwards(refusal) => {
                finish(system, request).await?;
                Ok(refusal.response())
            }
            Self::Slow(time) => {
                let response = system.oneshot(request).await;
                clock.sleep(time).await;
                response
            }
            Self::Silent => std::future::pending().await,
            Self::Truncated(_) | Self::Corrupted(_) => {
                Ok(self.damage(system.oneshot(request).await?))
            }
            Self::Twice => twice(system, request).await,
        }
    }
}

impl Fault {
    /// An answer that is there already, with its body damaged by [`Fault::Truncated`] or
    /// [`Fault::Corrupted`]. Other faults leave it as it is.
    pub fn damage(self, response: Response<Body>) -> Response<Body> {
        match self {
            Self::Truncated(length) => response.map(|body| truncated(body, length)),
            Self::Corrupted(position) => response.map(|body| corrupted(body, position)),
            _ => response,
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("injected fault: {0}")]
struct Injected(Fault);

fn injected(fault: Fault) -> BoxError {
    Box::new(Injected(fault))
}

/// Lets the system finish, also where it works while its answer is read.
async fn finish(system: Transport, request: Request<Body>) -> Result<(), TransportError> {
    let mut body = system.oneshot(request).await?.into_body();
    while let Some(Ok(_)) = body.chunk().await {}
    Ok(())
}

async fn twice(
    system: Transport,
    request: Request<Body>,
) -> Result<Response<Body>, TransportError> {
    let (head, body) = request.into_parts();
    let longest = http_body::Body::size_hint(&body).upper();
    if longest.is_some_and(|length| length > MAX_DUPLICATED as u64) {
        return system.oneshot(Request::from_parts(head, body)).await;
    }
    let content = body.bytes(MAX_DUPLICATED).await;
    let content = content.map_err(|error| TransportError::Interrupted(error.into()))?;
    let request = || Request::from_parts(head.clone(), Body::from(content.clone()));
    finish(system.clone(), request()).await?;
    system.oneshot(request()).await
}

fn truncated(body: Body, length: u64) -> Body {
    let mut left = length;
    let announced = http_body::Body::size_hint(&body).exact();
    let beginning = body.into_stream().scan((), move |(), chunk| {
        if left == 0 {
            return std::future::ready(None);
        }
        let chunk = chunk.map(|chunk: Bytes| {
            let kept = chunk.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            chunk.slice(..kept)
        });
        left -= chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        std::future::ready(Some(chunk))
    });
    let end = futures::stream::iter([Err(injected(Fault::Truncated(length)))]);
    announce(Body::from_stream(beginning.chain(end)), announced)
}

fn corrupted(body: Body, position: u64) -> Body {
    let announced = http_body::Body::size_hint(&body).exact();
    let mut passed = 0_u64;
    let mut done = false;
    let changed = body.into_stream().map(move |chunk| {
        let chunk = chunk?;
        let begin = passed;
        passed += chunk.len() as u64;
        // A body that is shorter than the position is changed in its first part.
        let first_and_last = begin == 0 && announced.is_none_or(|length| length <= position);
        if done || chunk.is_empty() || !(first_and_last || passed > position) {
            return Ok(chunk);
        }
        done = true;
        let mut bytes = chunk.to_vec();
        let at = usize::try_from(position.saturating_sub(begin)).unwrap_or_default();
        let at = at % bytes.len();
        bytes[at] ^= 0x20;
        Ok::<_, BoxError>(Bytes::from(bytes))
    });
    announce(Body::from_stream(changed), announced)
}

fn announce(body: Body, length: Option<u64>) -> Body {
    match length {
        Some(length) => body.with_length(length),
        None => body,
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable => f.write_str("unreachable"),
            Self::RequestLost => f.write_str("request lost"),
            Self::AnswerLost => f.write_str("answer lost"),
            Self::Refused(refusal) => write!(f, "refused with {}", refusal.status.as_u16()),
            Self::FailedAfterwards(refusal) => {
                write!(f, "carried out, and {}", refusal.status.as_u16())
            }
            Self::Slow(time) => write!(f, "late by {time:?}"),
            Self::Silent => f.write_str("no answer"),
            Self::Truncated(length) => write!(f, "truncated after {length} bytes"),
            Self::Corrupted(position) => write!(f, "corrupted at byte {position}"),
            Self::Twice => f.write_str("delivered twice"),
        }
    }
}
