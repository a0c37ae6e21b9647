use neap_idle::resolver::listen;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use crate::scene::{STUCK, Scene};

/// Whether a connection is taken, looked at until it is as expected.
async fn becomes(scene: &Scene, open: bool) -> Option<TcpStream> {
    let look = async {
        loop {
            let tried = TcpStream::connect(scene.address).await;
            if tried.is_ok() == open {
                return tried.ok();
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(STUCK, look)
        .await
        .expect("it never was so")
}

#[tokio::test]
async fn ports_come_and_go_with_the_table_and_connections_stay() {
    let scene = Scene::new("TCP", &json!({}));
    // From here on the port is opened by the table alone.
    scene.listeners.cancel();
    becomes(&scene, false).await;
    let stop = CancellationToken::new();
    scene
        .tasks
        .spawn(listen::follow(scene.resolver.clone(), stop.clone()));
    let pod = TcpListener::bind("127.0.0.1:0").await.unwrap();
    scene.pods(&[pod.local_addr().unwrap()]);
    let mut client = becomes(&scene, true).await.unwrap();
    let (mut taken, _) = pod.accept().await.unwrap();
    scene.forget();
    becomes(&scene, false).await;
    let mut buffer = [0; 5];
    client.write_all(b"still").await.unwrap();
    taken.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"still");
    taken.write_all(b"there").await.unwrap();
    client.read_exact(&mut buffer).await.unwrap();
    assert_eq!(&buffer, b"there");
    // A port that comes back is opened again.
    scene.pods(&[]);
    becomes(&scene, true).await;
    stop.cancel();
    becomes(&scene, false).await;
}
