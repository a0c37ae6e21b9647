//! Whether a write may start.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

use crate::{
    clock::{Clock, Uptime},
    planted,
    why::{Code, Coded},
};

/// A term of leadership: from acquiring the Lease to losing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term(pub i32);

/// Another process leads, or none does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this process does not lead{}", holder.as_ref().map(|name| format!("; {name} does")).unwrap_or_default())]
pub struct NotLeading {
    /// The identity of the leader, if known.
    pub holder: Option<String>,
}

/// The state of the election, shared within the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LeaderState {
    Following(Option<String>),
    Leading(Term),
}

/// Whether this process leads. Cheap to clone and to check.
#[derive(Clone)]
pub struct Leadership {
    clock: Clock,
    state: watch::Receiver<LeaderState>,
    /// Milliseconds of uptime until which writes may start.
    until: Arc<AtomicU64>,
    /// Milliseconds of uptime at which another process may lead.
    expires: Arc<AtomicU64>,
}

/// The writing side of [`Leadership`], held by the elector.
pub(crate) struct LeadershipSetter {
    clock: Clock,
    state: watch::Sender<LeaderState>,
    until: Arc<AtomicU64>,
    expires: Arc<AtomicU64>,
}

impl Leadership {
    pub(crate) fn new(clock: Clock) -> (LeadershipSetter, Self) {
        let (sender, state) = watch::channel(LeaderState::Following(None));
        let (until, expires) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let setter = LeadershipSetter {
            clock,
            state: sender,
            until: until.clone(),
            expires: expires.clone(),
        };
        let leadership = Self {
            clock,
            state,
            until,
            expires,
        };
        (setter, leadership)
    }

    /// Leadership of a process that runs alone: it may always write.
    pub fn without_election(clock: Clock) -> Self {
        let (setter, leadership) = Self::new(clock);
        setter.lead(Term(0), Duration::MAX, Duration::MAX);
        leadership
    }

    /// Leadership of a process that only reads: it never writes.
    pub fn never(clock: Clock) -> Self {
        Self::new(clock).1
    }

    /// The term in which a write may start now. Call it immediately before the write: a process that
    /// was suspended in between must not start it.
    pub fn check(&self) -> Result<Term, NotLeading> {
        let state = self.state.borrow();
        planted!(FollowersWrite => if let LeaderState::Following(_) = *state { return Ok(Term(0)) });
        match &*state {
            LeaderState::Leading(term) if self.is_before_deadline() => Ok(*term),
            LeaderState::Leading(_) => Err(NotLeading { holder: None }),
            LeaderState::Following(holder) => Err(NotLeading {
                holder: holder.clone(),
            }),
        }
    }

    /// How long a write that starts now may take: one that is in flight when another process leads
    /// could take effect after a write of that process.
    pub fn remaining(&self) -> Duration {
        let expires = Duration::from_millis(self.expires.load(Ordering::Acquire));
        expires.saturating_sub(self.clock.uptime())
    }

    /// Resolves with the term once this process leads; never after its elector has ended.
    pub async fn gained(&mut self) -> Term {
        loop {
            if let Ok(term) = self.check() {
                return term;
            }
            self.changed().await;
        }
    }

    /// Resolves once this process no longer leads in `term`.
    pub async fn lost(&mut self, term: Term) {
        while self.check() == Ok(term) {
            let until = Duration::from_millis(self.until.load(Ordering::Acquire));
            let clock = self.clock;
            tokio::select! {
                () = self.changed() => {}
                () = clock.sleep_until(until) => {}
            }
        }
    }

    async fn changed(&mut self) {
        if self.state.changed().await.is_err() {
            // The elector has ended and renews no more; the current term ends at its deadline.
            std::future::pending::<()>().await;
        }
    }

    fn is_before_deadline(&self) -> bool {
        self.clock.uptime() < Duration::from_millis(self.until.load(Ordering::Acquire))
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leadership")
            .field(&*self.state.borrow())
            .finish()
    }
}

impl LeadershipSetter {
    /// Sets this process as leader: writes may start before `until`, and others may lead when the lease
    /// `expires`. Whether the state changed.
    pub(crate) fn lead(&self, term: Term, until: Uptime, expires: Uptime) -> bool {
        let millis = |moment: Uptime| u64::try_from(moment.as_millis()).unwrap_or(u64::MAX);
        let until = millis(until);
        self.expires.store(millis(expires), Ordering::Release);
        let previous = self.until.swap(until, Ordering::AcqRel);
        // Tasks that found the deadline over wait for this notification.
        let lapsed = self.clock.uptime() >= Duration::from_millis(previous);
        self.set_state(LeaderState::Leading(term), lapsed)
    }

    pub(crate) fn follow(&self, holder: Option<String>) {
        self.set_state(LeaderState::Following(holder), false);
    }

    pub(super) fn leads(&self) -> bool {
        matches!(*self.state.borrow(), LeaderState::Leading(_))
    }

    /// Sets the state; wakes waiting tasks if it changed or if `notify`. Whether it changed.
    fn set_state(&self, state: LeaderState, notify: bool) -> bool {
        let mut changes = false;
        self.state.send_if_modified(|now| {
            changes = *now != state;
            *now = state;
            changes || notify
        });
        changes
    }
}

impl Coded for NotLeading {
    fn code(&self) -> Code {
        Code("NT-KIT-001")
    }
}
