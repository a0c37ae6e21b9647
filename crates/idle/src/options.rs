//! What the options of operator and resolver have in common: how variables are read, and how both know
//! the names of the installation.
//!
//! Names and defaults are those of KubeElasti 0.1.30, and a few of our own. An invalid value ends the
//! start with the name of the option and what it should be; an empty one counts as absent, since charts
//! write empty values for options that a user did not set.

mod environment;

use neap_kit::why::{Code, Coded};

pub use self::environment::Environment;
pub(crate) use self::environment::{invalid, parse_bool};

/// The variable with the namespaces to watch, comma-separated; all if it is empty.
pub(crate) const WATCH_NAMESPACES: &str = "WATCH_NAMESPACES";
/// The variable with the address to listen on; all addresses of the machine if it is empty.
pub(crate) const LISTEN_ADDRESS: &str = "ELASTI_LISTEN_ADDRESS";
/// The variable with the path of the token file, for processes outside of a pod.
pub(crate) const TOKEN_FILE: &str = "ELASTI_TOKEN_FILE";

/// Why a process cannot start with its options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A required variable is absent.
    #[error("{name} is not set; set it to {wants}")]
    Unset {
        /// The variable.
        name: &'static str,
        /// A description of a valid value.
        wants: &'static str,
    },
    /// A variable or flag has an invalid value.
    #[error("{name} is {value}; set it to {wants}")]
    Invalid {
        /// The variable or flag.
        name: String,
        /// Its value, unless that is a secret.
        value: String,
        /// A description of a valid value.
        wants: &'static str,
    },
    /// There is no such flag.
    #[error("there is no flag {name}{}", similar.as_ref().map(|similar| format!("; did you mean {similar}?")).unwrap_or_default())]
    UnknownFlag {
        /// The flag.
        name: String,
        /// A flag with a similar name.
        similar: Option<&'static str>,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Unset { .. } => Code("NT-IDLE-0001"),
            Self::Invalid { .. } => Code("NT-IDLE-0002"),
            Self::UnknownFlag { .. } => Code("NT-IDLE-0003"),
        }
    }
}

/// The names and ports of operator and resolvers in a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    /// The namespace of the resolvers.
    pub resolver_namespace: String,
    /// The Deployment of the resolvers.
    pub resolver_deployment: String,
    /// The Service of the resolvers, whose EndpointSlices show which of them are ready.
    pub resolver_service: String,
    /// The ServiceAccount of the resolvers, which may request wakes.
    pub resolver_account: String,
    /// The internal port of the resolvers.
    pub resolver_port: u16,
    /// The port of the resolvers that all services share; a header names the service.
    pub resolver_proxy_port: u16,
    /// The namespace of the operator.
    pub operator_namespace: String,
    /// The Deployment of the operator.
    pub operator_deployment: String,
    /// The Service of the operator.
    pub operator_service: String,
    /// The ServiceAccount of the operator, which may call resolvers.
    pub operator_account: String,
    /// The port on which the operator receives requests for wakes.
    pub operator_port: u16,
}

impl Installation {
    /// The names that the manifests and the chart in deploy/idle use.
    pub fn standard() -> Self {
        Self {
            resolver_namespace: "elasti".to_owned(),
            resolver_deployment: "elasti-resolver".to_owned(),
            resolver_service: "elasti-resolver-service".to_owned(),
            resolver_account: DEFAULT_RESOLVER_ACCOUNT.to_owned(),
            resolver_port: 8013,
            resolver_proxy_port: 8012,
            operator_namespace: "elasti".to_owned(),
            operator_deployment: "elasti-operator-controller-manager".to_owned(),
            operator_service: "elasti-operator-controller-service".to_owned(),
            operator_account: DEFAULT_OPERATOR_ACCOUNT.to_owned(),
            operator_port: 8013,
        }
    }

    pub(crate) fn read(environment: &Environment<'_>) -> Result<Self, Error> {
        let name = |name| environment.required(name, "a name");
        let port = |name| environment.required_port(name);
        let account = |name, default: &str| {
            let account = environment.text(name);
            account.unwrap_or_else(|| default.to_owned())
        };
        Ok(Self {
            resolver_namespace: name("ELASTI_RESOLVER_NAMESPACE")?,
            resolver_deployment: name("ELASTI_RESOLVER_DEPLOYMENT_NAME")?,
            resolver_service: name("ELASTI_RESOLVER_SERVICE_NAME")?,
            resolver_account: account("ELASTI_RESOLVER_SERVICE_ACCOUNT", DEFAULT_RESOLVER_ACCOUNT),
            resolver_port: port("ELASTI_RESOLVER_PORT")?,
            resolver_proxy_port: port("ELASTI_RESOLVER_PROXY_PORT")?,
            operator_namespace: name("ELASTI_OPERATOR_NAMESPACE")?,
            operator_deployment: name("ELASTI_OPERATOR_DEPLOYMENT_NAME")?,
            operator_service: name("ELASTI_OPERATOR_SERVICE_NAME")?,
            operator_account: account("ELASTI_OPERATOR_SERVICE_ACCOUNT", DEFAULT_OPERATOR_ACCOUNT),
            operator_port: port("ELASTI_OPERATOR_PORT")?,
        })
    }
}

const DEFAULT_RESOLVER_ACCOUNT: &str = "elasti-resolver";
const DEFAULT_OPERATOR_ACCOUNT: &str = "elasti-operator-controller-manager";

/// The Sentry project that receives errors, besides the log.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Sentry {
    /// The DSN, which is a secret.
    pub dsn: Option<String>,
    /// The name of the environment there.
    pub environment: Option<String>,
}

impl Sentry {
    pub(crate) fn read(environment: &Environment<'_>) -> Self {
        Self {
            dsn: environment.text("SENTRY_DSN"),
            environment: environment.text("SENTRY_ENVIRONMENT"),
        }
    }
}

impl std::fmt::Debug for Sentry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sentry")
            .field("dsn", &self.dsn.is_some())
            .field("environment", &self.environment)
            .finish()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    /// The variables that both roles require.
    pub(crate) const REQUIRED: [(&str, &str); 10] = [
        ("ELASTI_RESOLVER_NAMESPACE", "elasti"),
        ("ELASTI_RESOLVER_DEPLOYMENT_NAME", "elasti-resolver"),
        ("ELASTI_RESOLVER_SERVICE_NAME", "elasti-resolver-service"),
        ("ELASTI_RESOLVER_PORT", "8013"),
        ("ELASTI_RESOLVER_PROXY_PORT", "8012"),
        ("ELASTI_OPERATOR_NAMESPACE", "elasti"),
        (
            "ELASTI_OPERATOR_DEPLOYMENT_NAME",
            "elasti-operator-controller-manager",
        ),
        (
            "ELASTI_OPERATOR_SERVICE_NAME",
            "elasti-operator-controller-service",
        ),
        ("ELASTI_OPERATOR_PORT", "8013"),
        ("KUBERNETES_CLUSTER_DOMAIN", "cluster.local"),
    ];

    #[test]
    fn the_standard_installation_is_that_of_the_manifests() {
        use super::{Environment, Installation};
        let variable = |name: &str| {
            let found = REQUIRED.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let read = Installation::read(&Environment(&variable));
        assert_eq!(read, Ok(Installation::standard()));
    }
}
