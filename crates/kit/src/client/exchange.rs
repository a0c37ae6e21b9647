//! Carries out a call: attempts, delays and redirects, until there is a result.

use std::{hash::BuildHasher, time::Duration};

use http::{Request, Uri, header::CONTENT_LENGTH};
use tower::{BoxError, ServiceExt};

use super::{
    Client,
    body::{Body, ReadError, RequestBody},
    error::{Error, TransportError},
    redirect::{self, RedirectDecision},
    request::{Call, redacted},
    response::{Response, unreadable},
    retry::{Attempt, AttemptResult, Decision, retry_after},
    transport::AcceptAnyCertificate,
};
use crate::{clock::Uptime, telemetry::OutboundCallFinished};

type Answer = http::Response<Body>;

/// Why an attempt has no response.
#[derive(Debug)]
enum Failure {
    Transport(TransportError),
    TimedOut(Duration),
    TooLong(usize),
    RequestBody(BoxError),
}

impl Client {
    /// Carries out a call.
    pub(super) async fn exchange(&self, mut call: Call) -> Result<Response, Error> {
        let deadline = self.clock().uptime().saturating_add(call.deadline);
        let mut followed = 0;
        loop {
            let answer = self.settle(&call, deadline).await?;
            let decision = redirect::decide(
                call.redirects,
                followed,
                (&call.method, &call.uri),
                answer.status(),
                answer.headers(),
            );
            match decision {
                RedirectDecision::Return => return Ok(self.response(&call, answer, deadline)),
                RedirectDecision::Refuse(source) => {
                    let url = redacted(&call.uri);
                    return Err(Error::Redirect { url, source });
                }
                RedirectDecision::Follow(hop) if hop.keeps_body && !call.body.is_replayable() => {
                    // The caller has to send the stream again, to the address that the response names.
                    return Ok(self.response(&call, answer, deadline));
                }
                RedirectDecision::Follow(hop) => {
                    followed += 1;
                    if hop.leaves_origin {
                        redirect::strip_credentials(&mut call.headers);
                        call.any_certificate = false;
                    }
                    if !hop.keeps_body {
                        call.body = RequestBody::default();
                        call.headers.remove(http::header::CONTENT_TYPE);
                        call.headers.remove(CONTENT_LENGTH);
                    }
                    call.method = hop.method;
                    call.uri = hop.uri;
                }
            }
        }
    }

    fn response(&self, call: &Call, answer: Answer, deadline: Uptime) -> Response {
        let (head, body) = answer.into_parts();
        Response {
            url: redacted(&call.uri),
            uri: call.uri.clone(),
            head,
            body,
            clock: self.clock(),
            idle: self.idle_timeout(),
            deadline,
        }
    }

    /// Makes attempts until one is final.
    async fn settle(&self, call: &Call, deadline: Uptime) -> Result<Answer, Error> {
        let host = host(&call.uri);
        let hosts = self.hosts();
        hosts.count_call(&host);
        let mut last: Option<Result<Answer, Failure>> = None;
        let mut number = 0;
        loop {
            let admission = match hosts.admit(&host) {
                Ok(admission) => admission,
                Err(retry_after) => {
                    let Some(last) = last else {
                        let host = host.clone();
                        return Err(Error::CircuitOpen { host, retry_after });
                    };
                    return last.map_err(|failure| failure.of(call));
                }
            };
            number += 1;
            let remaining = deadline.saturating_sub(self.clock().uptime());
            let outcome = self.attempt(call, number, remaining).await;
            let Some(result) = result_of(&outcome, self.clock().now()) else {
                return outcome.map_err(|failure| failure.of(call));
            };
            admission.end(!is_trouble(result));
            let attempt = Attempt {
                number,
                result,
                idempotent: call.idempotent,
                replayable: call.body.is_replayable(),
                remaining: deadline.saturating_sub(self.clock().uptime()),
            };
            let jitter = self.jitter(&host, number);
            match call.retry.decide(&attempt, jitter) {
                Decision::RetryAfter(delay) if hosts.take_retry(&host) => {
                    // The body of the answer is dropped, which frees its connection.
                    last = Some(outcome.map(|answer| answer.map(|_| Body::empty())));
                    self.clock().sleep(delay).await;
                }
                Decision::RetryAfter(_) | Decision::Return(_) => {
                    return outcome.map_err(|failure| failure.of(call));
                }
            }
        }
    }

