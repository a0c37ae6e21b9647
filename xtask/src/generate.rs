//! Writes `crates/pocket/data` from `xtask/inputs`, and what is generated in `deploy`.
//!
//! The inputs hold what a Kubernetes server publishes of all its kinds; the outputs hold what the
//! served ones need, and `inputs/served.txt` is the only place that says which those are. The
//! outputs are a function of the inputs alone: no clock, no order of maps, no network.

mod access;
mod columns;
mod dashboard;
mod discovery;
mod fields;
mod idle;
mod protobuf;
mod served;
mod types;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use serde_json::Value;

use served::Served;

/// Writes every generated file, or with `check` fails if a committed one differs.
pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    settled([outputs()?, idle::definition()?].concat(), check)
}

/// Fails if a committed file differs from what the inputs say. Needs no build of another crate, so it
/// leaves out the definitions of custom resources, which tests of their crates compare.
pub(crate) fn check() -> anyhow::Result<()> {
    settled(outputs()?, true)
}

fn settled(outputs: Vec<(PathBuf, String)>, check: bool) -> anyhow::Result<()> {
    let stale: Vec<String> = outputs
        .into_iter()
        .filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text))
        .map(|(path, text)| settle(&path, &text, check))
        .collect::<anyhow::Result<_>>()?;
    if check && !stale.is_empty() {
        bail!(
            "{} differ from what `cargo xtask generate` writes",
            stale.join(", ")
        );
    }
    Ok(())
}

fn settle(path: &Path, text: &str, check: bool) -> anyhow::Result<String> {
    if !check {
        fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(path.display().to_string())
}

/// What follows from the inputs and from this crate alone, without a build of another.
fn outputs() -> anyhow::Result<Vec<(PathBuf, String)>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let inputs = root.join("inputs");
    let data = root.join("../crates/pocket/data");
    let served = Served::parse(&text(&inputs.join("served.txt"))?)?;
    let definitions = json(&inputs.join("types.json"))?;
    let resources = discovery::resources(&json(&inputs.join("discovery.json"))?, &served)?;
    let facts = json(&inputs.join("protobuf.json"))?;
    let columns = json(&inputs.join("columns.json"))?;
    let rbac = json(&inputs.join("rbac.json"))?;
    let kept = types::render(&definitions, &resources, &served)?;
    let mut outputs = idle::rights();
    outputs.extend(dashboard::outputs());
    outputs.extend([
        (
            data.join("fields.txt"),
            fields::render(&facts, &serde_json::from_str(&kept)?),
        ),
        (data.join("types.json"), kept),
        (data.join("discovery.json"), discovery::render(&resources)?),
        (
            data.join("protobuf.txt"),
            protobuf::render(&facts, &definitions, &resources)?,
        ),
        (
            data.join("columns.json"),
            columns::render(&columns, &served)?,
        ),
        (data.join("rbac.json"), access::render(&rbac)?),
    ]);
    Ok(outputs)
}

fn text(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))
}

fn json(path: &Path) -> anyhow::Result<Value> {
    serde_json::from_str(&text(path)?).with_context(|| format!("reading {}", path.display()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn committed_data_is_what_the_inputs_say() {
        super::settled(super::outputs().unwrap(), true).unwrap();
    }

    #[test]
    fn two_runs_write_the_same() {
        assert_eq!(super::outputs().unwrap(), super::outputs().unwrap());
    }
}
