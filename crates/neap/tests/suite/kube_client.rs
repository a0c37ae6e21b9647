//! A kube client for a server that a test started.

use std::path::Path;

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// The client configuration of a kubeconfig.
pub(crate) async fn config(kubeconfig: &Path) -> Config {
    // Fails if another test has installed the provider already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    Config::from_custom_kubeconfig(file, &options)
        .await
        .unwrap()
}

/// A client for the server of a kubeconfig.
pub(crate) async fn connect(kubeconfig: &Path) -> Client {
    Client::try_from(config(kubeconfig).await).unwrap()
}
