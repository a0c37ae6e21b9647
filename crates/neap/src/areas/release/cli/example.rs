//! `neap release example`: the example of a stream, with the address of the registry that this server has.

use std::io::Write;

use clap::Args;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use neap_kit::why::chain;

use super::super::registry::hosting;
use crate::{
    cli::ClusterOptions,
    exit::{Exit, Failure},
    inspect::{cluster::Cluster, print},
};

/// The same file that users find beside the program's source.
const EXAMPLE: &str = include_str!("../../../../../../examples/release/release.yaml");
/// The registry of a `neap up` in memory, which the file names.
const REGISTRY: &str = "127.1.0.5:5000";

#[derive(Debug, Args)]
pub(super) struct ExampleOptions {
    /// Registry with the sample images; by default the one that the server names
    #[arg(long, value_name = "HOST")]
    registry: Option<String>,

    #[command(flatten)]
    cluster: ClusterOptions,
}

/// Prints the example.
pub(super) async fn run(options: &ExampleOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let registry = match &options.registry {
        Some(registry) => registry.clone(),
        None => published(&options.cluster).await?,
    };
    print::raw(out, &with_registry(&registry))
}

fn with_registry(registry: &str) -> String {
    EXAMPLE.replace(REGISTRY, registry)
}

/// The registry that the server names.
async fn published(options: &ClusterOptions) -> Result<String, Failure> {
    let cluster = Cluster::connect(options, None).await?;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), hosting::NAMESPACE);
    let why = match maps.get_opt(hosting::NAME).await {
        Ok(Some(map)) => match hosting::host_in(&map) {
            Some(host) => return Ok(host),
            None => "the ConfigMap names no host".to_owned(),
        },
        Ok(None) => format!("{} names no registry", cluster.address),
        Err(error) => chain(&error),
    };
    let what = format!("{}/{} cannot be used", hosting::NAMESPACE, hosting::NAME);
    Err(Failure::new("NT-RELEASE-0112", Exit::NotFound, &what, &why)
        .remedy("name a registry with the sample images: --registry HOST, or use neap up"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_image_of_the_example_is_in_the_named_registry() {
        let images = EXAMPLE.matches(&format!("\"{REGISTRY}/sample/")).count();
        assert!(images > 1, "{images}");
        let text = with_registry("reg.example:5000");
        assert_eq!(text.matches("\"reg.example:5000/sample/").count(), images);
        assert!(!text.contains(REGISTRY));
    }
}
