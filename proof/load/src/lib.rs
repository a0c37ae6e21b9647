//! Load, crashes and measurements against a `neap up`, from outside, over TLS.
//!
//! The crate uses the server only through its command line and its API, so that a user could find
//! whatever it finds. It is shared by the crash run, the bounds test, the tests of hostile clients
//! and the benches. Only the programs whose subject is `kit` itself ([`leaders`], [`follower`])
//! depend on it.

pub mod bulk;
pub mod client;
pub mod crash;
pub mod farm;
pub mod fleet;
pub mod follower;
pub mod idle;
pub mod informers;
mod kubeconfig;
pub mod leaders;
mod logged_process;
pub mod measure;
pub mod objects;
pub mod orphans;
mod process;
pub mod reference;
pub mod release;
pub mod rng;
pub mod server;
pub mod skip;
pub mod stopwatch;
pub mod subject;
pub mod watcher;
