use std::time::Duration;

use http::StatusCode;

use super::{Answer, Host};
use crate::client::{Body, BudgetPolicy, Error, RetryPolicy};

const URL: &str = "https://example.com/v2/things?token=s3cret";

#[tokio::test(start_paused = true)]
async fn a_call_is_repeated_until_the_host_answers() {
    let host = Host::with([Answer::NotSent, Answer::Status(503), Answer::Text("[1, 2]")]);
    let client = host.client().build().unwrap();
    let fetched = client.get(URL).fetch(100).await.unwrap();
    assert_eq!(fetched.json::<Vec<u8>>().unwrap(), [1, 2]);
    assert_eq!(
        host.received().len(),
        2,
        "the first attempt had no connection"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_is_fetched_again() {
    let host = Host::with([Answer::Truncated("[1"), Answer::Text("[1, 2]")]);
    let client = host.client().build().unwrap();
    let fetched = client.get(URL).fetch(100).await.unwrap();
    assert_eq!(fetched.json::<Vec<u8>>().unwrap(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_is_returned_when_attempts_are_exhausted() {
    let host = Host::with(vec![Answer::Status(503); 10]);
    let client = host.client().build().unwrap();
    let response = client.get(URL).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(host.received().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_post_that_may_have_happened_is_not_sent_twice() {
    for answer in [Answer::Interrupted, Answer::Status(503), Answer::Silence] {
        let host = Host::with([answer.clone()]);
        let client = host.client().build().unwrap();
        let _ = client.post(URL).body("x").send().await;
        assert_eq!(host.received().len(), 1, "{answer:?}");
    }
    for answer in [Answer::NotSent, Answer::Status(429)] {
        let host = Host::with([answer.clone()]);
        let client = host.client().build().unwrap();
        let response = client.post(URL).body("x").send().await.unwrap();
        assert_eq!(response.status(), 200, "{answer:?}");
    }
    let host = Host::with([Answer::Interrupted]);
    let client = host.client().build().unwrap();
    let again = client.post(URL).idempotent(true).send().await.unwrap();
    assert_eq!(again.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_waited_for_and_not_longer_than_the_policy_says() {
    let soon = vec![("retry-after", "7".to_owned())];
    let host = Host::with([Answer::WithHeaders(429, soon)]);
    let client = host.client().build().unwrap();
    let begun = client.clock().uptime();
    client.get(URL).send().await.unwrap();
    let took = client.clock().uptime().saturating_sub(begun);
    assert!(took >= Duration::from_secs(7), "{took:?}");
    assert!(took < Duration::from_secs(9), "{took:?}");

    let date = vec![("retry-after", "Thu, 01 Jan 2026 00:10:00 GMT".to_owned())];
    let host = Host::with([Answer::WithHeaders(503, date)]);
    let client = host.client().build().unwrap();
    let response = client.get(URL).send().await.unwrap();
    assert_eq!(response.status(), 503, "ten minutes are left to the caller");
    assert_eq!(response.retry_after(), Some(Duration::from_mins(10)));
    let error = response.success().await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_mins(10)));
    assert!(error.is_transient());
}

#[tokio::test(start_paused = true)]
async fn the_deadline_covers_all_attempts() {
    let host = Host::with(vec![Answer::Silence; 10]);
    let client = host.client().build().unwrap();
    let begun = client.clock().uptime();
    let deadline = Duration::from_secs(20);
    let error = client.get(URL).deadline(deadline).send().await.unwrap_err();
    let took = client.clock().uptime().saturating_sub(begun);
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    assert!(took <= deadline, "{took:?}");
    assert_eq!(
        host.received().len(),
        2,
        "15 seconds for one, the rest for another"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_arriving_is_given_up() {
    let host = Host::default();
    let transport = crate::client::transport_fn(|_| async {
        let silent = futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>();
        Ok(http::Response::new(Body::from_stream(silent)))
    });
    let client = host.client().transport(transport).build().unwrap();
    let mut response = client.get(URL).send().await.unwrap();
    let error = response.chunk().await.unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_too_long_is_refused_and_not_fetched_again() {
    let host = Host::with([Answer::Text("12345")]);
    let client = host.client().build().unwrap();
    let error = client.get(URL).fetch(4).await.unwrap_err();
    assert!(matches!(error, Error::TooLong { limit: 4, .. }), "{error}");
    assert_eq!(host.received().len(), 1);
    let error = client.get(URL).send().await.unwrap().bytes(0).await;
    assert!(error.is_ok(), "an empty body has no bytes");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_not_trusted_is_not_asked_again() {
    let host = Host::with([Answer::Untrusted]);
    let client = host.client().build().unwrap();
    let error = client.get(URL).send().await.unwrap_err();
    assert!(matches!(error, Error::Untrusted { .. }), "{error}");
    assert!(!error.is_transient());
    assert_eq!(host.received().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_sent_once_and_a_reopened_body_again() {
    let host = Host::with([Answer::Status(503)]);
    let client = host.client().build().unwrap();
    let response = client.put(URL).stream(Body::from("abc")).send().await;
    assert_eq!(response.unwrap().status(), 503);
    assert_eq!(host.received()[0].body, "abc");

    let host = Host::with([Answer::Status(503)]);
    let client = host.client().build().unwrap();
    let open = || -> futures::future::BoxFuture<'static, _> {
        Box::pin(async { Ok(Body::from("abc").with_length(3)) })
    };
    let response = client.put(URL).reopened_body(open).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(host.received()[1].body, "abc");
}

#[tokio::test(start_paused = true)]
async fn the_budget_bounds_the_repetitions_of_all_calls() {
    let host = Host::with(vec![Answer::Status(429); 1000]);
    let budget = BudgetPolicy {
        per_call: 0.2,
        per_second: 0.0,
        reserve: 5.0,
    };
    let client = host.client().budget(budget).build().unwrap();
    for _ in 0..50 {
        client.get(URL).send().await.unwrap();
    }
    // Fifty calls, five retries from the reserve, and at most one for every five calls.
    assert!(
        (55..=65).contains(&host.received().len()),
        "{}",
        host.received().len()
    );
}

#[tokio::test(start_paused = true)]
async fn errors_and_logs_show_neither_query_nor_credentials() {
    let host = Host::with([Answer::Untrusted, Answer::WithHeaders(401, vec![])]);
    let client = host.client().build().unwrap();
    let error = client.get(URL).bearer("s3cret").send().await.unwrap_err();
    let refused = client.get(URL).basic("me", "s3cret").fetch(9).await;
    let refused = refused.unwrap().success().unwrap_err();
    let with_password = "https://me:s3cret@example.com/x";
    let invalid = client.get(with_password).send().await.unwrap_err();
    let builder = client.get(URL).bearer("s3cret");
    for text in [
        crate::why::chain(&error),
        format!("{error:?}"),
        format!("{refused:?} {refused}"),
        format!("{invalid:?} {invalid}"),
        format!("{builder:?}"),
    ] {
        assert!(!text.contains("s3cret"), "{text}");
        assert!(text.contains("example.com"), "{text}");
    }
    let sent = host.received()[0].headers["authorization"].clone();
    assert_eq!(sent, "Bearer s3cret");
    assert!(sent.is_sensitive());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_sent_is_refused_before() {
    let host = Host::default();
    let client = host.client().build().unwrap();
    for address in [
        "",
        "example.com",
        "ftp://example.com/",
        "https:///x",
        "http://a b/",
    ] {
        let error = client.get(address).send().await.unwrap_err();
        assert!(matches!(error, Error::Address { .. }), "{address}: {error}");
    }
    let error = client.get(URL).header("a b", "c").send().await.unwrap_err();
    assert!(matches!(error, Error::Header { .. }), "{error}");
    assert!(host.received().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_error_shows_the_beginning_of_the_body_on_one_line() {
    let transport = crate::client::transport_fn(|_| async {
        let mut response =
            http::Response::new(Body::from(format!("no\n\u{1b}[31m {}", "x".repeat(900))));
        *response.status_mut() = StatusCode::FORBIDDEN;
        Ok(response)
    });
    let client = Host::default()
        .client()
        .transport(transport)
        .build()
        .unwrap();
    let error = client
        .get(URL)
        .send()
        .await
        .unwrap()
        .success()
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("https://example.com/v2/things answered 403 Forbidden: no [31m xxx"),
        "{text}"
    );
    assert!(text.len() < 500);
    assert!(!error.is_transient());
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_by_client_and_status() {
    let host = Host::with([Answer::Status(503), Answer::NotSent]);
    let telemetry = crate::telemetry::Telemetry::default();
    let client = host.client().telemetry(telemetry.clone()).build().unwrap();
    client.get(URL).send().await.unwrap();
    let text = telemetry.text();
    for line in [
        r#"neaptide_outbound_calls_total{client="test",code="503"} 1"#,
        r#"neaptide_outbound_calls_total{client="test",code="none"} 1"#,
        r#"neaptide_outbound_calls_total{client="test",code="200"} 1"#,
        r#"neaptide_outbound_retries_total{client="test"} 2"#,
    ] {
        assert!(text.contains(line), "{line} is missing in {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_of_one_attempt_makes_one() {
    let host = Host::with([Answer::Status(503)]);
    let client = host.client().retry(RetryPolicy::never()).build().unwrap();
    client.get(URL).send().await.unwrap();
    assert_eq!(host.received().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_form_is_encoded() {
    let host = Host::default();
    let client = host.client().build().unwrap();
    let fields = [("scope", "repository:a/b:pull,push"), ("service", "r & s")];
    client.post(URL).form(&fields).send().await.unwrap();
    let seen = host.received().remove(0);
    assert_eq!(seen.method, "POST");
    assert_eq!(
        seen.body,
        "scope=repository%3Aa%2Fb%3Apull%2Cpush&service=r%20%26%20s"
    );
    assert_eq!(
        seen.headers["content-type"],
        "application/x-www-form-urlencoded"
    );
}
