//! The command that measures services that sleep.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use neap_load::idle::{self, Peers};
use serde_json::{Map, Value, json};

#[derive(Debug, Args)]
pub(crate) struct Idle {
    /// What to measure
    #[arg(value_enum)]
    what: What,
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
enum What {
    /// What it costs to be in the path of a service that is awake
    Warm,
    /// How soon those who are held are let go
    Held,
    /// How soon a service is woken, also beside one that is stuck
    Woken,
    /// What a resolver holds in memory
    Memory,
    /// What an operator holds and writes while nothing happens
    Watched,
}

impl Idle {
    /// The figures by whose they are.
    pub(crate) async fn measured(&self, neap: &Path) -> Result<Value> {
        let all = match self.what {
            What::Warm => idle::warm(neap, &self.peers()).await?,
            What::Held => idle::held(neap).await?,
            What::Woken => idle::woken(neap).await?,
            What::Memory => idle::memory(neap).await?,
            What::Watched => idle::watched(neap).await?,
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
