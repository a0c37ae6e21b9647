//! Port forwarding: connections of a client to ports of a pod, all in one WebSocket.
//!
//! For each connection the client opens two streams that name the port and share a request id: one
//! for the data, and one for errors.
//!
//! Clients ignore flow control, so one that sends to a pod faster than the pod reads can only be
//! slowed down as a whole. A pod that reads nothing at all loses that connection: it must not block
//! the others, nor hide that the client has left.

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

use super::spdy::{Framer, Replies, SpdyFrame, Why};
use crate::{
    environment::{BoxFuture, Clock},
    runtime::Socket,
    status::Result,
};

/// Bytes of a message from a client, at most.
const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Bytes of the pod's data in one frame, at most.
const PIECE_BYTES: usize = 32 << 10;
/// Frames that may wait to be sent, and pieces that may wait for a connection.
const MAX_WAITING_PIECES: usize = 16;
/// Connections of a client in one session, at most; the same for streams without their other half.
const MAX_CONNECTIONS: usize = 1024;
/// How long all input of a client may wait for a connection that does not read.
const STALLED_CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);

/// Connects to a port of the pod.
pub(super) type Connect = Arc<dyn Fn(u16) -> BoxFuture<Result<Socket>> + Send + Sync>;

/// Forwards connections until the client leaves, which ends all of them.
pub(super) async fn forward<S>(connection: S, connect: Connect, clock: &dyn Clock)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
    let (sink, source) = socket.split();
    let (out, outgoing) = mpsc::channel(MAX_WAITING_PIECES);
    let (begin, begun) = mpsc::channel(MAX_WAITING_PIECES);
    let session = ForwardSession {
        framer: Framer::default(),
        replies: Replies::default(),
        halves: HashMap::new(),
        streams: HashMap::new(),
        room: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        out,
        begin,
        connect,
        clock,
    };
    // Sending to the client does not wait for receiving from it.
    let why = tokio::select! {
        why = session.receive(source) => why,
        sent = send(sink, outgoing) => sent.err().map(|error| error.to_string()),
        () = run_connections(begun) => None,
    };
    if let Some(why) = why {
        tracing::debug!(why, "port forwarding ended");
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

/// Runs connections as they are opened.
async fn run_connections(mut begun: mpsc::Receiver<BoxFuture<()>>) {
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
enum StreamHalf {
    Data(u32),
    Error(u32),
}

impl StreamHalf {
    fn stream(&self) -> u32 {
        let (Self::Data(stream) | Self::Error(stream)) = *self;
        stream
    }
}

/// Why a connection ends before the pod ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectionEnd {
    /// The client reset the stream.
    Reset,
    /// The pod does not read what the client sends.
    Stuck,
}

/// The input side of a connection.
struct ConnectionInput {
    /// `None` once the client sends no more; it may still receive.
    pieces: Option<mpsc::Sender<Bytes>>,
    end: oneshot::Sender<ConnectionEnd>,
}

impl ConnectionInput {
    /// Passes a piece on; false if the connection does not accept it in time.
    async fn take(&self, data: Bytes, clock: &dyn Clock) -> bool {
        let Some(pieces) = &self.pieces else {
            return true;
        };
        let Err(TrySendError::Full(data)) = pieces.try_send(data) else {
            return true;
        };
        tokio::select! {
            // A failed send means that the connection has ended: the piece is not needed.
            _ = pieces.send(data) => true,
            () = clock.sleep(STALLED_CONNECTION_TIMEOUT) => false,
        }
    }
}

struct ForwardSession<'a> {
    framer: Framer,
    replies: Replies,
    halves: HashMap<String, StreamHalf>,
    streams: HashMap<u32, ConnectionInput>,
    room: Arc<Semaphore>,
    out: mpsc::Sender<Bytes>,
    begin: mpsc::Sender<BoxFuture<()>>,
    connect: Connect,
    clock: &'a dyn Clock,
}

