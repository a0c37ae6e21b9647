//! Ten thousand who connect and say nothing.

use std::{
    io::{BufRead, BufReader, Read, Write, stdin, stdout},
    net::TcpStream,
    process::{Command, Stdio},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::{
    pod::Pod,
    programs::skipped,
    scene::{Scene, until},
};

const CROWD: usize = 10_000;
/// A process that finds this is the crowd: one alone may not have enough files open for both ends.
const PLACE: &str = "NEAP_TEST_CROWD";
const TEST: &str = "crowd::ten_thousand_who_say_nothing_are_in_nobodys_way";

/// Whether so many files may be open.
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

/// Connects, says so, and stays until nobody listens.
fn crowd(place: &str) {
    assert!(may_open(CROWD as u64 + 100));
    let open: Vec<_> = (0..CROWD)
        .map(|_| TcpStream::connect(place).unwrap())
        .collect();
    let mut told = stdout();
    told.write_all(b"\nall are there\n").unwrap();
    told.flush().unwrap();
    let _ = stdin().read_to_end(&mut Vec::new());
    drop(open);
}

#[tokio::test]
async fn ten_thousand_who_say_nothing_are_in_nobodys_way() {
    if let Ok(place) = std::env::var(PLACE) {
        return crowd(&place);
    }
    if !may_open(CROWD as u64 + 500) {
        return skipped(TEST, "too few files may be open");
    }
    let scene = Scene::new("HTTP", &json!({}));
    let pod = Pod::new(&scene.tasks).await;
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", TEST, "--nocapture"])
        .env(PLACE, scene.address.to_string())
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
    until(|| scene.resolver.tasks.len() >= CROWD).await;
    let asked = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let wake = async {
        scene.holds(1).await;
        scene.pods(&[pod.address]);
    };
    let (answer, ()) = tokio::join!(scene.say(asked), wake);
    assert!(answer.ends_with("hello"), "{answer}");
    assert_eq!(scene.woken(), 1);
    drop(other.stdin.take());
    other.wait().unwrap();
    // What they took is given back.
    until(|| scene.resolver.tasks.len() < 10).await;
}
