//! A connection to PostgreSQL that breaks at each statement: before the server gets it, or after it has
//! carried it out and before it has answered.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use neap_store::{
    AuditRow, Commit, Document, Error, Etag, Lease, Precondition, QueueChange, Scope, Store,
    UniqueKey, Write,
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Notify,
};

use crate::{THINGS, contract::key, options, postgres::Postgres};

/// When the connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Before,
    After,
}

/// A relay that breaks one connection.
struct Relay {
    address: SocketAddr,
    state: Arc<RelayState>,
}

#[derive(Default)]
struct RelayState {
    /// The number of statements so far.
    statements: AtomicUsize,
    /// Breaks at this one; none is zero.
    at: AtomicUsize,
    after: AtomicBool,
    has_broken: AtomicBool,
}

impl Relay {
    async fn to(server: SocketAddr) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let state = Arc::new(RelayState::default());
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = socket.accept().await {
                let state = shared.clone();
                tokio::spawn(async move {
                    let server = TcpStream::connect(server).await.unwrap();
                    relay(client, server, state).await;
                });
            }
        });
        Self { address, state }
    }

    fn break_at(&self, statement: usize, cut: Cut) {
        let state = &self.state;
        state.statements.store(0, Ordering::Relaxed);
        state.has_broken.store(false, Ordering::Relaxed);
        state.after.store(cut == Cut::After, Ordering::Relaxed);
        state.at.store(statement, Ordering::Relaxed);
    }
}

/// One message: its type, unless it is the first of a client, and its content.
async fn message(from: &mut OwnedReadHalf, is_first: bool) -> Option<(u8, Vec<u8>)> {
    let mut head = vec![0; if is_first { 4 } else { 5 }];
    from.read_exact(&mut head).await.ok()?;
    let length = head[head.len() - 4..].try_into().unwrap();
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap();
    let mut content = vec![0; length - 4];
    from.read_exact(&mut content).await.ok()?;
    let kind = if is_first { 0 } else { head[0] };
    head.extend(content);
    Some((kind, head))
}