impl ForwardSession<'_> {
    /// Handles the client's frames until it leaves; returns an error if that was not its own
    /// decision.
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
                    Ok(Some(SpdyFrame::Away)) => return None,
                    Ok(Some(frame)) => self.take(frame).await,
                    Ok(None) => break,
                    Err(error) => return Some(error.to_string()),
                }
            }
        }
        None
    }

    async fn take(&mut self, frame: SpdyFrame) {
        match frame {
            SpdyFrame::Open { stream, headers } => {
                let accepted = SpdyFrame::accepted(stream, &mut self.replies);
                let _ = self.out.send(accepted).await;
                let header = |name: &str| headers.get(name).map_or("", String::as_str);
                let (kind, number) = (header("streamtype"), header("requestid").to_owned());
                self.open(stream, kind, number, header("port")).await;
            }
            SpdyFrame::Data { stream, data, ends } => {
                let Some(inlet) = self.streams.get_mut(&stream) else {
                    return;
                };
                if !data.is_empty() && !inlet.take(data, self.clock).await {
                    self.end(stream, ConnectionEnd::Stuck);
                } else if ends {
                    inlet.pieces = None;
                }
            }
            SpdyFrame::Reset { stream } => {
                self.halves.retain(|_, half| half.stream() != stream);
                self.end(stream, ConnectionEnd::Reset);
            }
            SpdyFrame::Ping { number } => drop(self.out.send(SpdyFrame::pong(number)).await),
            SpdyFrame::Away | SpdyFrame::Other => {}
        }
    }

    fn end(&mut self, stream: u32, end: ConnectionEnd) {
        if let Some(inlet) = self.streams.remove(&stream) {
            // It may have ended by itself.
            let _ = inlet.end.send(end);
        }
    }

    /// Handles a new stream; with its other half it becomes a connection.
    async fn open(&mut self, stream: u32, kind: &str, number: String, port: &str) {
        let half = match kind {
            "data" => StreamHalf::Data(stream),
            "error" => StreamHalf::Error(stream),
            _ => return self.refuse(stream).await,
        };
        match (half, self.halves.remove(&number)) {
            (StreamHalf::Data(data), Some(StreamHalf::Error(error)))
            | (StreamHalf::Error(error), Some(StreamHalf::Data(data))) => {
                self.begin(data, error, port).await;
            }
            (half, former) => {
                if let Some(former) = former {
                    self.refuse(former.stream()).await;
                }
                if self.halves.len() < MAX_CONNECTIONS {
                    self.halves.insert(number, half);
                } else {
                    self.refuse(stream).await;
                }
            }
        }
    }

    async fn refuse(&self, stream: u32) {
        let _ = self.out.send(SpdyFrame::reset(stream, Why::Refused)).await;
    }

    /// Opens a connection, or sends the error.
    async fn begin(&mut self, data: u32, error: u32, port: &str) {
        let connection = ForwardedConnection {
            data,
            error,
            out: self.out.clone(),
        };
        let Ok(number) = port.parse() else {
            let why = format!("\"{port}\" is no port");
            return connection.end(Err(why)).await;
        };
        let Ok(place) = self.room.clone().try_acquire_owned() else {
            let why =
                format!("there are {MAX_CONNECTIONS} connections already, and no more at a time");
            return connection.end(Err(why)).await;
        };
        self.streams.retain(|_, inlet| !inlet.end.is_closed());
        let (pieces, inputs) = mpsc::channel(MAX_WAITING_PIECES);
        let (end, ended) = oneshot::channel();
        let inlet = ConnectionInput {
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
struct ForwardedConnection {
    data: u32,
    error: u32,
    out: mpsc::Sender<Bytes>,
}

impl ForwardedConnection {
    async fn pass(
        &self,
        connecting: BoxFuture<Result<Socket>>,
        inputs: mpsc::Receiver<Bytes>,
    ) -> std::result::Result<(), String> {
        let socket = connecting.await.map_err(|error| error.message)?;
        let (from_pod, to_pod) = split(socket);
        let up = async {
            up(to_pod, inputs).await;
            // The pod may continue to send.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = self.down(from_pod) => {}
            () = up => {}
        }
        Ok(())
    }

    /// Resets the streams of a connection that the server ends. An error on the error stream would
    /// make clients give up all connections.
    async fn cut(&self, end: ConnectionEnd) -> std::result::Result<(), String> {
        if end == ConnectionEnd::Stuck {
            tracing::debug!("closed a connection to a pod that does not read");
            let reset = SpdyFrame::reset(self.data, Why::Overflow);
            let _ = self.out.send(reset).await;
        }
        Ok(())
    }

    /// Forwards what the pod sends.
    async fn down(&self, mut from_pod: ReadHalf<Socket>) {
        let mut piece = BytesMut::with_capacity(PIECE_BYTES);
        // A broken connection has ended as well.
        while let Ok(1..) = from_pod.read_buf(&mut piece).await {
            let frame = SpdyFrame::data(self.data, &piece, false);
            if self.out.send(frame).await.is_err() {
                return;
            }
            piece.clear();
        }
        let _ = self.out.send(SpdyFrame::data(self.data, b"", true)).await;
    }

    /// Closes both streams, with the error if there is one.
    async fn end(&self, done: std::result::Result<(), String>) {
        if let Err(why) = done {
            let _ = self
                .out
                .send(SpdyFrame::data(self.error, why.as_bytes(), false))
                .await;
            let _ = self.out.send(SpdyFrame::data(self.data, b"", true)).await;
        }
        let _ = self.out.send(SpdyFrame::data(self.error, b"", true)).await;
    }
}

/// Forwards what the client sends.
async fn up(mut to_pod: WriteHalf<Socket>, mut inputs: mpsc::Receiver<Bytes>) {
    while let Some(data) = inputs.recv().await {
        if to_pod.write_all(&data).await.is_err() {
            // The other direction notices it, too.
            return;
        }
    }
    let _ = to_pod.shutdown().await;
}

#[cfg(test)]
mod tests;
