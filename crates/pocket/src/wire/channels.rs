//! The streams of a command in one WebSocket: each message begins with the number of a channel.

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

/// The longest message that a client may send.
const LONGEST: usize = 4 << 20;
/// So much input may wait for a command before no more of it is received.
const ROOM: usize = 1 << 20;
/// While nothing is received, only something that is sent shows whether the client is still there.
const STILL_THERE: Duration = Duration::from_secs(5);
/// How much of what a command prints is sent in one message.
const PIECE: usize = 32 << 10;
/// How long what a command has printed is sent after its end, while somebody that it left behind
/// could still print.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// Standard input ends with the connection.
    V4,
    /// Standard input can be closed.
    V5,
}

impl Protocol {
    /// The subprotocol of that name.
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

/// Carries the streams of a command until it has ended or the client has left, with which it ends.
pub(super) async fn carry<S>(
    connection: S,
    protocol: Protocol,
    execution: Execution,
    clock: &dyn Clock,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .max_message_size(Some(LONGEST))
        .max_frame_size(Some(LONGEST));
    let socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(config)).await;
    let carrier = Carrier {
        socket,
        protocol,
        input: Input::default(),
        out: BytesMut::with_capacity(PIECE),
        err: BytesMut::with_capacity(PIECE),
        execution,
    };
    if let Err(error) = carrier.run(clock).await {
        tracing::debug!(%error, "a client left before its command had ended");
    }
}

struct Carrier<S> {
    socket: WebSocketStream<S>,
    protocol: Protocol,
    execution: Execution,
    input: Input,
    out: BytesMut,
    err: BytesMut,
}

/// Input that the command has not taken yet.
#[derive(Default)]
struct Input {
    pieces: VecDeque<Bytes>,
    length: usize,
    /// No more comes after that.
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
        self.length >= ROOM
    }

    /// The command took so much of the first piece.
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

/// What can happen next.
enum Event {
    Printed(io::Result<usize>),
    Complained(io::Result<usize>),
    Took(io::Result<usize>),
    Received(Option<Result<Message, Error>>),
    Ended(i32),
    Late,
    Silence,
}

/// The size of a terminal, as clients spell it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Size {
    width: u16,
    height: u16,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Carrier<S> {
    async fn run(mut self, clock: &dyn Clock) -> Result<(), Error> {
        let mut code = None;
        let mut late: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(std::future::pending());
        let mut silence = clock.sleep(STILL_THERE);
        loop {
            let silent = self.execution.stdout.is_none() && self.execution.stderr.is_none();
            if let Some(code) = code.filter(|_| silent) {
                return self.finish(code).await;
            }
            match self.next(code.is_none(), &mut late, &mut silence).await {
                Event::Printed(Ok(1..)) => {
                    let printed = self.out.split().freeze();
                    self.send(STDOUT, &printed).await?;
                    // It is silence that is waited for, however slowly a client takes the rest.
                    if code.is_some() {
                        late = clock.sleep(LAST_WORDS);
                    }
                }
                Event::Complained(Ok(1..)) => {
                    let printed = self.err.split().freeze();
                    self.send(STDERR, &printed).await?;
                    if code.is_some() {
                        late = clock.sleep(LAST_WORDS);
                    }
                }
                Event::Printed(_) => self.execution.stdout = None,
                Event::Complained(_) => self.execution.stderr = None,
                Event::Took(Ok(count @ 1..)) => self.input.took(count),
                Event::Took(_) => self.close_input(),
                Event::Silence => {
                    self.socket.send(Message::Ping(Bytes::new())).await?;
                    silence = clock.sleep(STILL_THERE);
                }
                Event::Received(Some(message)) => {
                    if !self.take(message?) {
                        return Ok(());
                    }
                }
                Event::Received(None) => return Ok(()),
                Event::Ended(ended) => {
                    code = Some(ended);
                    late = clock.sleep(LAST_WORDS);
                }
                Event::Late => {
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
    ) -> Event {
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
            read = read(stdout, &mut self.out) => Event::Printed(read),
            read = read(stderr, &mut self.err) => Event::Complained(read),
            took = write(stdin, waiting) => Event::Took(took),
            message = self.socket.next(), if !is_full => Event::Received(message),
            () = silence, if is_full => Event::Silence,
            code = exit, if running => Event::Ended(code),
            () = late => Event::Late,
        }
    }

    /// Takes in what a client sends; whether it stays.
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

    /// Says how the command ended, and then good-bye.
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
            into.reserve(PIECE);
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

/// How a command ended, as clients read it.
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
