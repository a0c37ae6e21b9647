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

/// A cluster, and how it is reached. Cheap to copy.
#[derive(Clone)]
pub(crate) struct Cluster {
    pub(crate) client: Client,
    pub(crate) address: String,
    /// The namespace of the context.
    pub(crate) namespace: String,
}

impl Cluster {
    /// The cluster that `options` name; if they name none, that of the kubeconfig `nearby`, if it is
    /// there, or else the one that kubectl would ask.
    pub(crate) async fn connect(
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
    pub(crate) fn failed(&self, what: &str, error: &kube::Error) -> Failure {
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

/// How the cluster is reached that `options` name; if they name none, that of the kubeconfig `nearby`,
/// if it is there, or else the one that kubectl would ask.
pub(crate) async fn config(
    options: &ClusterOptions,
    nearby: Option<&Path>,
) -> Result<Config, Failure> {
    let nearby = nearby.filter(|file| file.exists());
    let (file, from) = match options.kubeconfig.as_deref().or(nearby) {
        Some(file) => (Some(read(file)?), file.display().to_string()),
        None => usual()?,
    };
    let Some(file) = file else {
        return Config::incluster()
            .map_err(|_| unnamed("there is no kubeconfig, and this is no pod of a cluster"));
    };
    let chosen = KubeConfigOptions {
        context: options.context.clone(),
        ..KubeConfigOptions::default()
    };
    // These errors have their causes in their words.
    Config::from_custom_kubeconfig(file, &chosen)
        .await
        .map_err(|error| unusable(&from, &error))
}

/// What KUBECONFIG names, or the user's own file, and which that is.
fn usual() -> Result<(Option<Kubeconfig>, String), Failure> {
    let named = std::env::var("KUBECONFIG").unwrap_or_default();
    // kube merges the files of a list; a single one that is not there is told of by its name.
    if !named.is_empty() && !named.contains(':') {
        let file = Path::new(&named);
        if !file.exists() {
            let why = format!("KUBECONFIG names {named}, and there is no such file");
            return Err(unnamed(&why));
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

fn read(file: &Path) -> Result<Kubeconfig, Failure> {
    let shown = file.display();
    if !file.exists() {
        let what = format!("there is no kubeconfig {shown}");
        let failure = Failure::new("NT-CLI-0002", Exit::NotFound, &what, "no such file");
        return Err(failure.remedy("name the file that `neap up` printed, or start `neap up`"));
    }
    Kubeconfig::read_from(file).map_err(|error| unusable(&shown.to_string(), &error))
}

fn unusable(file: &str, error: &KubeconfigError) -> Failure {
    let what = format!("the kubeconfig {file} cannot be used");
    let why = error.to_string();
    // What follows shows lines of the file, and there are keys in it.
    let why = why.lines().next().unwrap_or_default();
    Failure::new("NT-CLI-0002", Exit::Refused, &what, why)
        .remedy("name another file or context: --kubeconfig, --context")
}

fn unnamed(why: &str) -> Failure {
    Failure::new("NT-CLI-0002", Exit::Refused, "no cluster is named", why)
        .remedy("start one with `neap up` and set KUBECONFIG to the file that it names, or use --kubeconfig")
}