    /// Sends the request once.
    async fn attempt(
        &self,
        call: &Call,
        number: u32,
        remaining: Duration,
    ) -> Result<Answer, Failure> {
        let begun = self.clock().uptime();
        // A stream takes as long as it takes: only the deadline of the call bounds it.
        let limit = if call.body.is_stream() {
            remaining
        } else {
            remaining.min(call.retry.attempt_timeout)
        };
        let outcome = self.clock().within(limit, self.send_once(call)).await;
        let outcome = outcome.unwrap_or(Err(Failure::TimedOut(limit)));
        let problem = outcome.as_ref().err().map(Failure::to_string_with_causes);
        self.telemetry().emit(&OutboundCallFinished {
            client: self.name(),
            method: &call.method,
            url: &redacted(&call.uri),
            attempt: number,
            code: outcome.as_ref().ok().map(|answer| answer.status().as_u16()),
            error: problem.as_deref(),
            took: self.clock().uptime().saturating_sub(begun),
        });
        outcome
    }

    async fn send_once(&self, call: &Call) -> Result<Answer, Failure> {
        let body = call.body.open().await.map_err(Failure::RequestBody)?;
        let mut request = Request::new(body);
        *request.method_mut() = call.method.clone();
        *request.uri_mut() = call.uri.clone();
        *request.headers_mut() = call.headers.clone();
        if call.any_certificate {
            request.extensions_mut().insert(AcceptAnyCertificate);
        }
        let answer = self.transport().oneshot(request).await;
        let answer = answer.map_err(Failure::Transport)?;
        let Some(limit) = call.whole else {
            return Ok(answer);
        };
        let (head, body) = answer.into_parts();
        match body.bytes(limit).await {
            Ok(content) => Ok(Answer::from_parts(head, content.into())),
            Err(ReadError::TooLong(limit)) => Err(Failure::TooLong(limit)),
            Err(ReadError::Interrupted(source)) => {
                Err(Failure::Transport(TransportError::Interrupted(source)))
            }
        }
    }

    /// A number between 0 and 1: the same for the same attempt of the same client, so that a run with
    /// a seed can be repeated.
    fn jitter(&self, host: &str, attempt: u32) -> f64 {
        let call = self.next_call();
        let hash = self.seed().hash_one((host, attempt, call));
        (hash >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The result for the retry policy; none if the problem is on this side.
fn result_of(outcome: &Result<Answer, Failure>, now: jiff::Timestamp) -> Option<AttemptResult> {
    Some(match outcome {
        Ok(answer) => AttemptResult::Answered {
            status: answer.status(),
            retry_after: retry_after(answer.headers(), now),
        },
        Err(Failure::Transport(TransportError::NotSent(_))) => AttemptResult::NotSent,
        Err(Failure::Transport(TransportError::Untrusted(_))) => AttemptResult::Untrusted,
        Err(Failure::Transport(TransportError::Interrupted(_))) => AttemptResult::Interrupted,
        Err(Failure::TimedOut(_)) => AttemptResult::TimedOut,
        Err(Failure::TooLong(_) | Failure::RequestBody(_)) => return None,
    })
}

/// Whether the result counts against the host.
fn is_trouble(result: AttemptResult) -> bool {
    match result {
        AttemptResult::Answered { status, .. } => {
            status.is_server_error() && status != http::StatusCode::NOT_IMPLEMENTED
        }
        AttemptResult::NotSent | AttemptResult::Interrupted | AttemptResult::TimedOut => true,
        AttemptResult::Untrusted => false,
    }
}

impl Failure {
    fn of(self, call: &Call) -> Error {
        let url = redacted(&call.uri);
        match self {
            Self::Transport(TransportError::NotSent(source)) => Error::NotReached { url, source },
            Self::Transport(TransportError::Untrusted(source)) => Error::Untrusted { url, source },
            Self::Transport(TransportError::Interrupted(source)) => {
                Error::Interrupted { url, source }
            }
            Self::TimedOut(after) => Error::TimedOut { url, after },
            Self::TooLong(limit) => unreadable(url, ReadError::TooLong(limit)),
            Self::RequestBody(source) => Error::RequestBody { url, source },
        }
    }

    fn to_string_with_causes(&self) -> String {
        match self {
            Self::Transport(error) => crate::why::chain(error),
            Self::TimedOut(after) => format!("no answer within {after:?}"),
            Self::TooLong(limit) => format!("more than {limit} bytes"),
            Self::RequestBody(error) => crate::why::chain(&**error),
        }
    }
}

/// Host and port, as circuits and budgets are kept for.
fn host(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    let authority = uri.authority().map_or("", http::uri::Authority::as_str);
    format!("{scheme}://{}", authority.to_ascii_lowercase())
}
