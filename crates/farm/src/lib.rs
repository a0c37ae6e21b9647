//! A Buildbarn remote-execution farm from five custom resources.
//!
//! The resources of a namespace with the same label `buildbarn.io/farm` are a farm. The operator renders the
//! configurations of its programs, checks them, creates the workloads, and changes them in an order and at
//! a pace that loses no action and no blob without the user's consent.
//!
//! Invariants:
//! - a configuration that its program would not accept is not rolled out;
//! - a worker is stopped only when it is drained and idle, or when the bound of its drain has passed;
//! - the shards that clients use change in stages, and a change that loses data only with an acknowledgement;
//! - nothing is written when nothing changes.
//!
//! The modules are listed in the order of their dependencies, not of the alphabet: a module uses only those
//! above it, and `cargo xtask check` fails otherwise. The comment before each keeps rustfmt from sorting them.

// The custom resources, names, labels and ports: the contract with the outside. No I/O.
pub mod api;

// Which shard keeps a blob; pure.
pub mod sharding;

// Which actions a pool of workers runs; pure.
pub mod platform;

// The schemas of the configurations, and whether a configuration has them; pure.
pub mod schema;

// The rules that programs check when they start; pure.
pub mod startup;

// The configurations, rendered from the custom resources; pure.
pub mod configuration;

// The state of the build queue, over gRPC.
pub mod queue;

// Jsonnet of users, evaluated within bounds.
pub mod jsonnet;

// The controller of farms: facts, decide, act.
pub mod farm;

// The flags of Bazel for a farm; pure.
pub mod bazelrc;

// What the area registers with the program.
pub mod area;

// The operator as a process, and its components.
pub mod operator;
