//! Whether a call is tried again, and when: pure.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header::RETRY_AFTER};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};

/// Which attempts are repeated, how often, and after which delay.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// The number of attempts, the first included.
    pub max_attempts: u32,
    /// The longest delay before the second attempt; it doubles with each attempt.
    pub first_backoff: Duration,
    /// The longest delay that this side chooses.
    pub max_backoff: Duration,
    /// The longest Retry-After that is waited for. A longer one is left to the caller, who can wait
    /// without a request in hand.
    pub max_retry_after: Duration,
    /// The time that one attempt has, where the body of the request comes from memory.
    pub attempt_timeout: Duration,
    /// The statuses after which a call is tried again.
    pub statuses: Vec<StatusCode>,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            first_backoff: Duration::from_millis(200),
            max_backoff: Duration::from_secs(5),
            max_retry_after: Duration::from_secs(20),
            attempt_timeout: Duration::from_secs(15),
            statuses: vec![
                StatusCode::REQUEST_TIMEOUT,
                StatusCode::TOO_MANY_REQUESTS,
                StatusCode::INTERNAL_SERVER_ERROR,
                StatusCode::BAD_GATEWAY,
                StatusCode::SERVICE_UNAVAILABLE,
                StatusCode::GATEWAY_TIMEOUT,
            ],
        }
    }
}

/// What is known about a call after an attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attempt {
    /// Its number; the first is 1.
    pub number: u32,
    /// What became of it.
    pub result: AttemptResult,
    /// Whether carrying out the call twice has the effect of once.
    pub idempotent: bool,
    /// Whether the body of the request can be sent again.
    pub replayable: bool,
    /// The time until the deadline of the call.
    pub remaining: Duration,
}

/// What became of an attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AttemptResult {
    /// There was an answer.
    Answered {
        /// Its status.
        status: StatusCode,
        /// The time after which the server wants to see the next request.
        retry_after: Option<Duration>,
    },
    /// There was no connection, so the server did not see the request.
    NotSent,
    /// The server is not the one it should be, or speaks another protocol.
    Untrusted,
    /// The connection broke. The server may have carried out the request.
    Interrupted,
    /// There was no answer in time. The server may have carried out the request.
    TimedOut,
}

/// What to do after an attempt.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Return its result, for this reason.
    Return(FinalReason),
    /// Try again after this time.
    RetryAfter(Duration),
}

/// Why a result is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinalReason {
    /// Another attempt would not change the answer.
    Settled,
    /// The last attempt was made.
    AttemptsExhausted,
    /// The server may have carried out the request, and twice is not the same as once.
    NotIdempotent,
    /// The body of the request was a stream and is gone.
    BodyGone,
    /// The server wants a longer pause than the policy waits for.
    RetryAfterTooLong,
    /// The deadline comes before the next attempt.
    DeadlineTooClose,
}

impl RetryPolicy {
    /// A policy that makes one attempt.
    pub fn never() -> Self {
        Self {
            max_attempts: 1,
            ..Self::default()
        }
    }

    /// What to do after this attempt. `jitter` is between 0 and 1, and spreads the attempts of many
    /// clients over the delay.
    pub fn decide(&self, attempt: &Attempt, jitter: f64) -> Decision {
        if !self.is_retryable(attempt.result) {
            return Decision::Return(FinalReason::Settled);
        }
        if !attempt.idempotent && may_have_happened(attempt.result) {
            return Decision::Return(FinalReason::NotIdempotent);
        }
        if attempt.number >= self.max_attempts {
            return Decision::Return(FinalReason::AttemptsExhausted);
        }
        if !attempt.replayable {
            return Decision::Return(FinalReason::BodyGone);
        }
        let chosen = self.backoff(attempt.number, jitter);
        let delay = match attempt.result {
            AttemptResult::Answered {
                retry_after: Some(wanted),
                ..
            } => {
                if wanted > self.max_retry_after {
                    return Decision::Return(FinalReason::RetryAfterTooLong);
                }
                // Never earlier than the server wants, and not all clients at the same moment.
                wanted + chosen.min(wanted / 4)
            }
            _ => chosen,
        };
        if delay >= attempt.remaining {
            return Decision::Return(FinalReason::DeadlineTooClose);
        }
        Decision::RetryAfter(delay)
    }

    fn is_retryable(&self, result: AttemptResult) -> bool {
        match result {
            AttemptResult::Answered { status, .. } => self.statuses.contains(&status),
            AttemptResult::Untrusted => false,
            AttemptResult::NotSent | AttemptResult::Interrupted | AttemptResult::TimedOut => true,
        }
    }

    /// Between half of the full delay and the full delay.
    fn backoff(&self, attempt: u32, jitter: f64) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        let full = self.first_backoff.saturating_mul(1 << doublings);
        let half = full.min(self.max_backoff) / 2;
        half + half.mul_f64(jitter.clamp(0.0, 1.0))
    }
}

/// Whether the server may have carried out the request. A server that says "too many requests" has
/// refused it before.
fn may_have_happened(result: AttemptResult) -> bool {
    match result {
        AttemptResult::Answered { status, .. } => status != StatusCode::TOO_MANY_REQUESTS,
        AttemptResult::NotSent | AttemptResult::Untrusted => false,
        AttemptResult::Interrupted | AttemptResult::TimedOut => true,
    }
}

/// The Retry-After of a response: seconds, or a date, which is compared with `now`.
pub fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = rfc2822::parse(value).ok()?.timestamp();
    let wait = date.duration_since(now).max(SignedDuration::ZERO);
    Duration::try_from(wait).ok()
}
