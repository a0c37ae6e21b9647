//! Tests that load or kill a server for long: one executable, and one test at a time, because their
//! bounds on memory, disk space and time assume that nothing else runs.

use tokio::sync::Mutex;

mod bounds;
mod crash;
mod orphans;

/// Held by the test that runs.
static EXCLUSIVE: Mutex<()> = Mutex::const_new(());
