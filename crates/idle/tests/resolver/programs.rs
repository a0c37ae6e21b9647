//! Programs that `cargo xtask test` found or fetched.
//!
//! A test without its program records that in the file of `NEAP_SKIPS`, so that it counts as skipped.

use std::{ffi::OsStr, path::PathBuf, process::Output};

pub(crate) use neap_load::skip::skipped;
use tokio::process::Command;

use crate::fixture::TEST_TIMEOUT;

/// The program that `variable` names. Without one, `None`, and the test counts as skipped.
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

/// The programs that `variables` name. If one is missing, `None`, and the test counts as skipped.
pub(crate) fn programs<const N: usize>(test: &str, variables: [&str; N]) -> Option<[PathBuf; N]> {
    let lacking = variables
        .iter()
        .find(|name| std::env::var_os(name).is_none());
    if let Some(lacking) = lacking {
        return program(test, lacking).map(|_| unreachable!("it is not set"));
    }
    Some(variables.map(|name| std::env::var_os(name).unwrap().into()))
}

/// Runs a program to its end.
pub(crate) async fn output(
    program: &PathBuf,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true);
    let output = tokio::time::timeout(TEST_TIMEOUT, command.output()).await;
    output.expect("no end").unwrap()
}

/// The output of a program that must not fail.
pub(crate) async fn stdout_of(
    program: &PathBuf,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> String {
    let output = output(program, arguments).await;
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{stdout}\n{stderr}");
    stdout.into_owned()
}