async fn relay(client: TcpStream, server: TcpStream, state: Arc<RelayState>) {
    for socket in [&client, &server] {
        socket.set_nodelay(true).unwrap();
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let silent = Arc::new(AtomicBool::new(false));
    let broken = Arc::new(Notify::new());
    // A connection that breaks takes both directions with it.
    tokio::select! {
        () = requests(from_client, to_server, &state, &silent, &broken) => {}
        () = answers(from_server, to_client, &silent) => {}
        () = broken.notified() => {}
    }
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &RelayState,
    silent: &AtomicBool,
    broken: &Notify,
) {
    let mut is_first = true;
    while let Some((kind, bytes)) = message(&mut from, is_first).await {
        is_first = false;
        // A query, or the end of one with parameters: the server answers with ReadyForQuery.
        if matches!(kind, b'Q' | b'S') {
            let number = state.statements.fetch_add(1, Ordering::Relaxed) + 1;
            if number == state.at.load(Ordering::Relaxed) {
                state.has_broken.store(true, Ordering::Relaxed);
                if !state.after.load(Ordering::Relaxed) {
                    broken.notify_one();
                    return std::future::pending().await;
                }
                silent.store(true, Ordering::Relaxed);
            }
        }
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// Returns, which breaks the connection, when an answer that the client shall not get is complete.
async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, silent: &AtomicBool) {
    while let Some((kind, bytes)) = message(&mut from, false).await {
        if silent.load(Ordering::Relaxed) {
            if kind == b'Z' {
                return;
            }
        } else if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// A caller that keeps to the contract: after a transient error it reads what is there, and calls again
/// what has not happened.
struct Caller<'a> {
    store: &'a Store,
    /// The same database without a relay.
    witness: &'a Store,
    id: String,
}

fn row(action: String) -> AuditRow {
    AuditRow {
        action,
        ..AuditRow::default()
    }
}

impl Caller<'_> {
    async fn find(&self) -> Option<Document> {
        let found = self.witness.get(Scope::Everywhere, &key(&self.id)).await;
        found.unwrap()
    }

    /// Calls until it succeeds. An error that says nothing happened is held to that.
    async fn commit(&self, stage: i64, make: impl Fn(Option<Document>) -> Commit) -> Etag {
        loop {
            let before = self.find().await;
            let has_happened = |found: &Option<Document>| {
                found.as_ref().is_some_and(|it| it.body["stage"] == stage)
            };
            match self.store.commit(make(before)).await {
                Ok(etags) => return etags[0],
                Err(Error::Unavailable(error)) => {
                    let found = self.find().await;
                    assert!(!has_happened(&found), "stage {stage} happened: {error}");
                }
                Err(Error::OutcomeUnknown(_)) => {
                    let found = self.find().await;
                    if has_happened(&found) {
                        return found.unwrap().etag;
                    }
                }
                Err(error) => panic!("stage {stage}: {error}"),
            }
        }
    }

    fn put(&self, stage: i64, precondition: Precondition, queue: QueueChange) -> Commit {
        let write = Write::Put {
            key: key(&self.id),
            precondition,
            body: json!({ "stage": stage }),
            unique: vec![UniqueKey {
                name: "client",
                value: self.id.clone(),
            }],
            ttl: None,
            queue,
        };
        Commit::default()
            .with(write)
            .announce("stage", json!({"of": self.id, "stage": stage}))
            .audit(row(format!("{} {stage}", self.id)))
    }

    async fn lease(&self) -> Lease {
        loop {
            // A claim whose answer is lost holds the document until its lease expires.
            match self.store.claim(THINGS, "cut", "caller", 50).await {
                Ok(Some(claimed)) => return claimed.lease,
                Ok(None) => tokio::task::yield_now().await,
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
        }
    }

    /// The life of a document: made, claimed, renewed, changed under the lease, ended, deleted.
    async fn live(&self) {
        let queue = QueueChange::Queue {
            name: "cut",
            delay: 0,
            reset: true,
        };
        self.commit(1, |_| self.put(1, Precondition::Absent, queue.clone()))
            .await;
        let mut lease = self.lease().await;
        loop {
            match self.store.renew(&lease, 600_000).await {
                Ok(()) => break,
                Err(Error::LeaseLost(_)) => lease = self.lease().await,
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
        }
        self.commit(2, |found| {
            let precondition = Precondition::EtagAndLease(found.unwrap().etag, lease.clone());
            self.put(2, precondition, QueueChange::Keep)
                .with(Write::Fence {
                    lease: lease.clone(),
                    progress: true,
                })
        })
        .await;
        self.commit(3, |found| {
            let precondition = Precondition::EtagAndLease(found.unwrap().etag, lease.clone());
            self.put(3, precondition, QueueChange::Done)
        })
        .await;
        loop {
            let Some(found) = self.find().await else {
                return;
            };
            let delete = Write::Delete {
                key: key(&self.id),
                precondition: Precondition::Etag(found.etag),
            };
            match self.store.commit(Commit::default().with(delete)).await {
                Ok(_) => return,
                Err(error) => assert!(error.is_transient(), "{error}"),
            }
        }
    }
}

/// Each change happens exactly once, wherever the connection breaks.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_at_any_statement_neither_loses_nor_repeats_a_change() {
    let test = "a_connection_that_breaks_at_any_statement_neither_loses_nor_repeats_a_change";
    let Some(postgres) = Postgres::start(test) else {
        return;
    };
    let witness = postgres.store("cut").await;
    let relay = Relay::to(postgres.socket()).await;
    let address = format!("postgres://postgres@{}/cut?sslmode=disable", relay.address);
    let mut tried = 0;
    // A statement that never arrives is the simpler case: a sample of them is enough.
    for (cut, step) in [(Cut::Before, 4), (Cut::After, 1)] {
        for statement in (1..).step_by(step) {
            // Each on a new pool, so that the statements are the same.
            relay.break_at(usize::MAX, cut);
            let store = Store::open(&address, options()).await.unwrap();
            relay.break_at(statement, cut);
            let id = format!("{cut:?}-{statement}").to_lowercase();
            let caller = Caller {
                store: &store,
                witness: &witness,
                id: id.clone(),
            };
            caller.live().await;
            if !relay.state.has_broken.load(Ordering::Relaxed) {
                break;
            }
            tried += 1;
            let audit = witness.audit(100_000).await.unwrap();
            let of_this = audit
                .iter()
                .filter(|row| row.action.starts_with(&format!("{id} ")));
            let stages: Vec<_> = of_this.map(|row| row.action.clone()).collect();
            assert_eq!(stages, [1, 2, 3].map(|stage| format!("{id} {stage}")));
            let outbox = witness.outbox(100_000).await.unwrap();
            let told = outbox.iter().filter(|(.., body)| body["of"] == id);
            assert_eq!(told.count(), 3, "{id}");
            assert_eq!(caller.find().await, None);
        }
    }
    eprintln!("{tried} cuts");
    assert!(tried > 40, "{tried} cuts");
}
