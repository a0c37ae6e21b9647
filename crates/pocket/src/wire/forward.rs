//! Connections of a client passed on to ports of a pod, all in one WebSocket.
//!
//! For each of them the client opens two streams that name the port and a number which they share:
//! one for the bytes, and one on which it is told what went wrong.

use std::{collections::HashMap, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures::{Sink, SinkExt, Stream, StreamExt, stream::FuturesUnordered};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split},
    sync::mpsc,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        protocol::{Role, WebSocketConfig},
    },
};

use super::spdy::{Frame, Framer, Replies};
use crate::{environment::BoxFuture, runtime::Socket, status::Result};

/// The longest message that a client may send.
const LONGEST: usize = 4 << 20;
/// How much of what a pod sends goes into one frame.
const PIECE: usize = 32 << 10;
/// So many frames may wait to be sent, and pieces for a connection to be taken.
const WAITING: usize = 16;
/// A client may have so many connections in one session.
const MOST: usize = 1024;

/// Connects to a port of the pod.
pub(super) type Connect = Arc<dyn Fn(u16) -> BoxFuture<Result<Socket>> + Send + Sync>;

/// Passes connections on until the client leaves, and with it all of them.
pub(super) async fn forward<S>(connection: S, connect: Connect)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .max_message_size(Some(LONGEST))
        .max_frame_size(Some(LONGEST));
    let socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
    let (sink, source) = socket.split();
    let (out, outgoing) = mpsc::channel(WAITING);
    let (begin, begun) = mpsc::channel(WAITING);
    let session = Session {
        framer: Framer::default(),
        replies: Replies::default(),
        halves: HashMap::new(),
        streams: HashMap::new(),
        out,
        begin,
        connect,
    };
    // Whoever waits for the client to send does not keep it from being sent to.
    let why = tokio::select! {
        why = session.receive(source) => why,
        sent = send(sink, outgoing) => sent.err().map(|error| error.to_string()),
        () = attend(begun) => None,
    };
    if let Some(why) = why {
        tracing::debug!(why, "connections to a pod are no longer passed on");
    }
}

async fn send<S>(mut sink: S, mut frames: mpsc::Receiver<Bytes>) -> std::result::Result<(), Error>
where
    S: Sink<Message, Error = Error> + Unpin,
{
    while let Some(frame) = frames.recv().await {
        sink.send(Message::Binary(frame)).await?;
    }
    Ok(())
}

/// Runs connections as they begin.
async fn attend(mut begun: mpsc::Receiver<BoxFuture<()>>) {
    let mut all = FuturesUnordered::new();
    loop {
        tokio::select! {
            one = begun.recv() => match one {
                Some(one) => all.push(one),
                None => return,
            },
            Some(()) = all.next() => {}
        }
    }
}

/// One of the two streams of a connection, while the other is awaited.
enum Half {
    Data(u32),
    Error(u32),
}

/// What comes for a connection.
enum Input {
    Data(Bytes),
    Reset,
}

struct Session {
    framer: Framer,
    replies: Replies,
    halves: HashMap<String, Half>,
    streams: HashMap<u32, mpsc::Sender<Input>>,
    out: mpsc::Sender<Bytes>,
    begin: mpsc::Sender<BoxFuture<()>>,
    connect: Connect,
}

impl Session {
    /// Takes in what the client sends until it leaves; why, if that was not its own idea.
    async fn receive<S>(mut self, mut source: S) -> Option<String>
    where
        S: Stream<Item = std::result::Result<Message, Error>> + Unpin,
    {
        while let Some(message) = source.next().await {
            match message {
                Ok(Message::Binary(bytes)) => self.framer.add(&bytes),
                Ok(Message::Close(_)) => return None,
                Ok(_) => continue,
                Err(error) => return Some(error.to_string()),
            }
            loop {
                match self.framer.next() {
                    Ok(Some(Frame::Away)) => return None,
                    Ok(Some(frame)) => self.take(frame).await,
                    Ok(None) => break,
                    Err(error) => return Some(error.to_string()),
                }
            }
        }
        None
    }

