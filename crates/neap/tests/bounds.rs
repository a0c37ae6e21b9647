//! A server that is written to for long holds on to little: not to the past, and not to disk.

use std::time::Duration;

use neap_load::{
    measure::{CONNECTIONS, create, update},
    objects::{self, Resource},
    rush::rush,
    server::{Server, folder_bytes},
    skip::release_build,
};

const OBJECTS: usize = 100;
const UPDATES: usize = 1_000_000;
const MEMORY: u64 = 150_000_000;
const FOLDER: u64 = 64_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_updates_of_a_hundred_objects_leave_little_behind() {
    let Some(neap) = release_build("a_million_updates_of_a_hundred_objects_leave_little_behind")
    else {
        return;
    };
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&neap, Some(data.path())).unwrap();
    let client = server.client().unwrap();
    objects::prepare(&mut client.connect().await.unwrap())
        .await
        .unwrap();
    rush(&client, CONNECTIONS, OBJECTS, create).await.unwrap();

    let updates = rush(&client, CONNECTIONS, UPDATES, |number| {
        update(number, OBJECTS)
    });
    tokio::pin!(updates);
    let (mut memory, mut folder) = (0, 0);
    let pace = loop {
        let done = tokio::time::timeout(Duration::from_millis(200), &mut updates).await;
        memory = memory.max(server.resident_bytes().unwrap());
        // A file that went between being listed and being looked at is looked at next time.
        folder = folder.max(folder_bytes(data.path()).unwrap_or(0));
        if let Ok(pace) = done {
            break pace.unwrap();
        }
    };
    println!(
        "{:.0} updates/s, worst {:?}; at most {memory} bytes of memory, {folder} bytes of folder",
        pace.rate(),
        pace.percentile(100)
    );
    assert!(memory <= MEMORY, "{memory} bytes of memory");
    assert!(folder <= FOLDER, "{folder} bytes of data folder");

    let mut connection = client.connect().await.unwrap();
    let path = Resource::ConfigMaps.path("object-99");
    let answer = connection.send(http::Method::GET, &path, "").await.unwrap();
    let number = Resource::ConfigMaps.number(&answer.success().unwrap());
    let last = (UPDATES + OBJECTS - 1) as u64;
    // The newest updates of one object may have overtaken each other on different connections.
    assert!(number.unwrap() > last - (OBJECTS * CONNECTIONS) as u64);
    let (status, complaints) = server.stop().unwrap();
    assert!(status.success(), "{complaints}");
}
