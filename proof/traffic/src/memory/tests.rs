use neap_idle::resolver::net::{Listener, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{listener::MAX_PENDING, pipe::BUFFER_BYTES, *};

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn listening(memory: &Memory, at: &str) -> Listener {
    let at = address(at);
    memory.at(at.ip()).listen(None, at.port()).unwrap()
}

async fn dial(memory: &Memory, to: &str) -> io::Result<Stream> {
    let from = address("10.9.0.1:0").ip();
    memory.at(from).connect(address(to)).await
}

async fn both() -> (Stream, Stream) {
    let memory = Memory::default();
    let listener = listening(&memory, "10.0.0.1:80");
    let here = dial(&memory, "10.0.0.1:80").await.unwrap();
    let (there, source) = listener.accept().await.unwrap();
    assert_eq!(here.local_addr().unwrap(), source);
    (here, there)
}

fn kind<T: fmt::Debug>(done: io::Result<T>) -> io::ErrorKind {
    done.unwrap_err().kind()
}

#[tokio::test]
async fn one_direction_may_end_before_the_other() {
    let (mut here, mut there) = both().await;
    here.write_all(b"question").await.unwrap();
    here.shutdown().await.unwrap();
    assert_eq!(
        kind(here.write_all(b"more").await),
        io::ErrorKind::BrokenPipe
    );
    let mut received = String::new();
    there.read_to_string(&mut received).await.unwrap();
    assert_eq!(received, "question");
    there.write_all(b"answer").await.unwrap();
    drop(there);
    received.clear();
    here.read_to_string(&mut received).await.unwrap();
    assert_eq!(received, "answer");
}

#[tokio::test]
async fn what_was_looked_at_is_still_there() {
    let (mut here, there) = both().await;
    assert!(there.is_quiet());
    let mut peeked = [0; 3];
    let look = there.peek(&mut peeked);
    let (looked, written) = tokio::join!(look, here.write_all(b"hello"));
    written.unwrap();
    assert_eq!((looked.unwrap(), &peeked), (3, b"hel"));
    assert!(!there.is_quiet());
    there.readable().await.unwrap();
    let mut all = [0; 9];
    assert_eq!(there.try_read(&mut all).unwrap(), 5);
    assert_eq!(&all[..5], b"hello");
    assert_eq!(kind(there.try_read(&mut all)), io::ErrorKind::WouldBlock);
    drop(here);
    assert_eq!(there.peek(&mut peeked).await.unwrap(), 0);
    assert!(!there.is_quiet());
}

#[tokio::test]
async fn a_reset_is_heard_after_what_was_said_before() {
    let (mut here, mut there) = both().await;
    there.write_all(b"bye").await.unwrap();
    there.reset_at_end();
    drop(there);
    let mut received = [0; 3];
    here.read_exact(&mut received).await.unwrap();
    assert_eq!(&received, b"bye");
    assert_eq!(
        kind(here.read(&mut received).await),
        io::ErrorKind::ConnectionReset
    );
    assert_eq!(
        kind(here.write_all(b"?").await),
        io::ErrorKind::ConnectionReset
    );
}

#[tokio::test]
async fn who_leaves_something_unread_resets() {
    let (mut here, there) = both().await;
    here.write_all(b"unheard").await.unwrap();
    drop(there);
    let received = here.read(&mut [0]).await;
    assert_eq!(kind(received), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_write_to_a_closed_peer_is_lost_and_the_next_one_fails() {
    let (mut here, there) = both().await;
    drop(there);
    here.write_all(b"lost").await.unwrap();
    assert_eq!(kind(here.write_all(b"?").await), io::ErrorKind::BrokenPipe);
    assert_eq!(here.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn writes_block_once_the_buffer_is_full() {
    let (mut here, mut there) = both().await;
    let sent = vec![7; BUFFER_BYTES + 1];
    assert_eq!(here.try_write(&sent).unwrap(), BUFFER_BYTES);
    assert_eq!(kind(here.try_write(b"?")), io::ErrorKind::WouldBlock);
    let mut received = vec![0; BUFFER_BYTES + 1];
    let (written, read) = tokio::join!(here.write_all(b"?"), there.read_exact(&mut received));
    written.unwrap();
    read.unwrap();
    assert_eq!(received.last(), Some(&b'?'));
}

#[tokio::test]
async fn waiting_tasks_are_woken_when_the_peer_closes() {
    let (mut here, there) = both().await;
    here.write_all(&vec![0; BUFFER_BYTES]).await.unwrap();
    let writes = async move { here.write_all(b"?").await };
    let leaves = async move {
        tokio::task::yield_now().await;
        drop(there);
    };
    let (written, ()) = tokio::join!(writes, leaves);
    assert_eq!(kind(written), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn connections_stand_before_they_are_accepted_and_are_reset_if_they_never_are() {
    let memory = Memory::default();
    assert_eq!(
        kind(dial(&memory, "10.0.0.1:80").await),
        io::ErrorKind::ConnectionRefused
    );
    let listener = listening(&memory, "10.0.0.1:80");
    let mut waits = dial(&memory, "10.0.0.1:80").await.unwrap();
    waits.write_all(b"early").await.unwrap();
    drop(listener);
    let received = waits.read(&mut [0]).await;
    assert_eq!(kind(received), io::ErrorKind::ConnectionReset);
    assert_eq!(
        kind(dial(&memory, "10.0.0.1:80").await),
        io::ErrorKind::ConnectionRefused
    );
}

#[tokio::test]
async fn a_place_has_one_listener_and_so_many_wait_there() {
    let memory = Memory::default();
    let listener = listening(&memory, "10.0.0.1:80");
    let again = memory.at(address("10.0.0.1:80").ip()).listen(None, 80);
    assert_eq!(kind(again), io::ErrorKind::AddrInUse);
    let mut waiting = Vec::new();
    for _ in 0..MAX_PENDING {
        waiting.push(dial(&memory, "10.0.0.1:80").await.unwrap());
    }
    let more = dial(&memory, "10.0.0.1:80").await;
    assert_eq!(kind(more), io::ErrorKind::TimedOut);
    let (_, first) = listener.accept().await.unwrap();
    assert_eq!(waiting[0].local_addr().unwrap(), first);
    assert_ne!(waiting[1].local_addr().unwrap(), first);
}

#[derive(Debug)]
struct Elsewhere;

impl Route for Elsewhere {
    fn destination(&self, _: IpAddr, to: SocketAddr) -> Option<SocketAddr> {
        (to.port() == 80).then(|| address("10.0.0.2:8080"))
    }
}

#[tokio::test]
async fn connections_go_where_they_are_led() {
    let memory = Memory::default();
    memory.set_route(Arc::new(Elsewhere));
    let listener = listening(&memory, "10.0.0.2:8080");
    let here = dial(&memory, "10.0.0.1:80").await.unwrap();
    let (there, source) = listener.accept().await.unwrap();
    assert_eq!(here.local_addr().unwrap(), source);
    assert_eq!(there.local_addr().unwrap(), address("10.0.0.2:8080"));
    let nowhere = dial(&memory, "10.0.0.1:81").await;
    assert_eq!(kind(nowhere), io::ErrorKind::ConnectionRefused);
}
