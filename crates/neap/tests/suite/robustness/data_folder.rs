//! A data folder that is damaged or truncated, or on a full disk.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use http::Method;
use neap_load::{
    objects::{Resource, create, prepare},
    server::Server,
};

use super::{neap, start_server};

const MAPS: Resource = Resource::ConfigMaps;

/// A data folder after some writes and a clean shutdown, and its newest log segment.
async fn folder_with_data() -> (tempfile::TempDir, PathBuf) {
    let data = tempfile::tempdir().unwrap();
    let (server, client) = start_server(Some(data.path())).await;
    let mut connection = client.connect().await.unwrap();
    for number in 0..20 {
        let object = MAPS.object(&format!("o{number}"), number, 1000);
        let created = create(&mut connection, MAPS, &object).await;
        assert_eq!(created.unwrap().status, 201);
    }
    drop(connection);
    server.stop().unwrap();
    let files = fs::read_dir(data.path().join("store")).unwrap();
    let names = files.map(|entry| entry.unwrap().path());
    let log = names.filter(|path| path.extension().is_some_and(|end| end == "seg"));
    (data, log.max().unwrap())
}

/// The error of a start with this folder.
fn refusal(data: &Path) -> String {
    let started = Server::start(neap(), Some(data));
    started
        .expect_err("a damaged folder is refused")
        .to_string()
}

#[tokio::test]
async fn a_damaged_folder_is_refused_and_not_changed() {
    type Damage = fn(&mut Vec<u8>);
    let damages: [(&str, Damage); 4] = [
        ("a flipped bit", |bytes| {
            let at = bytes.windows(3).position(|w| w == b"o5\"").unwrap();
            bytes[at] ^= 1;
        }),
        ("cut in half", |bytes| bytes.truncate(bytes.len() / 2 + 7)),
        ("emptied", Vec::clear),
        ("another file", |bytes| bytes.fill(b'x')),
    ];
    for (name, damage) in damages {
        let (data, log) = folder_with_data().await;
        let mut bytes = fs::read(&log).unwrap();
        damage(&mut bytes);
        fs::write(&log, &bytes).unwrap();
        let message = refusal(data.path());
        let file = log.file_name().unwrap().to_str().unwrap();
        assert!(message.contains(file), "{name}: {message}");
        assert!(message.contains("backup"), "{name}: {message}");
        assert_eq!(
            fs::read(&log).unwrap(),
            bytes,
            "{name}: the file was changed"
        );
    }
}

#[tokio::test]
async fn a_folder_without_its_log_is_refused() {
    let (data, log) = folder_with_data().await;
    fs::remove_file(&log).unwrap();
    let message = refusal(data.path());
    assert!(
        message.contains("missing") && message.contains("backup"),
        "{message}"
    );
}

#[tokio::test]
async fn a_folder_of_another_format_is_refused() {
    let (data, _) = folder_with_data().await;
    let format = data.path().join("store/FORMAT");
    fs::write(&format, "pocket data format 999\n").unwrap();
    let message = refusal(data.path());
    assert!(
        message.contains("FORMAT") && message.contains("999"),
        "{message}"
    );
}

/// A limit on the file size simulates a full disk: filling a real one needs privileges, and both look
/// the same to the log, as a write that fails.
#[tokio::test]
async fn a_full_disk_refuses_writes_and_loses_no_acknowledged_one() {
    let data = tempfile::tempdir().unwrap();
    let mut limited = Command::new("sh");
    // SIGXFSZ is ignored, so that a write beyond the limit fails and does not end the process.
    limited.args(["-c", "trap '' XFSZ; ulimit -f 4000; exec \"$0\" \"$@\""]);
    limited.arg(neap());
    let server = Server::launch_command(&mut limited, Some(data.path())).unwrap();
    let mut server = server.ready().unwrap();
    let client = server.client().unwrap();
    let mut connection = client.connect().await.unwrap();
    prepare(&mut connection).await.unwrap();
    let mut acknowledged = Vec::new();
    let refused = loop {
        let name = format!("o{}", acknowledged.len());
        let object = MAPS.object(&name, 7, 20_000);
        let answer = create(&mut connection, MAPS, &object).await.unwrap();
        if answer.status != 201 {
            break answer;
        }
        acknowledged.push(name);
        assert!(acknowledged.len() < 1000, "the limit has no effect");
    };
    assert!(refused.status >= 500);
    let status = refused.json().unwrap();
    assert_eq!(status["kind"], "Status");
    let message = status["message"].as_str().unwrap();
    assert!(
        message.contains(".seg") && message.contains("start again"),
        "{message}"
    );
    assert!(server.complaints().unwrap().contains(".seg"));
    // Acknowledged objects can still be read, and no more writes are acknowledged.
    for name in &acknowledged {
        let read = connection.send(Method::GET, &MAPS.path(name), "").await;
        assert_eq!(read.unwrap().status, 200, "{name}");
    }
    let later = create(&mut connection, MAPS, &MAPS.object("later", 7, 10)).await;
    assert!(later.unwrap().status >= 500);
    drop(connection);
    server.kill().unwrap();

    let server = Server::start(neap(), Some(data.path())).unwrap();
    let mut connection = server.client().unwrap().connect().await.unwrap();
    for name in &acknowledged {
        let read = connection.send(Method::GET, &MAPS.path(name), "").await;
        assert_eq!(read.unwrap().status, 200, "{name}");
    }
    let later = create(&mut connection, MAPS, &MAPS.object("later", 7, 10)).await;
    assert_eq!(later.unwrap().status, 201);
}
