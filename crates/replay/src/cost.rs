//! What a run costs.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};

/// How much of a core this process has used since it began.
pub fn cost() -> Duration {
    used(UsageWho::RUSAGE_SELF)
}

/// How much of a core those have used that this process began and that have ended, and theirs.
pub fn cost_of_others() -> Duration {
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
