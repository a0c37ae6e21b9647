//! Annotations that users write on ElastiServices and Namespaces. Those of Services and workloads are
//! in `opt_in::annotations`.

/// On an ElastiService, or on a Namespace for every service in it: the time at which a user requested a
/// wake.
pub const WAKE: &str = "idle.neaptide.dev/wake";
/// On an ElastiService: the time at which a user requested that it sleep.
pub const SLEEP: &str = "idle.neaptide.dev/sleep";
/// On an ElastiService: the time before which it must not sleep.
pub const KEEP_AWAKE_UNTIL: &str = "idle.neaptide.dev/keep-awake-until";
/// On a Namespace: no service in it sleeps.
pub const OFF: &str = "idle.neaptide.dev/off";
/// On a Namespace: every service in it is only observed.
pub const OBSERVE_ONLY: &str = "idle.neaptide.dev/observe-only";
