//! Memory and disk usage of a server stay bounded under a long series of writes.

use std::time::Duration;

use neap_load::{
    bulk::send_all,
    measure::{CONNECTIONS, create, update},
    objects::{self, Resource},
    server::{Server, folder_bytes},
    skip::release_build,
};

use crate::EXCLUSIVE;

const OBJECTS: usize = 100;
const UPDATES: usize = 1_000_000;
const MAX_MEMORY_BYTES: u64 = 150_000_000;
const MAX_FOLDER_BYTES: u64 = 64_000_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_disk_stay_bounded_over_a_million_updates() {
    let Some(neap) = release_build("memory_and_disk_stay_bounded_over_a_million_updates") else {
        return;
    };
    let _exclusive = EXCLUSIVE.lock().await;
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(&neap, Some(data.path())).unwrap();
    let client = server.client().unwrap();
    objects::prepare(&mut client.connect().await.unwrap())
        .await
        .unwrap();
    send_all(&client, CONNECTIONS, OBJECTS, create)
        .await
        .unwrap();

    let updates = send_all(&client, CONNECTIONS, UPDATES, |number| {
        update(number, OBJECTS)
    });
    tokio::pin!(updates);
    let (mut memory, mut folder) = (0, 0);
    let pace = loop {
        let done = tokio::time::timeout(Duration::from_millis(200), &mut updates).await;
        memory = memory.max(server.resident_bytes().unwrap());
        // Fails if a listed file is removed before it is measured; the next round measures again.
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
    assert!(memory <= MAX_MEMORY_BYTES, "{memory} bytes of memory");
    assert!(folder <= MAX_FOLDER_BYTES, "{folder} bytes of data folder");

    let mut connection = client.connect().await.unwrap();
    let path = Resource::ConfigMaps.path("object-99");
    let answer = connection.send(http::Method::GET, &path, "").await.unwrap();
    let number = Resource::ConfigMaps.number(&answer.success().unwrap());
    let last = (UPDATES + OBJECTS - 1) as u64;
    // The last updates of one object may arrive out of order on different connections.
    assert!(number.unwrap() > last - (OBJECTS * CONNECTIONS) as u64);
    let (status, complaints) = server.stop().unwrap();
    assert!(status.success(), "{complaints}");
}
