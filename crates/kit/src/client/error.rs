//! Why a call has no result.

use std::{error::Error as StdError, time::Duration};

use http::StatusCode;
use tower::BoxError;

use super::redirect::RedirectRefusal;

/// Why a call has no result. Addresses are shown without their query, which may carry secrets.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the request is not valid.
    #[error("{url:?} cannot be called: {problem}")]
    Address {
        /// The address, without its query.
        url: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A header of the request is not valid.
    #[error("the request to {url} has a header that is not valid")]
    Header {
        /// The address.
        url: String,
    },
    /// There was no connection.
    #[error("{url} cannot be reached")]
    NotReached {
        /// The address.
        url: String,
        /// The cause.
        #[source]
        source: BoxError,
    },
    /// The server has a certificate that is not trusted, or speaks another protocol.
    #[error("{url} is not trusted")]
    Untrusted {
        /// The address.
        url: String,
        /// The cause.
        #[source]
        source: BoxError,
    },
    /// The connection broke. The server may have carried out the request.
    #[error("the connection to {url} broke")]
    Interrupted {
        /// The address.
        url: String,
        /// The cause.
        #[source]
        source: BoxError,
    },
    /// There was no answer in time. The server may have carried out the request.
    #[error("{url} did not answer within {after:?}")]
    TimedOut {
        /// The address.
        url: String,
        /// The time that it had.
        after: Duration,
    },
    /// The host failed repeatedly, and the request was not sent.
    #[error("{host} failed repeatedly; it is not called for another {retry_after:?}")]
    CircuitOpen {
        /// The host.
        host: String,
        /// The time until it is called again.
        retry_after: Duration,
    },
    /// The response is longer than the caller accepts.
    #[error("the response of {url} has more than {limit} bytes")]
    TooLong {
        /// The address.
        url: String,
        /// The number of bytes.
        limit: usize,
    },
    /// The response has a status that is not a success.
    #[error("{url} answered {status}{}", with_colon(.body))]
    Status {
        /// The address.
        url: String,
        /// The status.
        status: StatusCode,
        /// The beginning of the body.
        body: String,
        /// The time after which the server wants to see the next request.
        retry_after: Option<Duration>,
    },
    /// A redirect is not followed.
    #[error("a redirect from {url} is not followed")]
    Redirect {
        /// The address that redirects.
        url: String,
        /// The reason.
        #[source]
        source: RedirectRefusal,
    },
    /// The body of the request could not be read.
    #[error("what was to be sent to {url} cannot be read")]
    RequestBody {
        /// The address.
        url: String,
        /// The cause.
        #[source]
        source: BoxError,
    },
    /// The response is not the JSON that the caller expects.
    #[error("the response of {url} cannot be parsed")]
    Json {
        /// The address.
        url: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
}

fn with_colon(body: &str) -> String {
    if body.is_empty() {
        String::new()
    } else {
        format!(": {body}")
    }
}

impl Error {
    /// Whether the same call may succeed later although nothing was corrected.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NotReached { .. }
            | Self::Interrupted { .. }
            | Self::TimedOut { .. }
            | Self::CircuitOpen { .. } => true,
            Self::Status { status, .. } => {
                status.is_server_error()
                    || matches!(
                        *status,
                        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT
                    )
            }
            Self::Address { .. }
            | Self::Header { .. }
            | Self::Untrusted { .. }
            | Self::TooLong { .. }
            | Self::Redirect { .. }
            | Self::RequestBody { .. }
            | Self::Json { .. } => false,
        }
    }

    /// The time after which the server, or this client, allows the next call.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::CircuitOpen { retry_after, .. } => Some(*retry_after),
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// The status of the response, if that is the problem.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// Why a transport has no response.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// There was no connection, so the server did not see the request.
    #[error("no connection")]
    NotSent(#[source] BoxError),
    /// The server is not the one it should be.
    #[error("the server is not trusted")]
    Untrusted(#[source] BoxError),
    /// The connection broke. The server may have carried out the request.
    #[error("the connection broke")]
    Interrupted(#[source] BoxError),
}

/// Whether an error of type `E` is the cause of `error`.
pub(super) fn has_cause<E: StdError + 'static>(error: &(dyn StdError + 'static)) -> bool {
    let mut error = Some(error);
    while let Some(current) = error {
        if current.is::<E>() {
            return true;
        }
        // An io::Error shows the source of what it wraps, and not what it wraps.
        let wrapped = current.downcast_ref::<std::io::Error>();
        if let Some(wrapped) = wrapped.and_then(std::io::Error::get_ref)
            && has_cause::<E>(wrapped)
        {
            return true;
        }
        error = current.source();
    }
    false
}
