//! What everybody can see: who is where, and what became of every request.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::Arc,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use neap_idle::wake::Waker;
use neap_kit::{clock::Clock, manager::Service, site::Site};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

/// When clients ask: while it sleeps, while it wakes, and while it is awake; and once more.
const ASKED: [u64; 8] = [
    600_000, 600_000, 600_001, 601_500, 605_000, 900_000, 900_000, 930_000,
];
pub(crate) const REQUESTS: usize = ASKED.len();
pub(crate) const LAST: Duration = Duration::from_millis(ASKED[REQUESTS - 1]);

/// What a resolver does with a request that it has taken in.
pub(crate) struct Taken {
    pub(crate) id: usize,
    pub(crate) reply: oneshot::Sender<Result<(), String>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
enum Fate {
    #[default]
    Open,
    Answered,
    /// It was told why not.
    Refused(String),
    /// The connection broke off.
    Closed,
}

#[derive(Default)]
pub(crate) struct Town {
    /// Who wakes, in this life of the operator.
    pub(crate) operator: Mutex<Option<Waker>>,
    /// Where this life of the resolver takes connections.
    pub(crate) resolver: Mutex<Option<mpsc::Sender<Taken>>>,
    /// Pods that take connections.
    pub(crate) pods: Mutex<HashSet<SocketAddr>>,
    pub(crate) woken: AtomicUsize,
    pub(crate) lives: AtomicUsize,
    book: Mutex<Vec<(usize, Fate)>>,
}

impl Town {
    /// A pod has the request.
    pub(crate) fn saw(&self, id: usize) {
        self.book.lock()[id].0 += 1;
    }

    pub(crate) fn wakes(&self) -> usize {
        self.woken.load(Ordering::SeqCst)
    }

    pub(crate) fn answered(&self) -> usize {
        self.count(|fate| *fate == Fate::Answered)
    }

    pub(crate) fn closed(&self) -> usize {
        self.count(|fate| *fate == Fate::Closed)
    }

    fn count(&self, is: impl Fn(&Fate) -> bool) -> usize {
        self.book.lock().iter().filter(|row| is(&row.1)).count()
    }

    /// What is wrong with what became of the requests. Nothing here takes as long as the deadline, no
    /// line is full and nobody deletes anything: whoever is refused was refused wrongly.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let died = self.lives.load(Ordering::SeqCst) > 1;
        let book = self.book.lock();
        let mut wrong = Vec::new();
        for (id, (seen, fate)) in book.iter().enumerate() {
            let fine = match fate {
                Fate::Answered => *seen == 1,
                Fate::Closed => died && *seen <= 1,
                Fate::Open | Fate::Refused(_) => false,
            };
            if !fine {
                wrong.push(format!(
                    "O4 request {id}: {fate:?}, and pods had it {seen} times"
                ));
            }
        }
        if book.len() != REQUESTS {
            wrong.push(format!("only {} requests were made", book.len()));
        }
        wrong
    }

    /// Those who ask, each for itself.
    pub(crate) fn clients(self: &Arc<Self>, site: &Site) -> Vec<Service> {
        let (town, clock) = (self.clone(), site.clock);
        vec![Service::new("clients", move |stop| async move {
            *town.book.lock() = vec![Default::default(); REQUESTS];
            let mut all = JoinSet::new();
            for (id, at) in ASKED.into_iter().enumerate() {
                let town = town.clone();
                all.spawn(async move {
                    clock.sleep_until(Duration::from_millis(at)).await;
                    let fate = town.ask(id, clock).await;
                    town.book.lock()[id].1 = fate;
                });
            }
            stop.cancelled().await;
        })]
    }

    async fn ask(&self, id: usize, clock: Clock) -> Fate {
        loop {
            let (reply, answer) = oneshot::channel();
            let door = self.resolver.lock().clone();
            let taken = door.is_some_and(|door| door.try_send(Taken { id, reply }).is_ok());
            if taken {
                return match answer.await {
                    Ok(Ok(())) => Fate::Answered,
                    Ok(Err(why)) => Fate::Refused(why),
                    Err(_) => Fate::Closed,
                };
            }
            // Nobody is there to take it: it was not taken in, and the client tries again.
            clock.sleep(Duration::from_secs(1)).await;
        }
    }
}
