use std::time::Duration;

use tokio::{
    io::{DuplexStream, duplex},
    task::JoinSet,
};

use super::*;
use crate::{environment::Environment, status::ApiError};

/// A client, and the pods that it is connected to.
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
                    return Err(ApiError::bad_request("nothing listens on 7"));
                }
                let (near, far) = duplex(1 << 10);
                connected.send((port, far)).await.unwrap();
                Ok(Box::pin(near) as Socket)
            })
        });
        let (near, far) = duplex(1 << 16);
        let mut tasks = JoinSet::new();
        let clock = Environment::simulated(1).clock;
        tasks.spawn(async move { forward(far, connect, &*clock).await });
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
        self.open_half(stream, kind, port, "0").await;
    }

    /// Opens both streams of a connection, the error stream first.
    async fn connect(&mut self, error: u32, port: &str) {
        self.open(error, "error", port).await;
        self.open(error + 2, "data", port).await;
    }

    async fn open_half(&mut self, stream: u32, kind: &str, port: &str, number: &str) {
        let mut block = 3_u32.to_be_bytes().to_vec();
        let pairs = [("port", port), ("requestid", number), ("streamtype", kind)];
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
        assert_eq!(self.next().await, SpdyFrame::Other, "it is accepted");
    }

    async fn next(&mut self) -> SpdyFrame {
        loop {
            if let Some(frame) = self.framer.next().unwrap() {
                return frame;
            }
            let message = self.client.next().await.unwrap().unwrap();
            self.framer.add(&message.into_data());
        }
    }
}

fn data(stream: u32, data: &'static str, ends: bool) -> SpdyFrame {
    SpdyFrame::Data {
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
    forwarded.send(SpdyFrame::data(3, b"hello", false)).await;
    forwarded.send(SpdyFrame::data(3, b" pod", true)).await;
    let mut heard = String::new();
    pod.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "hello pod");
    pod.write_all(b"hello client").await.unwrap();
    assert_eq!(forwarded.next().await, data(3, "hello client", false));
    drop(pod);
    assert_eq!(forwarded.next().await, data(3, "", true));
    assert_eq!(forwarded.next().await, data(1, "", true));
    forwarded.send(SpdyFrame::pong(5)).await;
    assert_eq!(forwarded.next().await, SpdyFrame::Ping { number: 5 });
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_reached_is_told_on_the_stream_for_that() {
    let mut forwarded = Forwarded::start().await;
    forwarded.open(1, "data", "7").await;
    forwarded.open(3, "error", "7").await;
    assert_eq!(
        forwarded.next().await,
        data(3, "nothing listens on 7", false)
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

#[tokio::test(start_paused = true)]
async fn a_pod_that_takes_nothing_loses_its_connection_and_stops_no_other() {
    let mut forwarded = Forwarded::start().await;
    forwarded.connect(1, "80").await;
    let (_, _stuck) = forwarded.pods.recv().await.unwrap();
    forwarded.connect(5, "81").await;
    let (_, mut other) = forwarded.pods.recv().await.unwrap();
    let piece = vec![b'x'; 1 << 10];
    for _ in 0..MAX_WAITING_PIECES + 8 {
        forwarded.send(SpdyFrame::data(3, &piece, false)).await;
    }
    forwarded.send(SpdyFrame::data(7, b"hello", true)).await;
    let mut heard = String::new();
    other.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "hello");
    assert_eq!(forwarded.next().await, SpdyFrame::Reset { stream: 3 });
    assert_eq!(forwarded.next().await, data(1, "", true));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_slow_takes_all() {
    let mut forwarded = Forwarded::start().await;
    forwarded.connect(1, "80").await;
    let (_, mut slow) = forwarded.pods.recv().await.unwrap();
    let piece = vec![b'x'; 1 << 10];
    let count = 4 * MAX_WAITING_PIECES;
    for _ in 0..count {
        forwarded.send(SpdyFrame::data(3, &piece, false)).await;
    }
    forwarded.send(SpdyFrame::data(3, b"", true)).await;
    let mut heard = 0;
    loop {
        tokio::time::sleep(STALLED_CONNECTION_TIMEOUT / 2).await;
        match slow.read(&mut [0; 1 << 10]).await.unwrap() {
            0 => break,
            some => heard += some,
        }
    }
    assert_eq!(heard, count << 10);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_a_pod_that_takes_nothing_is_noticed() {
    let mut forwarded = Forwarded::start().await;
    forwarded.connect(1, "80").await;
    let (_, _stuck) = forwarded.pods.recv().await.unwrap();
    let piece = vec![b'x'; 1 << 10];
    for _ in 0..MAX_WAITING_PIECES + 8 {
        forwarded.send(SpdyFrame::data(3, &piece, false)).await;
    }
    drop(forwarded.client);
    let ended = tokio::time::timeout(Duration::from_mins(1), forwarded.tasks.join_next());
    ended.await.expect("it is noticed").unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_that_sends_no_more_can_still_be_reset() {
    let mut forwarded = Forwarded::start().await;
    forwarded.connect(1, "80").await;
    let (_, mut pod) = forwarded.pods.recv().await.unwrap();
    forwarded.send(SpdyFrame::data(3, b"", true)).await;
    assert_eq!(pod.read(&mut [0]).await.unwrap(), 0);
    forwarded.send(SpdyFrame::reset(3, Why::Refused)).await;
    assert_eq!(forwarded.next().await, data(1, "", true));
    assert!(pod.write_all(b"hello?").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn connections_count_until_they_have_ended() {
    let mut forwarded = Forwarded::start().await;
    let (mut pods, mut stream) = (Vec::new(), 1);
    for _ in 0..MAX_CONNECTIONS {
        forwarded.connect(stream, "80").await;
        pods.push(forwarded.pods.recv().await.unwrap());
        forwarded.send(SpdyFrame::data(stream + 2, b"", true)).await;
        stream += 4;
    }
    forwarded.connect(stream, "80").await;
    let why = "there are 1024 connections already, and no more at a time";
    assert_eq!(forwarded.next().await, data(stream, why, false));
    assert_eq!(forwarded.next().await, data(stream + 2, "", true));
    assert_eq!(forwarded.next().await, data(stream, "", true));
    pods.remove(0);
    assert_eq!(forwarded.next().await, data(3, "", true));
    assert_eq!(forwarded.next().await, data(1, "", true));
    forwarded.connect(stream + 4, "80").await;
    forwarded.pods.recv().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_not_taken_is_refused() {
    let mut forwarded = Forwarded::start().await;
    forwarded.connect(1, "http").await;
    let why = "\"http\" is no port";
    assert_eq!(forwarded.next().await, data(1, why, false));
    assert_eq!(forwarded.next().await, data(3, "", true));
    assert_eq!(forwarded.next().await, data(1, "", true));
    forwarded.open(5, "other", "80").await;
    assert_eq!(forwarded.next().await, SpdyFrame::Reset { stream: 5 });
    for half in 0..u32::try_from(MAX_CONNECTIONS).unwrap() {
        let stream = 7 + 2 * half;
        let number = half.to_string();
        forwarded.open_half(stream, "error", "80", &number).await;
    }
    let beyond = 3001;
    forwarded.open_half(beyond, "error", "80", "beyond").await;
    assert_eq!(forwarded.next().await, SpdyFrame::Reset { stream: beyond });
    // A reset stream frees its slot.
    forwarded.send(SpdyFrame::reset(7, Why::Refused)).await;
    forwarded.open_half(3003, "error", "80", "beyond").await;
    forwarded.open_half(3005, "data", "80", "beyond").await;
    forwarded.pods.recv().await.unwrap();
}
