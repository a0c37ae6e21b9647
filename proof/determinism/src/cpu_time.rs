//! The CPU time of a run.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

/// CPU time of this process.
pub fn cpu_time() -> Duration {
    used(UsageWho::RUSAGE_SELF)
}

/// CPU time of the child processes that have ended, and of their children.
pub fn children_cpu_time() -> Duration {
    used(UsageWho::RUSAGE_CHILDREN)
}

fn used(who: UsageWho) -> Duration {
    let Ok(usage) = getrusage(who) else {
        return Duration::ZERO;
    };
    let part = |seconds: i64, micros: i64| {
        Duration::from_secs(seconds.unsigned_abs()) + Duration::from_micros(micros.unsigned_abs())
    };
    let (user, system) = (usage.user_time(), usage.system_time());
    part(user.tv_sec(), user.tv_usec()) + part(system.tv_sec(), system.tv_usec())
}
