//! The streams of a command in one WebSocket: each message begins with a channel number.

use std::{collections::VecDeque, io, pin::Pin, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use crate::{environment::Clock, runtime::Execution};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Says that another channel is closed.
const CLOSE: u8 = 255;

/// Bytes of a message from a client, at most.
const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// Bytes of input that may wait for a command before no more is received.
const MAX_PENDING_INPUT_BYTES: usize = 1 << 20;
/// The ping interval while nothing is received: only sending shows whether the client is still
/// there.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// Bytes of output in one message, at most.
const PIECE_BYTES: usize = 32 << 10;
/// How long output is still sent after a command's end, while a process that it left behind could
/// still print.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The version of the subprotocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Standard input ends with the connection.
    V4,
    /// Standard input can be closed.
    V5,
}

impl Protocol {
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::V4, Self::V5]
            .into_iter()
            .find(|protocol| protocol.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4.channel.k8s.io",
            Self::V5 => "v5.channel.k8s.io",
        }
    }
}

/// Transfers the streams of a command until it ends or the client leaves, which ends the command.
pub(super) async fn carry<S>(
    connection: S,
    protocol: Protocol,
    execution: Execution,
    clock: &dyn Clock,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES));
    let socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
    let carrier = ExecSession {
        socket,
        protocol,
        input: Input::default(),
        out: BytesMut::with_capacity(PIECE_BYTES),
        err: BytesMut::with_capacity(PIECE_BYTES),
        execution,
    };
    if let Err(error) = carrier.run(clock).await {
        tracing::debug!(%error, "a client left before its command had ended");
    }
}

struct ExecSession<S> {
    socket: WebSocketStream<S>,
    protocol: Protocol,
    execution: Execution,
    input: Input,
    out: BytesMut,
    err: BytesMut,
}

/// Input that the command has not read yet.
#[derive(Default)]
struct Input {
    pieces: VecDeque<Bytes>,
    length: usize,
    /// No more input comes after it.
    ends: bool,
}

impl Input {
    fn add(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.length += piece.len();
            self.pieces.push_back(piece);
        }
    }

    fn is_full(&self) -> bool {
        self.length >= MAX_PENDING_INPUT_BYTES
    }

    /// Records that the command read this many bytes of the first piece.
    fn took(&mut self, count: usize) {
        self.length -= count;
        if let Some(first) = self.pieces.front_mut() {
            first.advance(count);
            if first.is_empty() {
                self.pieces.pop_front();
            }
        }
    }
}

/// The next event of the loop.
enum SessionEvent {
    Printed(io::Result<usize>),
    Complained(io::Result<usize>),
    Took(io::Result<usize>),
    Received(Option<Result<Message, Error>>),
    Ended(i32),
    Late,
    Silence,
}

