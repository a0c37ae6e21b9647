//! The cluster that commands read, and how it is configured.

use std::{path::Path, time::Duration};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};
use neap_kit::suggest::nearest;

use crate::{
    cli::ClusterOptions,
    exit::{Exit, Failure, chain},
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to a cluster. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// URL of the server.
    pub(crate) address: String,
    /// The namespace of the context.
    pub(crate) namespace: String,
}

impl Cluster {
    /// Connects to the cluster that `options` names, otherwise to that of the kubeconfig `fallback`, if
    /// the file exists, otherwise to the cluster that kubectl would use.
    pub(crate) async fn connect(
        options: &ClusterOptions,
        fallback: Option<&Path>,
    ) -> Result<Self, Failure> {
        let mut config = config(options, fallback).await?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(READ_TIMEOUT);
        let address = config.cluster_url.to_string();
        let address = address.trim_end_matches('/').to_owned();
        let namespace = config.default_namespace.clone();
        let client = Client::try_from(config).map_err(|error| no_cluster(&error.to_string()))?;
        Ok(Self {
            client,
            address,
            namespace,
        })
    }

    /// The failure to report for a request for `what`.
    pub(crate) fn failed(&self, what: &str, error: &kube::Error) -> Failure {
        let what = format!("cannot read {what} from {}", self.address);
        let (code, exit, why, remedy) = match error {
            kube::Error::Api(status) => match status.code {
                401 => (
                    "NT-CLI-0004",
                    Exit::NotAllowed,
                    status.message.clone(),
                    "use the kubeconfig of the server that runs now",
                ),
                403 => (
                    "NT-CLI-0005",
                    Exit::NotAllowed,
                    status.message.clone(),
                    "request a role that may read it, such as view",
                ),
                _ => (
                    "NT-CLI-0006",
                    Exit::Failed,
                    status.message.clone(),
                    "see the log of the server",
                ),
            },
            kube::Error::Service(cause) => (
                "NT-CLI-0003",
                Exit::Unreachable,
                chain(&**cause),
                "start the server, or pass its kubeconfig with --kubeconfig",
            ),
            kube::Error::HyperError(cause) => (
                "NT-CLI-0003",
                Exit::Unreachable,
                chain(cause),
                "check that the server runs",
            ),
            other => (
                "NT-CLI-0006",
                Exit::Failed,
                other.to_string(),
                "check that this is the address of a Kubernetes API server",
            ),
        };
        Failure::new(code, exit, &what, &why).remedy(remedy)
    }
}

/// The client configuration for the cluster that `options` names, otherwise for that of the kubeconfig
/// `fallback`, if the file exists, otherwise for the cluster that kubectl would use.
pub(crate) async fn config(
    options: &ClusterOptions,
    fallback: Option<&Path>,
) -> Result<Config, Failure> {
    let fallback = fallback.filter(|file| file.exists());
    let (file, from) = match options.kubeconfig.as_deref().or(fallback) {
        Some(file) => (Some(read(file)?), file.display().to_string()),
        None => default_kubeconfig()?,
    };
    let Some(file) = file else {
        return Config::incluster().map_err(|_| {
            no_cluster("no kubeconfig was found, and this process does not run in a pod")
        });
    };
    if let Some(named) = &options.context {
        has_context(&file, named, &from)?;
    }
    let chosen = KubeConfigOptions {
        context: options.context.clone(),
        ..KubeConfigOptions::default()
    };
    // The messages of these errors include their causes.
    Config::from_custom_kubeconfig(file, &chosen)
        .await
        .map_err(|error| unusable(&from, &error))
}

/// Reads the kubeconfig of `KUBECONFIG` or else of the home folder; also returns its path.
fn default_kubeconfig() -> Result<(Option<Kubeconfig>, String), Failure> {
    let named = std::env::var("KUBECONFIG").unwrap_or_default();
    // kube merges the files of a list. A single file is read here, to name it if it is missing.
    if !named.is_empty() && !named.contains(':') {
        let file = Path::new(&named);
        if !file.exists() {
            let why = format!("KUBECONFIG is {named}, which does not exist");
            return Err(no_cluster(&why));
        }
        return Ok((Some(read(file)?), named));
    }
    let merged = Kubeconfig::from_env().map_err(|error| unusable(&named, &error))?;
    if merged.is_some() {
        return Ok((merged, named));
    }
    let users = std::env::home_dir().map(|home| home.join(".kube/config"));
    match users.filter(|file| file.exists()) {
        Some(file) => Ok((Some(read(&file)?), file.display().to_string())),
        None => Ok((None, String::new())),
    }
}

/// Fails if the kubeconfig has no context of that name, and says which it has.
fn has_context(file: &Kubeconfig, named: &str, from: &str) -> Result<(), Failure> {
    let names: Vec<_> = file.contexts.iter().map(|it| it.name.as_str()).collect();
    if names.contains(&named) {
        return Ok(());
    }
    let what = format!("the kubeconfig {from} has no context {named}");
    let why = match (nearest(named, names.iter().copied()), &names[..]) {
        (Some(near), _) => format!("did you mean {near}?"),
        (None, []) => "it has no context at all".to_owned(),
        (None, names) => format!("its contexts are {}", names.join(", ")),
    };
    let remedy = "list them with kubectl config get-contexts, and name one with --context";
    Err(Failure::new("NT-CLI-0002", Exit::Refused, &what, &why).remedy(remedy))
}

fn read(file: &Path) -> Result<Kubeconfig, Failure> {
    let shown = file.display();
    if !file.exists() {
        let what = format!("the kubeconfig {shown} does not exist");
        let failure = Failure::new("NT-CLI-0002", Exit::NotFound, &what, "no such file");
        return Err(failure.remedy("pass the path that `neap up` printed, or start `neap up`"));
    }
    Kubeconfig::read_from(file).map_err(|error| unusable(&shown.to_string(), &error))
}

fn unusable(file: &str, error: &KubeconfigError) -> Failure {
    let what = format!("the kubeconfig {file} cannot be used");
    let why = error.to_string();
    // The remaining lines quote the file, which contains keys.
    let why = why.lines().next().unwrap_or_default();
    Failure::new("NT-CLI-0002", Exit::Refused, &what, why)
        .remedy("choose another file or context: --kubeconfig, --context")
}

fn no_cluster(why: &str) -> Failure {
    Failure::new("NT-CLI-0002", Exit::Refused, "no cluster is configured", why)
        .remedy("start one with `neap up` and set KUBECONFIG to the path that it prints, or use --kubeconfig")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_context_is_answered_with_the_one_that_was_meant() {
        let contexts = ["neap-shop", "production"].map(|name| format!("- name: {name}\n"));
        let text = format!("contexts:\n{}", contexts.concat());
        let file = Kubeconfig::from_yaml(&text).unwrap();
        assert!(has_context(&file, "production", "f").is_ok());
        let why = |named: &str| has_context(&file, named, "f").unwrap_err().why().to_owned();
        assert_eq!(why("neap-shpo"), "did you mean neap-shop?");
        assert_eq!(why("elsewhere"), "its contexts are neap-shop, production");
        let none = has_context(&Kubeconfig::default(), "a", "f").unwrap_err();
        assert_eq!(none.why(), "it has no context at all");
    }
}