    async fn take(&mut self, frame: Frame) {
        match frame {
            Frame::Open { stream, headers } => {
                let accepted = Frame::accepted(stream, &mut self.replies);
                let _ = self.out.send(accepted).await;
                let header = |name: &str| headers.get(name).map_or("", String::as_str);
                let (kind, number) = (header("streamtype"), header("requestid").to_owned());
                self.open(stream, kind, number, header("port")).await;
            }
            Frame::Data { stream, data, ends } => {
                if let Some(input) = self.streams.get(&stream)
                    && !data.is_empty()
                {
                    let _ = input.send(Input::Data(data)).await;
                }
                if ends {
                    self.streams.remove(&stream);
                }
            }
            Frame::Reset { stream } => {
                if let Some(input) = self.streams.remove(&stream) {
                    let _ = input.send(Input::Reset).await;
                }
            }
            Frame::Ping { number } => drop(self.out.send(Frame::pong(number)).await),
            Frame::Away | Frame::Other => {}
        }
    }

    /// A stream; with its other half it is a connection.
    async fn open(&mut self, stream: u32, kind: &str, number: String, port: &str) {
        let half = match kind {
            "data" => Half::Data(stream),
            "error" => Half::Error(stream),
            _ => return,
        };
        let (data, error) = match (half, self.halves.remove(&number)) {
            (Half::Data(data), Some(Half::Error(error)))
            | (Half::Error(error), Some(Half::Data(data))) => (data, error),
            (half, _) => {
                if self.halves.len() < MOST {
                    self.halves.insert(number, half);
                }
                return;
            }
        };
        self.streams.retain(|_, input| !input.is_closed());
        let (input, inputs) = mpsc::channel(WAITING);
        let port = port.parse().ok().filter(|_| self.streams.len() < MOST);
        self.streams.insert(data, input);
        let connection = Connection {
            data,
            error,
            out: self.out.clone(),
        };
        let connect = self.connect.clone();
        let passed = async move {
            let done = match port {
                Some(port) => connection.pass(connect(port), inputs).await,
                None => Err("no such port, or too many connections".to_owned()),
            };
            connection.end(done).await;
        };
        let _ = self.begin.send(Box::pin(passed)).await;
    }
}

/// One connection, by its two streams.
struct Connection {
    data: u32,
    error: u32,
    out: mpsc::Sender<Bytes>,
}

impl Connection {
    async fn pass(
        &self,
        connecting: BoxFuture<Result<Socket>>,
        inputs: mpsc::Receiver<Input>,
    ) -> std::result::Result<(), String> {
        let socket = connecting.await.map_err(|error| error.message)?;
        let (from_pod, to_pod) = split(socket);
        let up = async {
            if up(to_pod, inputs).await == End::Half {
                // The pod may go on.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.down(from_pod) => {}
            () = up => {}
        }
        Ok(())
    }

    /// What the pod sends.
    async fn down(&self, mut from_pod: ReadHalf<Socket>) {
        let mut piece = BytesMut::with_capacity(PIECE);
        // A connection that breaks has ended as well.
        while let Ok(1..) = from_pod.read_buf(&mut piece).await {
            let frame = Frame::data(self.data, &piece, false);
            if self.out.send(frame).await.is_err() {
                return;
            }
            piece.clear();
        }
        let _ = self.out.send(Frame::data(self.data, b"", true)).await;
    }

    /// Says good-bye on both streams, and what went wrong.
    async fn end(&self, done: std::result::Result<(), String>) {
        if let Err(why) = done {
            let _ = self
                .out
                .send(Frame::data(self.error, why.as_bytes(), false))
                .await;
            let _ = self.out.send(Frame::data(self.data, b"", true)).await;
        }
        let _ = self.out.send(Frame::data(self.error, b"", true)).await;
    }
}

/// How what the client sends has ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// It sends no more, and may still receive.
    Half,
    /// It wants nothing any more.
    Reset,
}

/// What the client sends.
async fn up(mut to_pod: WriteHalf<Socket>, mut inputs: mpsc::Receiver<Input>) -> End {
    while let Some(input) = inputs.recv().await {
        match input {
            Input::Data(data) => {
                if to_pod.write_all(&data).await.is_err() {
                    // The other direction sees that, too.
                    return End::Half;
                }
            }
            Input::Reset => return End::Reset,
        }
    }
    let _ = to_pod.shutdown().await;
    End::Half
}

#[cfg(test)]
mod tests;
