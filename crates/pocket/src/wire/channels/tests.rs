use std::sync::Arc;

use parking_lot::Mutex;
use tokio::{
    io::{DuplexStream, duplex},
    sync::oneshot,
    task::JoinSet,
};

use super::*;
use crate::environment::Environment;

/// A command whose streams a test controls.
struct Command {
    client: WebSocketStream<DuplexStream>,
    stdin: DuplexStream,
    stdout: Option<DuplexStream>,
    stderr: Option<DuplexStream>,
    sizes: Arc<Mutex<Vec<(u16, u16)>>>,
    exit: Option<oneshot::Sender<i32>>,
    tasks: JoinSet<()>,
}

impl Command {
    async fn start(protocol: Protocol) -> Self {
        let (stdin, reads) = duplex(64);
        let (stdout, prints) = duplex(64);
        let (stderr, complains) = duplex(64);
        let (exit, exits) = oneshot::channel();
        let sizes = Arc::new(Mutex::new(Vec::new()));
        let seen = sizes.clone();
        let execution = Execution {
            stdin: Some(Box::pin(reads)),
            stdout: Some(Box::pin(prints)),
            stderr: Some(Box::pin(complains)),
            resize: Some(Box::new(move |columns, rows| {
                seen.lock().push((columns, rows));
            })),
            exit: Box::pin(async move { exits.await.unwrap_or(255) }),
        };
        let (near, far) = duplex(1 << 16);
        let clock = Environment::simulated(1).clock;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { carry(far, protocol, execution, &*clock).await });
        let client = WebSocketStream::from_raw_socket(near, Role::Client, None).await;
        Self {
            client,
            stdin,
            stdout: Some(stdout),
            stderr: Some(stderr),
            sizes,
            exit: Some(exit),
            tasks,
        }
    }

    async fn send(&mut self, message: &[u8]) {
        let message = Message::Binary(message.to_vec().into());
        self.client.send(message).await.unwrap();
    }

    async fn receive(&mut self) -> Option<(u8, Bytes)> {
        match self.client.next().await?.unwrap() {
            Message::Binary(mut data) => Some((data.get_u8(), data)),
            _ => None,
        }
    }

    /// Ends the command; returns the reported status.
    async fn end(mut self, code: i32) -> Value {
        (self.stdout, self.stderr) = (None, None);
        self.exit.take().unwrap().send(code).unwrap();
        let (channel, said) = self.receive().await.unwrap();
        assert_eq!(channel, ERROR);
        assert!(self.receive().await.is_none(), "and no more");
        self.tasks.join_next().await.unwrap().unwrap();
        serde_json::from_slice(&said).unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn each_stream_has_its_channel() {
    let mut command = Command::start(Protocol::V5).await;
    command
        .stdout
        .as_mut()
        .unwrap()
        .write_all(b"fine")
        .await
        .unwrap();
    assert_eq!(command.receive().await.unwrap(), (STDOUT, "fine".into()));
    command
        .stderr
        .as_mut()
        .unwrap()
        .write_all(b"bad")
        .await
        .unwrap();
    assert_eq!(command.receive().await.unwrap(), (STDERR, "bad".into()));
    command.send(b"\x04{\"Width\":80,\"Height\":24}").await;
    command.send(b"\0typed").await;
    command.send(&[CLOSE, STDIN]).await;
    let mut typed = String::new();
    command.stdin.read_to_string(&mut typed).await.unwrap();
    assert_eq!(typed, "typed");
    assert_eq!(*command.sizes.lock(), [(80, 24)]);
    let status = command.end(0).await;
    assert_eq!(status, json!({"metadata": {}, "status": "Success"}));
}

#[tokio::test(start_paused = true)]
async fn a_failure_tells_the_exit_code() {
    let status = Command::start(Protocol::V4).await.end(7).await;
    let cause = json!([{"reason": "ExitCode", "message": "7"}]);
    assert_eq!(status["details"]["causes"], cause);
    assert_eq!(status["reason"], "NonZeroExitCode");
}

#[tokio::test(start_paused = true)]
async fn output_continues_while_input_is_not_read() {
    let mut command = Command::start(Protocol::V5).await;
    command.send(&[0; 1000]).await;
    command
        .stdout
        .as_mut()
        .unwrap()
        .write_all(b"busy")
        .await
        .unwrap();
    assert_eq!(command.receive().await.unwrap(), (STDOUT, "busy".into()));
    let mut typed = [1; 999];
    command.stdin.read_exact(&mut typed).await.unwrap();
    assert_eq!(typed, [0; 999]);
}

#[tokio::test(start_paused = true)]
async fn one_who_left_something_behind_is_not_waited_for() {
    let mut command = Command::start(Protocol::V5).await;
    command.exit.take().unwrap().send(1).unwrap();
    let (channel, _) = command.receive().await.unwrap();
    assert_eq!(channel, ERROR, "although its output is still open");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_ends_the_command() {
    let mut command = Command::start(Protocol::V4).await;
    command.send(&[CLOSE, STDIN]).await;
    command.client.close(None).await.unwrap();
    command.tasks.join_next().await.unwrap().unwrap();
    assert!(command.exit.unwrap().is_closed());
}

#[tokio::test(start_paused = true)]
async fn input_ends_after_what_was_sent_before() {
    let mut command = Command::start(Protocol::V5).await;
    let sent = vec![b'x'; 5000];
    for piece in sent.chunks(1000) {
        command.send(&[&[STDIN], piece].concat()).await;
    }
    command.send(&[CLOSE, STDIN]).await;
    command.send(b"\0too late").await;
    let mut typed = Vec::new();
    command.stdin.read_to_end(&mut typed).await.unwrap();
    assert_eq!(typed, sent);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_while_its_input_waits_ends_the_command() {
    for (messages, closes) in [(1, true), (1, false), (40, false)] {
        let mut command = Command::start(Protocol::V5).await;
        // The command reads none of it. In the last round no more of it is received.
        let piece = vec![0; 1 << 15];
        for _ in 0..messages {
            let message = Message::Binary(piece.clone().into());
            command.client.feed(message).await.unwrap();
            tokio::select! {
                sent = command.client.flush() => sent.unwrap(),
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
        }
        assert!(!command.exit.as_ref().unwrap().is_closed());
        if closes {
            command.client.close(None).await.unwrap();
        }
        drop(command.client);
        let ended = tokio::time::timeout(Duration::from_mins(1), command.tasks.join_next());
        ended.await.expect("it is noticed").unwrap().unwrap();
        assert!(command.exit.unwrap().is_closed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_hears_from_a_command_that_takes_no_input() {
    let mut command = Command::start(Protocol::V5).await;
    command.send(&[0; 1000]).await;
    command
        .client
        .send(Message::Ping("there?".into()))
        .await
        .unwrap();
    let answer = command.client.next().await.unwrap().unwrap();
    assert_eq!(answer, Message::Pong("there?".into()));
}
