//! Connections of a client passed on to ports of a pod, all in one WebSocket.
//!
//! For each of them the client opens two streams that name the port and a number which they share:
//! one for the bytes, and one on which it is told what went wrong.
//!
//! Clients mind no flow control, so one that sends to a pod faster than that reads can only be slowed
//! down as a whole. A pod that takes nothing at all loses that connection: it is not to stop the
//! others, nor to hide that the client has left.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::{Sink, SinkExt, Stream, StreamExt, stream::FuturesUnordered};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split},
    sync::{
        Semaphore,
        mpsc::{self, error::TrySendError},
        oneshot,
    },
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        protocol::{Role, WebSocketConfig},
    },
};

use super::spdy::{Frame, Framer, Replies, Why};
use crate::{
    environment::{BoxFuture, Clock},
    runtime::Socket,
    status::Result,
};

/// The longest message that a client may send.
const LONGEST: usize = 4 << 20;
/// How much of what a pod sends goes into one frame.
const PIECE: usize = 32 << 10;
/// So many frames may wait to be sent, and pieces for a connection to be taken.
const WAITING: usize = 16;
/// A client may have so many connections in one session, and halves of others.
const MOST: usize = 1024;
/// How long everything that a client sends may wait for a connection that takes no piece of it.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connects to a port of the pod.
pub(super) type Connect = Arc<dyn Fn(u16) -> BoxFuture<Result<Socket>> + Send + Sync>;

/// Passes connections on until the client leaves, and with it all of them.
pub(super) async fn forward<S>(connection: S, connect: Connect, clock: &dyn Clock)
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
        room: Arc::new(Semaphore::new(MOST)),
        out,
        begin,
        connect,
        clock,
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

impl Half {
    fn stream(&self) -> u32 {
        let (Self::Data(stream) | Self::Error(stream)) = *self;
        stream
    }
}

/// Why a connection ends before the pod ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client wants nothing of it any more.
    Reset,
    /// The pod takes nothing of what the client sends.
    Stuck,
}

/// Where what comes for a connection goes.
struct Inlet {
    /// None once the client sends no more; it may still receive.
    pieces: Option<mpsc::Sender<Bytes>>,
    end: oneshot::Sender<End>,
}

impl Inlet {
    /// Passes a piece on; whether the connection takes it in time.
    async fn take(&self, data: Bytes, clock: &dyn Clock) -> bool {
        let Some(pieces) = &self.pieces else {
            return true;
        };
        let Err(TrySendError::Full(data)) = pieces.try_send(data) else {
            return true;
        };
        tokio::select! {
            // Nobody misses it at a connection that has ended.
            _ = pieces.send(data) => true,
            () = clock.sleep(PATIENCE) => false,
        }
    }
}

struct Session<'a> {
    framer: Framer,
    replies: Replies,
    halves: HashMap<String, Half>,
    streams: HashMap<u32, Inlet>,
    room: Arc<Semaphore>,
    out: mpsc::Sender<Bytes>,
    begin: mpsc::Sender<BoxFuture<()>>,
    connect: Connect,
    clock: &'a dyn Clock,
}

impl Session<'_> {
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
                let Some(inlet) = self.streams.get_mut(&stream) else {
                    return;
                };
                if !data.is_empty() && !inlet.take(data, self.clock).await {
                    self.end(stream, End::Stuck);
                } else if ends {
                    inlet.pieces = None;
                }
            }
            Frame::Reset { stream } => {
                self.halves.retain(|_, half| half.stream() != stream);
                self.end(stream, End::Reset);
            }
            Frame::Ping { number } => drop(self.out.send(Frame::pong(number)).await),
            Frame::Away | Frame::Other => {}
        }
    }

    fn end(&mut self, stream: u32, end: End) {
        if let Some(inlet) = self.streams.remove(&stream) {
            // It may have ended by itself.
            let _ = inlet.end.send(end);
        }
    }

    /// A stream; with its other half it is a connection.
    async fn open(&mut self, stream: u32, kind: &str, number: String, port: &str) {
        let half = match kind {
            "data" => Half::Data(stream),
            "error" => Half::Error(stream),
            _ => return self.refuse(stream).await,
        };
        match (half, self.halves.remove(&number)) {
            (Half::Data(data), Some(Half::Error(error)))
            | (Half::Error(error), Some(Half::Data(data))) => self.begin(data, error, port).await,
            (half, former) => {
                if let Some(former) = former {
                    self.refuse(former.stream()).await;
                }
                if self.halves.len() < MOST {
                    self.halves.insert(number, half);
                } else {
                    self.refuse(stream).await;
                }
            }
        }
    }

    async fn refuse(&self, stream: u32) {
        let _ = self.out.send(Frame::reset(stream, Why::Refused)).await;
    }

    /// Begins a connection, or says why not.
    async fn begin(&mut self, data: u32, error: u32, port: &str) {
        let connection = Connection {
            data,
            error,
            out: self.out.clone(),
        };
        let Ok(number) = port.parse() else {
            let why = format!("\"{port}\" is no port");
            return connection.end(Err(why)).await;
        };
        let Ok(place) = self.room.clone().try_acquire_owned() else {
            let why = format!("there are {MOST} connections already, and no more at a time");
            return connection.end(Err(why)).await;
        };
        self.streams.retain(|_, inlet| !inlet.end.is_closed());
        let (pieces, inputs) = mpsc::channel(WAITING);
        let (end, ended) = oneshot::channel();
        let inlet = Inlet {
            pieces: Some(pieces),
            end,
        };
        self.streams.insert(data, inlet);
        let connecting = (self.connect)(number);
        let passed = async move {
            let _place = place;
            let done = tokio::select! {
                done = connection.pass(connecting, inputs) => done,
                Ok(end) = ended => connection.cut(end).await,
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
        inputs: mpsc::Receiver<Bytes>,
    ) -> std::result::Result<(), String> {
        let socket = connecting.await.map_err(|error| error.message)?;
        let (from_pod, to_pod) = split(socket);
        let up = async {
            up(to_pod, inputs).await;
            // The pod may go on.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.down(from_pod) => {}
            () = up => {}
        }
        Ok(())
    }

    /// Tells the client of an end that it did not ask for. It is no error of the port, after which
    /// clients would give up all connections.
    async fn cut(&self, end: End) -> std::result::Result<(), String> {
        if end == End::Stuck {
            tracing::debug!("a pod that takes nothing loses a connection");
            let reset = Frame::reset(self.data, Why::Overflow);
            let _ = self.out.send(reset).await;
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

/// What the client sends.
async fn up(mut to_pod: WriteHalf<Socket>, mut inputs: mpsc::Receiver<Bytes>) {
    while let Some(data) = inputs.recv().await {
        if to_pod.write_all(&data).await.is_err() {
            // The other direction sees that, too.
            return;
        }
    }
    let _ = to_pod.shutdown().await;
}

#[cfg(test)]
mod tests;
