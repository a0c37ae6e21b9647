//! Writes the definition of ElastiService, for `cargo xtask generate` to put where installs find it.

use std::io::{Write, stdout};

use kube::CustomResourceExt;
use neap_idle::api::ElastiService;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // As a value first: its keys are in order, whatever the types say.
    let definition = serde_json::to_value(ElastiService::crd())?;
    stdout().write_all(serde_saphyr::to_string(&definition)?.as_bytes())?;
    Ok(())
}
