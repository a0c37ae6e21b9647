//! Whether a write may begin.

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

/// One time of leading: from taking the Lease to losing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Term(pub i32);

/// Somebody else leads, or nobody does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this process does not lead{}", holder.as_ref().map(|name| format!("; {name} does")).unwrap_or_default())]
pub struct NotLeading {
    /// Who leads, as far as is known.
    pub holder: Option<String>,
}

/// What is known of the Lease, for everybody in the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    Following(Option<String>),
    Leading(Term),
}

/// Says whether this process leads. Cheap to copy and to ask.
#[derive(Clone)]
pub struct Leadership {
    clock: Clock,
    standing: watch::Receiver<Standing>,
    /// Milliseconds of uptime until which writes may begin.
    until: Arc<AtomicU64>,
    /// Milliseconds of uptime at which another may begin to lead.
    expires: Arc<AtomicU64>,
}

/// The end of it that the elector holds.
pub(crate) struct Post {
    clock: Clock,
    standing: watch::Sender<Standing>,
    until: Arc<AtomicU64>,
    expires: Arc<AtomicU64>,
}

impl Leadership {
    pub(crate) fn new(clock: Clock) -> (Post, Self) {
        let (sender, standing) = watch::channel(Standing::Following(None));
        let (until, expires) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let post = Post {
            clock,
            standing: sender,
            until: until.clone(),
            expires: expires.clone(),
        };
        let leadership = Self {
            clock,
            standing,
            until,
            expires,
        };
        (post, leadership)
    }

    /// For a process that has nobody beside it: it may always write.
    pub fn alone(clock: Clock) -> Self {
        let (post, leadership) = Self::new(clock);
        post.lead(Term(0), Duration::MAX, Duration::MAX);
        leadership
    }

    /// The term in which a write may begin now. Asked at the write's edge, not earlier: a process
    /// that was stopped in between must not begin what it was about to.
    pub fn check(&self) -> Result<Term, NotLeading> {
        let standing = self.standing.borrow();
        planted!(FollowersWrite => if let Standing::Following(_) = *standing { return Ok(Term(0)) });
        match &*standing {
            Standing::Leading(term) if self.is_within() => Ok(*term),
            Standing::Leading(_) => Err(NotLeading { holder: None }),
            Standing::Following(holder) => Err(NotLeading {
                holder: holder.clone(),
            }),
        }
    }

    /// How long a write that begins now may take: whatever is on its way when another begins to lead
    /// could be done after what that one does.
    pub fn left(&self) -> Duration {
        let expires = Duration::from_millis(self.expires.load(Ordering::Acquire));
        expires.saturating_sub(self.clock.uptime())
    }

    /// Resolves with the term once this process leads; never if its elector ended.
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
        if self.standing.changed().await.is_err() {
            // Nobody renews any longer; what was gained still ends in its time.
            std::future::pending::<()>().await;
        }
    }

    fn is_within(&self) -> bool {
        self.clock.uptime() < Duration::from_millis(self.until.load(Ordering::Acquire))
    }
}

impl fmt::Debug for Leadership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Leadership")
            .field(&*self.standing.borrow())
            .finish()
    }
}

impl Post {
    /// Writes may begin until `until`, and others may lead when it `expires`. Whether that changes
    /// the standing.
    pub(crate) fn lead(&self, term: Term, until: Uptime, expires: Uptime) -> bool {
        let millis = |moment: Uptime| u64::try_from(moment.as_millis()).unwrap_or(u64::MAX);
        let until = millis(until);
        self.expires.store(millis(expires), Ordering::Release);
        let former = self.until.swap(until, Ordering::AcqRel);
        // Whoever found the time over waits to hear that it goes on.
        let lapsed = self.clock.uptime() >= Duration::from_millis(former);
        self.stand(Standing::Leading(term), lapsed)
    }

    pub(crate) fn follow(&self, holder: Option<String>) {
        self.stand(Standing::Following(holder), false);
    }

    pub(super) fn leads(&self) -> bool {
        matches!(*self.standing.borrow(), Standing::Leading(_))
    }

    /// Wakes those who wait if it is another standing, or if they are to look again.
    fn stand(&self, standing: Standing, again: bool) -> bool {
        let mut changes = false;
        self.standing.send_if_modified(|now| {
            changes = *now != standing;
            *now = standing;
            changes || again
        });
        changes
    }
}

impl Coded for NotLeading {
    fn code(&self) -> Code {
        Code("NT-KIT-001")
    }
}
