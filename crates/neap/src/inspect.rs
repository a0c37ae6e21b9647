//! The read-only commands: `explain`, `status`, `check` and `audit`.
//!
//! Each reads objects or files, derives a report from them, and prints it as text or as JSON. The
//! derivation is pure, and most of it is in `neap_kit::explain`.

mod audit;
mod check;
pub(crate) mod cluster;
mod explain;
pub(crate) mod listing;
mod manifests;
pub(crate) mod print;
pub(crate) mod read;
mod status;
pub(crate) mod table;

use std::{future::Future, io::Write};

use tokio::runtime::Builder;

use crate::{
    cli::{AuditCommand, InspectCommand},
    exit::{Exit, Failure},
    symbols::Symbols,
};

/// Runs the command and writes its report to `out`.
pub(crate) fn run(
    command: InspectCommand,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    match command {
        InspectCommand::Explain(options) => explain::run(&options, out),
        InspectCommand::Status(options) => block_on(status::run(&options, symbols, out)),
        InspectCommand::Check(options) => block_on(check::run(&options, symbols, out)),
        InspectCommand::Audit { command } => {
            let AuditCommand::Verify(options) = command;
            block_on(audit::verify(&options, symbols, out))
        }
        InspectCommand::Definitions(options) => {
            block_on(manifests::definitions(&options, symbols, out))
        }
        InspectCommand::Rights(options) => manifests::rights(&options, out),
    }
}

/// Runs `work` on a single-threaded runtime, which is enough for a few requests.
pub(crate) fn block_on(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        let why = error.to_string();
        Failure::new("NT-UP-0010", Exit::Failed, "cannot start the runtime", &why)
            .remedy("check the limits on threads and open files: ulimit -a")
    })?;
    runtime.block_on(work)
}
