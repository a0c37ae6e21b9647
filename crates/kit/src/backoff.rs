//! Delays before another attempt.

mod watch;

pub(crate) use self::watch::WatchBackoff;
