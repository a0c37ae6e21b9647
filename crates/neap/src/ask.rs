//! The commands that ask and change nothing: `explain`, `status`, `check` and `audit`.
//!
//! Each reads what is there, makes a value of it, and prints that for people or for programs. The
//! decisions are pure, and most of them are kit's.

mod audit;
mod check;
pub(crate) mod cluster;
mod explain;
pub(crate) mod print;
pub(crate) mod read;
mod status;

use std::{future::Future, io::Write};

use tokio::runtime::Builder;

use crate::{
    cli::{Ask, AuditCommand},
    exit::{Exit, Failure},
    symbols::Symbols,
};

/// Answers the question.
pub(crate) fn run(question: Ask, symbols: Symbols, out: &mut dyn Write) -> Result<(), Failure> {
    match question {
        Ask::Explain(options) => explain::run(&options, out),
        Ask::Status(options) => block_on(status::run(&options, symbols, out)),
        Ask::Check(options) => block_on(check::run(&options, symbols, out)),
        Ask::Audit { command } => {
            let AuditCommand::Verify(options) = command;
            block_on(audit::verify(&options, symbols, out))
        }
    }
}

/// One thread is enough for a few questions.
pub(crate) fn block_on(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| {
        let why = error.to_string();
        Failure::new("NT-UP-0010", Exit::Failed, "cannot start", &why)
            .remedy("look at the limits on threads and open files: ulimit -a")
    })?;
    runtime.block_on(work)
}
