//! Programs that `cargo xtask test` found or fetched.
//!
//! A test that needs one and has none says so in the file that `NEAP_SKIPS` names, so that it is
//! counted as skipped.

use std::{ffi::OsStr, path::PathBuf, process::Output};

pub(crate) use neap_load::skip::skipped;
use tokio::process::Command;

use crate::scene::STUCK;

/// The program that `variable` names; `None`, and a word about it, if there is none.
pub(crate) fn program(test: &str, variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from);
    if found.is_none() {
        skipped(
            test,
            &format!("{variable} is not set; run cargo xtask test"),
        );
    }
    found
}

/// All programs that `variables` name, or none and one word about it.
pub(crate) fn programs<const N: usize>(test: &str, variables: [&str; N]) -> Option<[PathBuf; N]> {
    let lacking = variables
        .iter()
        .find(|name| std::env::var_os(name).is_none());
    if let Some(lacking) = lacking {
        return program(test, lacking).map(|_| unreachable!("it is not set"));
    }
    Some(variables.map(|name| std::env::var_os(name).unwrap().into()))
}

/// What a program says until it ends.
pub(crate) async fn output(
    program: &PathBuf,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true);
    let output = tokio::time::timeout(STUCK, command.output()).await;
    output.expect("no end").unwrap()
}

/// The same, of a program that must not fail.
pub(crate) async fn said(
    program: &PathBuf,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> String {
    let output = output(program, arguments).await;
    let (said, error) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{said}\n{error}");
    said.into_owned()
}
