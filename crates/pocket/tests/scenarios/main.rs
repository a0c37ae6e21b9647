//! Scenario files: Markdown whose blocks are requests and the expected responses.
//!
//! Every file is one test, named by its path. By default each runs against a `pocket` of its own in
//! this process, under a paused clock; with `NEAP_SCENARIO_KUBECONFIG` the same files run against
//! the server that file names. The format is described in `README.md` beside this file.

mod runner;

use std::{
    env,
    path::{Path, PathBuf},
    process::ExitCode,
};

use libtest_mimic::{Arguments, Trial};

use runner::{scenario::Scenario, server::TargetServer};

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let place =
        TargetServer::from_environment(env::var_os("NEAP_SCENARIO_KUBECONFIG").map(PathBuf::from));
    let trials = files(&root)
        .into_iter()
        .map(|file| trial(&root, &file, place.clone()))
        .chain(runner::own::trials())
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(root: &Path, file: &Path, place: TargetServer) -> Trial {
    let name = file.strip_prefix(root).unwrap_or(file).with_extension("");
    let shown = name.display().to_string();
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let only_pocket = text.contains(runner::scenario::POCKET_ONLY);
    let ignored = only_pocket && matches!(place, TargetServer::Kubeconfig { .. });
    let test_name = shown.clone();
    Trial::test(shown, move || {
        let scenario = Scenario::parse(&test_name, &text)?;
        Ok(runner::run(&scenario, &place)?)
    })
    .with_ignored_flag(ignored)
}

/// The scenario files of every folder, in order.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = entries(root)
        .into_iter()
        .filter(|path| path.is_dir())
        .flat_map(|room| entries(&room))
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    found.sort();
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).into_iter().flatten();
    read.filter_map(|entry| Some(entry.ok()?.path())).collect()
}
