//! The command that measures the operator of farms.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use clap::Args;
use neap_load::{client::Client, farm, measure::Figure};

#[derive(Debug, Args)]
pub(crate) struct FarmCommand {
    /// The number of farms, each of which has five resources
    #[arg(long, value_name = "N", default_value_t = 200)]
    farms: usize,
    /// The kubeconfig of the operator on a real control plane; to be run by `beside`
    #[arg(long, value_name = "FILE")]
    operator_kubeconfig: Option<PathBuf>,
}

impl FarmCommand {
    pub(crate) async fn measured(&self, neap: &Path) -> Result<Vec<Figure>> {
        let Some(kubeconfig) = &self.operator_kubeconfig else {
            return farm::operator(neap, self.farms).await;
        };
        let told = |name: &str| env::var(name).with_context(|| format!("{name} is not set"));
        let authority = fs::read(told("NEAP_REFERENCE_CA")?)?;
        let address = told("NEAP_REFERENCE_ADDRESS")?;
        let client = Client::to(&address, &authority, &told("NEAP_REFERENCE_TOKEN")?)?;
        farm::operator_on(neap, self.farms, client, kubeconfig).await
    }
}
