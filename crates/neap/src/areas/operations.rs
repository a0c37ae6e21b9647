//! `operations`: long-running work, step by step. Its definition is that of Operation objects, which belong to no
//! other area.

mod cli;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use neap_kit::{area::Area, operation::Operation};

use super::{AreaModule, Host, NoUpOptions};
use crate::exit::Failure;

#[derive(Debug)]
pub(crate) struct Operations;

impl AreaModule for Operations {
    const AREA: Area = Area {
        definitions,
        ..Area::new("operations", "operations")
    };
    type Command = cli::Command;
    type UpOptions = NoUpOptions;

    fn host(host: &mut Host<'_>, _: &Self::UpOptions) -> Result<(), Failure> {
        host.install_definitions();
        Ok(())
    }
}

fn definitions() -> Vec<CustomResourceDefinition> {
    vec![Operation::crd()]
}
