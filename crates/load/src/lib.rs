//! A client that works a `neap up` hard, from outside, over TLS.
//!
//! It knows the server by its command line and its API alone, so whatever it finds a user could
//! find. Shared by the crash run, the bounds test, the tests of hostile clients and the benches.
//! Only the programs whose subject is `kit` itself ([`leaders`], [`follower`]) know it from inside.

pub mod client;
pub mod crash;
pub mod dice;
pub mod follower;
pub mod idle;
pub mod informers;
mod kubeconfig;
pub mod leaders;
pub mod measure;
pub mod objects;
pub mod orphans;
mod process;
pub mod reference;
pub mod rush;
pub mod server;
pub mod skip;
pub mod stopwatch;
pub mod subject;
pub mod watcher;
