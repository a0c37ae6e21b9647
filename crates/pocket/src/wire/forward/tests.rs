use std::time::Duration;

use tokio::{
    io::{DuplexStream, duplex},
    task::JoinSet,
};

use super::*;
use crate::status::ApiError;

/// A client, and the pods that were connected to.
struct Forwarded {
    client: WebSocketStream<DuplexStream>,
    pods: mpsc::Receiver<(u16, DuplexStream)>,
    framer: Framer,
    tasks: JoinSet<()>,
}

impl Forwarded {
    async fn start() -> Self {
        let (connected, pods) = mpsc::channel(8);
        let connect: Connect = Arc::new(move |port| {
            let connected = connected.clone();
            Box::pin(async move {
                if port == 7 {
                    return Err(ApiError::bad_request("nobody listens on 7"));
                }
                let (near, far) = duplex(1 << 10);
                connected.send((port, far)).await.unwrap();
                Ok(Box::pin(near) as Socket)
            })
        });
        let (near, far) = duplex(1 << 16);
        let mut tasks = JoinSet::new();
        tasks.spawn(forward(far, connect));
        Self {
            client: WebSocketStream::from_raw_socket(near, Role::Client, None).await,
            pods,
            framer: Framer::default(),
            tasks,
        }
    }

    async fn send(&mut self, frame: Bytes) {
        self.client.send(Message::Binary(frame)).await.unwrap();
    }

    async fn open(&mut self, stream: u32, kind: &str, port: &str) {
        let mut block = 3_u32.to_be_bytes().to_vec();
        let pairs = [("port", port), ("requestid", "0"), ("streamtype", kind)];
        for text in pairs.into_iter().flat_map(|(name, value)| [name, value]) {
            block.extend_from_slice(&u32::try_from(text.len()).unwrap().to_be_bytes());
            block.extend_from_slice(text.as_bytes());
        }
        let mut frame = vec![0x80, 3, 0, 1, 0, 0, 0, 0];
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(&[0; 6]);
        if stream == 1 {
            frame.extend_from_slice(&[0x78, 1]);
        }
        let length = u16::try_from(block.len()).unwrap();
        frame.push(0);
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(&(!length).to_le_bytes());
        frame.extend_from_slice(&block);
        let length = u32::try_from(frame.len() - 8).unwrap();
        frame[4..8].copy_from_slice(&length.to_be_bytes());
        self.send(frame.into()).await;
        assert_eq!(self.next().await, Frame::Other, "it is accepted");
    }

    async fn next(&mut self) -> Frame {
        loop {
            if let Some(frame) = self.framer.next().unwrap() {
                return frame;
            }
            let message = self.client.next().await.unwrap().unwrap();
            self.framer.add(&message.into_data());
        }
    }
}

fn data(stream: u32, data: &'static str, ends: bool) -> Frame {
    Frame::Data {
        stream,
        data: data.into(),
        ends,
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_passed_on_both_ways_and_ends_half_by_half() {
    let mut forwarded = Forwarded::start().await;
    forwarded.open(1, "error", "80").await;
    forwarded.open(3, "data", "80").await;
    let (port, mut pod) = forwarded.pods.recv().await.unwrap();
    assert_eq!(port, 80);
    forwarded.send(Frame::data(3, b"hello", false)).await;
    forwarded.send(Frame::data(3, b" pod", true)).await;
    let mut heard = String::new();
    pod.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "hello pod");
    pod.write_all(b"hello client").await.unwrap();
    assert_eq!(forwarded.next().await, data(3, "hello client", false));
    drop(pod);
    assert_eq!(forwarded.next().await, data(3, "", true));
    assert_eq!(forwarded.next().await, data(1, "", true));
    forwarded.send(Frame::pong(5)).await;
    assert_eq!(forwarded.next().await, Frame::Ping { number: 5 });
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_reached_is_told_on_the_stream_for_that() {
    let mut forwarded = Forwarded::start().await;
    forwarded.open(1, "data", "7").await;
    forwarded.open(3, "error", "7").await;
    assert_eq!(
        forwarded.next().await,
        data(3, "nobody listens on 7", false)
    );
    assert_eq!(forwarded.next().await, data(1, "", true));
    assert_eq!(forwarded.next().await, data(3, "", true));
}

#[tokio::test(start_paused = true)]
async fn one_that_is_not_wanted_any_more_ends_at_once() {
    let mut forwarded = Forwarded::start().await;
    forwarded.open(1, "error", "80").await;
    forwarded.open(3, "data", "80").await;
    let (_, mut pod) = forwarded.pods.recv().await.unwrap();
    let reset = [0x80, 3, 0, 3, 0, 0, 0, 8, 0, 0, 0, 3, 0, 0, 0, 5];
    forwarded.send(Bytes::copy_from_slice(&reset)).await;
    assert_eq!(pod.read(&mut [0]).await.unwrap(), 0);
    assert_eq!(forwarded.next().await, data(1, "", true));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_ends_its_connections() {
    let mut forwarded = Forwarded::start().await;
    forwarded.open(1, "error", "80").await;
    forwarded.open(3, "data", "80").await;
    let (_, mut pod) = forwarded.pods.recv().await.unwrap();
    drop(forwarded.client);
    let ended = tokio::time::timeout(Duration::from_mins(1), forwarded.tasks.join_next());
    ended.await.expect("it is noticed").unwrap().unwrap();
    assert_eq!(pod.read(&mut [0]).await.unwrap(), 0);
}
