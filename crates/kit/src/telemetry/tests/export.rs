//! Traces and errors really leave the process. Variables and subscribers belong to a whole process,
//! so the one that sends is this program once more, told to run a single test.

use std::{
    io::{BufRead, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    process::Command,
};

use super::*;

#[test]
#[ignore = "run by the others in a process of its own"]
fn work_that_is_traced_and_fails() {
    let exports = subscribe("tester", Format::Text, "info").unwrap();
    tracing::info_span!("work").in_scope(|| tracing::error!("it failed"));
    drop(exports);
}

/// The first line of the request that comes when `variable` has this address, and a port of ours.
fn asked(variable: &str, before: &str, after: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored"])
        .arg("telemetry::tests::export::work_that_is_traced_and_fails")
        .env(variable, format!("http://{before}{address}{after}"))
        .spawn()
        .unwrap();
    // Whoever sends nothing must not keep us waiting.
    let sender = std::thread::spawn(move || {
        let ended = child.wait().unwrap();
        let _ = TcpStream::connect(address);
        ended.success()
    });
    let (mut stream, _) = listener.accept().unwrap();
    let mut line = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    reader.read_line(&mut line).unwrap();
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let _ = stream.write_all(answer);
    drop((stream, reader));
    assert!(sender.join().unwrap());
    line
}

#[test]
#[cfg(feature = "otlp")]
fn traces_go_to_the_collector_that_is_named() {
    let line = asked("OTEL_EXPORTER_OTLP_ENDPOINT", "", "");
    assert!(line.starts_with("POST /v1/traces"), "{line}");
}

#[test]
#[cfg(feature = "sentry")]
fn errors_go_to_the_address_that_is_given() {
    let line = asked("SENTRY_DSN", "key@", "/1");
    assert!(line.starts_with("POST /api/1/envelope/"), "{line}");
}