/// The size of a terminal, as clients send it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Size {
    width: u16,
    height: u16,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ExecSession<S> {
    async fn run(mut self, clock: &dyn Clock) -> Result<(), Error> {
        let mut code = None;
        let mut late: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(std::future::pending());
        let mut silence = clock.sleep(PING_INTERVAL);
        loop {
            let silent = self.execution.stdout.is_none() && self.execution.stderr.is_none();
            if let Some(code) = code.filter(|_| silent) {
                return self.finish(code).await;
            }
            match self.next(code.is_none(), &mut late, &mut silence).await {
                SessionEvent::Printed(Ok(1..)) => {
                    let printed = self.out.split().freeze();
                    self.send(STDOUT, &printed).await?;
                    // The timeout measures silence, however slowly a client receives the rest.
                    if code.is_some() {
                        late = clock.sleep(OUTPUT_DRAIN_TIMEOUT);
                    }
                }
                SessionEvent::Complained(Ok(1..)) => {
                    let printed = self.err.split().freeze();
                    self.send(STDERR, &printed).await?;
                    if code.is_some() {
                        late = clock.sleep(OUTPUT_DRAIN_TIMEOUT);
                    }
                }
                SessionEvent::Printed(_) => self.execution.stdout = None,
                SessionEvent::Complained(_) => self.execution.stderr = None,
                SessionEvent::Took(Ok(count @ 1..)) => self.input.took(count),
                SessionEvent::Took(_) => self.close_input(),
                SessionEvent::Silence => {
                    self.socket.send(Message::Ping(Bytes::new())).await?;
                    silence = clock.sleep(PING_INTERVAL);
                }
                SessionEvent::Received(Some(message)) => {
                    if !self.take(message?) {
                        return Ok(());
                    }
                }
                SessionEvent::Received(None) => return Ok(()),
                SessionEvent::Ended(ended) => {
                    code = Some(ended);
                    late = clock.sleep(OUTPUT_DRAIN_TIMEOUT);
                }
                SessionEvent::Late => {
                    (self.execution.stdout, self.execution.stderr) = (None, None);
                }
            }
        }
    }

    async fn next(
        &mut self,
        running: bool,
        late: &mut Pin<Box<dyn Future<Output = ()> + Send>>,
        silence: &mut Pin<Box<dyn Future<Output = ()> + Send>>,
    ) -> SessionEvent {
        let Execution {
            stdin,
            stdout,
            stderr,
            exit,
            ..
        } = &mut self.execution;
        let is_full = self.input.is_full();
        let waiting = self.input.pieces.front();
        if waiting.is_none() && self.input.ends {
            *stdin = None;
        }
        tokio::select! {
            read = read(stdout, &mut self.out) => SessionEvent::Printed(read),
            read = read(stderr, &mut self.err) => SessionEvent::Complained(read),
            took = write(stdin, waiting) => SessionEvent::Took(took),
            message = self.socket.next(), if !is_full => SessionEvent::Received(message),
            () = silence, if is_full => SessionEvent::Silence,
            code = exit, if running => SessionEvent::Ended(code),
            () = late => SessionEvent::Late,
        }
    }

    /// Handles a message of the client; false if it leaves.
    fn take(&mut self, message: Message) -> bool {
        let Message::Binary(mut data) = message else {
            return !matches!(message, Message::Close(_));
        };
        if data.is_empty() {
            return true;
        }
        match data.get_u8() {
            STDIN if self.execution.stdin.is_some() && !self.input.ends => self.input.add(data),
            RESIZE => {
                let size = serde_json::from_slice::<Size>(&data);
                if let (Ok(size), Some(resize)) = (size, &self.execution.resize) {
                    resize(size.width, size.height);
                }
            }
            CLOSE if self.protocol == Protocol::V5 && data.first() == Some(&STDIN) => {
                self.input.ends = true;
            }
            _ => {}
        }
        true
    }

    fn close_input(&mut self) {
        self.execution.stdin = None;
        self.input = Input::default();
    }

    async fn send(&mut self, channel: u8, data: &[u8]) -> Result<(), Error> {
        let mut message = BytesMut::with_capacity(data.len() + 1);
        message.extend_from_slice(&[channel]);
        message.extend_from_slice(data);
        self.socket.send(Message::Binary(message.freeze())).await
    }

    /// Sends how the command ended, and closes the connection.
    async fn finish(mut self, code: i32) -> Result<(), Error> {
        let status = status(code).to_string();
        self.send(ERROR, status.as_bytes()).await?;
        let close = CloseFrame {
            code: CloseCode::Normal,
            reason: "".into(),
        };
        self.socket.close(Some(close)).await
    }
}

async fn read(
    stream: &mut Option<Pin<Box<dyn AsyncRead + Send>>>,
    into: &mut BytesMut,
) -> io::Result<usize> {
    match stream {
        Some(stream) => {
            into.reserve(PIECE_BYTES);
            stream.read_buf(into).await
        }
        None => std::future::pending().await,
    }
}

async fn write(
    stream: &mut Option<Pin<Box<dyn AsyncWrite + Send>>>,
    data: Option<&Bytes>,
) -> io::Result<usize> {
    match (stream, data) {
        (Some(stream), Some(data)) => stream.write(data).await,
        _ => std::future::pending().await,
    }
}

/// The `Status` that reports the exit code to clients.
fn status(code: i32) -> Value {
    if code == 0 {
        return json!({"metadata": {}, "status": "Success"});
    }
    json!({
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": format!("command terminated with non-zero exit code: {code}"),
        "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
    })
}

#[cfg(test)]
mod tests;
