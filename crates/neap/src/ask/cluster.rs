//! The cluster that is asked.

use std::{path::Path, time::Duration};

use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig, KubeconfigError},
};

use crate::{
    cli::ClusterOptions,
    exit::{Exit, Failure, chain},
};

/// A server that does not answer within this time is not there.
const CONNECT: Duration = Duration::from_secs(5);
const ANSWER: Duration = Duration::from_secs(30);

/// A cluster, and how it is reached.
pub(super) struct Cluster {
    pub(super) client: Client,
    pub(super) address: String,
    /// The namespace of the context.
    pub(super) namespace: String,
}

impl Cluster {
    /// The cluster that `options` name; if they name none, that of the kubeconfig `nearby`, if it is
    /// there, or else the one that kubectl would ask.
    pub(super) async fn connect(
        options: &ClusterOptions,
        nearby: Option<&Path>,
    ) -> Result<Self, Failure> {
        let mut config = config(options, nearby).await?;
        config.connect_timeout = Some(CONNECT);
        config.read_timeout = Some(ANSWER);
        let address = config.cluster_url.to_string();
        let address = address.trim_end_matches('/').to_owned();
        let namespace = config.default_namespace.clone();
        let client = Client::try_from(config).map_err(|error| unnamed(&error.to_string()))?;
        Ok(Self {
            client,
            address,
            namespace,
        })
    }

    /// What to tell of a request for `what` that came to nothing.
    pub(super) fn failed(&self, what: &str, error: &kube::Error) -> Failure {
        let what = format!("cannot read {what} from {}", self.address);
        let (code, exit, why, remedy) = match error {
            kube::Error::Api(status) => match status.code {
                401 => (
                    "NT-CLI-0004",
                    Exit::NotAllowed,
                    status.message.clone(),
                    "take the kubeconfig that belongs to the server that runs now",
                ),
                403 => (
                    "NT-CLI-0005",
                    Exit::NotAllowed,
                    status.message.clone(),
                    "ask for a role that may read it, such as view",
                ),
                _ => (
                    "NT-CLI-0006",
                    Exit::Failed,
                    status.message.clone(),
                    "see what the server's log says",
                ),
            },
            kube::Error::Service(cause) => (
                "NT-CLI-0003",
                Exit::Unreachable,
                chain(&**cause),
                "start the server, or name its kubeconfig with --kubeconfig",
            ),
            kube::Error::HyperError(cause) => (
                "NT-CLI-0003",
                Exit::Unreachable,
                chain(cause),
                "see whether the server runs",
            ),
            other => (
                "NT-CLI-0006",
                Exit::Failed,
                other.to_string(),
                "see whether this is the address of a Kubernetes API",
            ),
        };
        Failure::new(code, exit, &what, &why).remedy(remedy)
    }
}

async fn config(options: &ClusterOptions, nearby: Option<&Path>) -> Result<Config, Failure> {
    // These errors have their causes in their words.
    let unreadable = |error: KubeconfigError| unnamed(&error.to_string());
    let nearby = nearby.filter(|file| file.exists());
    let file = match (&options.kubeconfig, nearby) {
        (Some(file), _) => Some(Kubeconfig::read_from(file).map_err(unreadable)?),
        (None, Some(file)) => Some(Kubeconfig::read_from(file).map_err(unreadable)?),
        (None, None) => usual().map_err(unreadable)?,
    };
    let Some(file) = file else {
        return Config::incluster()
            .map_err(|_| unnamed("there is no kubeconfig, and this is no pod of a cluster"));
    };
    let chosen = KubeConfigOptions {
        context: options.context.clone(),
        ..KubeConfigOptions::default()
    };
    Config::from_custom_kubeconfig(file, &chosen)
        .await
        .map_err(unreadable)
}

/// What KUBECONFIG names, or the user's own file.
fn usual() -> Result<Option<Kubeconfig>, KubeconfigError> {
    if let Some(named) = Kubeconfig::from_env()? {
        return Ok(Some(named));
    }
    let users = std::env::home_dir().map(|home| home.join(".kube/config"));
    let users = users.filter(|file| file.exists());
    users.map(Kubeconfig::read_from).transpose()
}

fn unnamed(why: &str) -> Failure {
    Failure::new("NT-CLI-0002", Exit::Refused, "no cluster is named", why)
        .remedy("start one with `neap up` and set KUBECONFIG to the file that it names, or use --kubeconfig")
}
