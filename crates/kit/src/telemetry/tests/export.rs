//! Traces and errors are sent to real sockets. Variables and subscribers belong to a whole process, so
//! the sender is a second instance of this program that runs a single test.

use std::{
    io::{BufRead, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
};

use super::*;

#[test]
#[ignore = "run by the other tests in a process of its own"]
fn work_that_is_traced_and_fails() {
    let exports = subscribe("tester", Format::Text, "info").unwrap();
    let span = tracing::info_span!("work");
    let mut headers = http::HeaderMap::new();
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    headers.insert("traceparent", parent.parse().unwrap());
    continue_trace(&span, &headers);
    span.in_scope(|| tracing::error!("it failed"));
    drop(exports);
}

/// A trace that another process started.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The first line and the body of the request that is sent when `variable` has an address of this
/// test: `before`, host and port, `after`.
fn request_sent(variable: &str, before: &str, after: &str) -> (String, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored"])
        .arg("telemetry::tests::export::work_that_is_traced_and_fails")
        .env(variable, format!("http://{before}{address}{after}"))
        .spawn()
        .unwrap();
    // A sender that sends nothing must not block the test.
    let sender = std::thread::spawn(move || {
        let ended = child.wait().unwrap();
        let _ = TcpStream::connect(address);
        ended.success()
    });
    let (mut stream, _) = listener.accept().unwrap();
    let mut line = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    reader.read_line(&mut line).unwrap();
    let body = body(&mut reader);
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let _ = stream.write_all(answer);
    drop((stream, reader));
    assert!(sender.join().unwrap());
    (line, body)
}

/// Reads the body, as long as the head says.
fn body(reader: &mut impl BufRead) -> Vec<u8> {
    let mut length = None;
    loop {
        let mut line = String::new();
        let read = reader.read_line(&mut line).unwrap_or(0);
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok();
        }
        if read == 0 || line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length.unwrap_or(0)];
    let _ = reader.read_exact(&mut body);
    body
}

#[test]
#[cfg(feature = "otlp")]
fn traces_are_sent_to_the_configured_collector() {
    let (line, body) = request_sent("OTEL_EXPORTER_OTLP_ENDPOINT", "", "");
    assert!(line.starts_with("POST /v1/traces"), "{line}");
    let digits = |at: usize| u8::from_str_radix(&TRACE[at..at + 2], 16).unwrap();
    let trace: Vec<_> = (0..TRACE.len()).step_by(2).map(digits).collect();
    let found = body.windows(trace.len()).any(|part| part == trace);
    assert!(found, "it continues the trace of the request");
}

#[test]
#[cfg(feature = "sentry")]
fn errors_are_sent_to_the_configured_address() {
    let (line, _) = request_sent("SENTRY_DSN", "key@", "/1");
    assert!(line.starts_with("POST /api/1/envelope/"), "{line}");
}
