//! The command that measures services that sleep.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use neap_load::idle::{self, Peers};
use serde_json::{Map, Value, json};

#[derive(Debug, Args)]
pub(crate) struct IdleCommand {
    /// The figure to measure
    #[arg(value_enum)]
    what: IdleFigure,
    /// nginx, to compare with
    #[arg(long, value_name = "FILE")]
    nginx: Option<PathBuf>,
    /// HAProxy, to compare with
    #[arg(long, value_name = "FILE")]
    haproxy: Option<PathBuf>,
    /// The interceptor of KEDA's HTTP add-on, to compare with
    #[arg(long, value_name = "FILE")]
    interceptor: Option<PathBuf>,
    /// The activator of Knative Serving, to compare with
    #[arg(long, value_name = "FILE")]
    activator: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IdleFigure {
    /// The cost of being in the path of an awake service
    Warm,
    /// How soon held requests are released
    Held,
    /// How soon a service is woken, also next to one that is stuck
    Woken,
    /// The memory of a resolver
    Memory,
    /// The memory and the writes of an operator while nothing happens
    Watched,
}

impl IdleCommand {
    /// The figures, by the program they belong to.
    pub(crate) async fn measured(&self, neap: &Path) -> Result<Value> {
        let all = match self.what {
            IdleFigure::Warm => idle::warm(neap, &self.peers()).await?,
            IdleFigure::Held => idle::held(neap).await?,
            IdleFigure::Woken => idle::woken(neap).await?,
            IdleFigure::Memory => idle::memory(neap).await?,
            IdleFigure::Watched => idle::watched(neap).await?,
        };
        let all: Map<String, Value> = all
            .into_iter()
            .map(|(whose, figures)| {
                let figures = figures.into_iter();
                let figures: Map<String, Value> = figures
                    .map(|(name, value)| (name.to_owned(), json!(value)))
                    .collect();
                (whose.to_owned(), Value::Object(figures))
            })
            .collect();
        Ok(Value::Object(all))
    }

    fn peers(&self) -> Peers {
        Peers {
            nginx: self.nginx.clone(),
            haproxy: self.haproxy.clone(),
            interceptor: self.interceptor.clone(),
            activator: self.activator.clone(),
        }
    }
}
