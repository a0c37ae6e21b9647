use neap_idle::resolver::listeners;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use crate::fixture::{ResolverFixture, TEST_TIMEOUT};

/// Waits until connections are accepted, or refused if `open` is false.
async fn becomes(fixture: &ResolverFixture, open: bool) -> Option<TcpStream> {
    let poll = async {
        loop {
            let tried = TcpStream::connect(fixture.address).await;
            if tried.is_ok() == open {
                return tried.ok();
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, poll)
        .await
        .expect("the port never changed")
}

#[tokio::test]
async fn ports_open_and_close_with_the_table_and_connections_stay() {
    let fixture = ResolverFixture::new("TCP", &json!({}));
    // From here on only the table opens the port.
    fixture.listeners.cancel();
    becomes(&fixture, false).await;
    let stop = CancellationToken::new();
    fixture
        .tasks
        .spawn(listeners::run(fixture.resolver.clone(), stop.clone()));
    let pod = TcpListener::bind("127.0.0.1:0").await.unwrap();
    fixture.pods(&[pod.local_addr().unwrap()]);
    let mut client = becomes(&fixture, true).await.unwrap();
    let (mut taken, _) = pod.accept().await.unwrap();
    fixture.remove_service();
    becomes(&fixture, false).await;
    let mut buffer = [0; 5];
    client.write_all(b"still").await.unwrap();
    taken.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"still");
    taken.write_all(b"there").await.unwrap();
    client.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"there");
    // A port that returns to the table is opened again.
    fixture.pods(&[]);
    becomes(&fixture, true).await;
    stop.cancel();
    becomes(&fixture, false).await;
}
