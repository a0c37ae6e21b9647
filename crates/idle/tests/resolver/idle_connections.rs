//! Ten thousand connections without a byte.

use std::{
    io::{BufRead, BufReader, Read, Write, stdin, stdout},
    net::TcpStream,
    process::{Command, Stdio},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::{
    fixture::{ResolverFixture, until},
    pod::Pod,
    programs::skipped,
};

const CONNECTIONS: usize = 10_000;
/// Set in the process that opens the connections: one process may not have enough file descriptors for
/// both ends.
const ADDRESS_VARIABLE: &str = "NEAP_TEST_CROWD";
const TEST: &str = "idle_connections::ten_thousand_idle_connections_do_not_delay_a_request";

/// Whether this process may have `files` file descriptors.
fn may_open(files: u64) -> bool {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum;
    let raised = Rlimit {
        current: most,
        maximum: most,
    };
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile)
        .current
        .is_none_or(|now| now >= files)
}

/// Opens the connections, reports that, and keeps them until stdin closes.
fn hold_connections(address: &str) {
    assert!(may_open(CONNECTIONS as u64 + 100));
    let open: Vec<_> = (0..CONNECTIONS)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let mut told = stdout();
    told.write_all(b"\nall are there\n").unwrap();
    told.flush().unwrap();
    let _ = stdin().read_to_end(&mut Vec::new());
    drop(open);
}

#[tokio::test]
async fn ten_thousand_idle_connections_do_not_delay_a_request() {
    if let Ok(address) = std::env::var(ADDRESS_VARIABLE) {
        return hold_connections(&address);
    }
    if !may_open(CONNECTIONS as u64 + 500) {
        return skipped(TEST, "the limit on open files is too low");
    }
    let fixture = ResolverFixture::new("HTTP", &json!({}));
    let pod = Pod::new(&fixture.tasks).await;
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(ADDRESS_VARIABLE, fixture.address.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(other.stdout.take().unwrap()).lines();
    let there = tokio::task::spawn_blocking(move || {
        lines
            .map_while(Result::ok)
            .any(|line| line == "all are there")
    });
    assert!(there.await.unwrap());
    until(|| fixture.resolver.tasks.len() >= CONNECTIONS).await;
    let request = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let wake = async {
        fixture.wait_until_held(1).await;
        fixture.pods(&[pod.address]);
    };
    let (answer, ()) = tokio::join!(fixture.exchange(request), wake);
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(fixture.wake_requests(), 1);
    drop(other.stdin.take());
    other.wait().unwrap();
    // Their tasks end with them.
    until(|| fixture.resolver.tasks.len() < 10).await;
}
