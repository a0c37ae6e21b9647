use std::time::Duration;

use http::{Request, StatusCode};

use super::{Answer, Host};
use crate::{
    client::{Body, Fault, Refusal, TransportError},
    clock::Clock,
};

const TEXT: &str = "0123456789";

async fn strike(fault: Fault, host: &Host) -> Result<http::Response<Body>, TransportError> {
    let request = Request::put("https://example.com/x").body(Body::from("sent"));
    fault
        .strike(Clock::system(), host.transport(), request.unwrap())
        .await
}

fn host() -> Host {
    Host::with(vec![Answer::Text(TEXT); 2])
}

#[tokio::test(start_paused = true)]
async fn a_fault_decides_what_the_system_saw_and_what_the_caller_sees() {
    let unavailable = Refusal::of(StatusCode::SERVICE_UNAVAILABLE);
    for (fault, deliveries, status) in [
        (Fault::Unreachable, 0, None),
        (Fault::RequestLost, 0, None),
        (Fault::AnswerLost, 1, None),
        (Fault::Refused(unavailable), 0, Some(503)),
        (Fault::FailedAfterwards(unavailable), 1, Some(503)),
        (Fault::Slow(Duration::from_secs(9)), 1, Some(200)),
        (Fault::Truncated(3), 1, Some(200)),
        (Fault::Corrupted(3), 1, Some(200)),
        (Fault::Twice, 2, Some(200)),
    ] {
        let host = host();
        let answer = strike(fault, &host).await;
        let seen = answer.ok().map(|answer| answer.status().as_u16());
        assert_eq!(seen, status, "{fault}");
        let bodies: Vec<_> = host.received().into_iter().map(|seen| seen.body).collect();
        assert_eq!(bodies, vec!["sent"; deliveries], "{fault}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_truncated_body_begins_as_the_real_one_and_fails() {
    for length in [0, 3, 10, 99] {
        let body = strike(Fault::Truncated(length), &host())
            .await
            .unwrap()
            .into_body();
        let mut body = body;
        let mut read = Vec::new();
        let error = loop {
            match body.chunk().await {
                Some(Ok(chunk)) => read.extend_from_slice(&chunk),
                Some(Err(error)) => break error,
                None => panic!("a truncated body ends with an error"),
            }
        };
        assert_eq!(read, &TEXT.as_bytes()[..TEXT.len().min(length as usize)]);
        assert!(error.to_string().contains("truncated"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_corrupted_body_differs_in_one_byte() {
    for position in [0, 3, 9, 10, 12345] {
        let answer = strike(Fault::Corrupted(position), &host()).await.unwrap();
        let body = answer.into_body().bytes(100).await.unwrap();
        let differing = body.iter().zip(TEXT.bytes()).filter(|(a, b)| **a != *b);
        assert_eq!((body.len(), differing.count()), (10, 1), "{position}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_system_never_answers() {
    let host = host();
    let clock = Clock::system();
    let answer = strike(Fault::Silent, &host);
    assert!(
        clock
            .within(Duration::from_hours(9), answer)
            .await
            .is_none()
    );
    assert!(host.received().is_empty());
}
