//! What operator and resolver are told when they start: variables and flags, with the names and
//! defaults of KubeElasti 0.1.30 and a few of our own. A value that cannot be meant ends the start
//! with its name and what it should be; an empty one counts as absent, as charts write them.

mod environment;
mod flags;
mod resolver;

use std::{collections::BTreeSet, net::IpAddr, ops::RangeInclusive, path::PathBuf, time::Duration};

use http::HeaderValue;
use neap_kit::why::{Code, Coded};

pub use self::{
    environment::Environment,
    flags::{Flags, Listen},
    resolver::ResolverSettings,
};
use crate::trigger::{Defaults, origin::NotAnOrigin};

/// Why a process cannot start so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A variable that is needed is absent.
    #[error("{name} is not set; set it to {wants}")]
    Unset {
        /// Which one.
        name: &'static str,
        /// What it should be.
        wants: &'static str,
    },
    /// A variable or flag is not what it should be.
    #[error("{name} is {value}; set it to {wants}")]
    Bad {
        /// Which one.
        name: String,
        /// What it is, unless that is a secret.
        value: String,
        /// What it should be.
        wants: &'static str,
    },
    /// There is no such flag.
    #[error("there is no flag {name}{}", near.as_ref().map(|near| format!("; is {near} meant?")).unwrap_or_default())]
    Flag {
        /// Which one.
        name: String,
        /// One that looks like it.
        near: Option<&'static str>,
    },
}

impl Coded for Error {
    fn code(&self) -> Code {
        match self {
            Self::Unset { .. } => Code("NT-IDLE-0001"),
            Self::Bad { .. } => Code("NT-IDLE-0002"),
            Self::Flag { .. } => Code("NT-IDLE-0003"),
        }
    }
}

/// Where operator and resolver are; both are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The namespace of the resolvers.
    pub resolver_namespace: String,
    /// Their Deployment.
    pub resolver_deployment: String,
    /// Their Service, whose slices say which of them are ready.
    pub resolver_service: String,
    /// Their ServiceAccount, which may ask for wakes.
    pub resolver_account: String,
    /// Their internal port.
    pub resolver_port: u16,
    /// The port where all services are answered for by the header that names them.
    pub resolver_proxy_port: u16,
    /// The namespace of the operator.
    pub operator_namespace: String,
    /// Its Deployment.
    pub operator_deployment: String,
    /// Its Service.
    pub operator_service: String,
    /// Its ServiceAccount, which may ask resolvers.
    pub operator_account: String,
    /// The port where it is asked for wakes.
    pub operator_port: u16,
}

impl Places {
    fn read(environment: &Environment<'_>) -> Result<Self, Error> {
        let name = |name| environment.needed(name, "a name");
        let port = |name| environment.needed_port(name);
        let account = |name, usual: &str| {
            let named = environment.text(name);
            named.unwrap_or_else(|| usual.to_owned())
        };
        Ok(Self {
            resolver_namespace: name("ELASTI_RESOLVER_NAMESPACE")?,
            resolver_deployment: name("ELASTI_RESOLVER_DEPLOYMENT_NAME")?,
            resolver_service: name("ELASTI_RESOLVER_SERVICE_NAME")?,
            resolver_account: account("ELASTI_RESOLVER_SERVICE_ACCOUNT", "elasti-resolver"),
            resolver_port: port("ELASTI_RESOLVER_PORT")?,
            resolver_proxy_port: port("ELASTI_RESOLVER_PROXY_PORT")?,
            operator_namespace: name("ELASTI_OPERATOR_NAMESPACE")?,
            operator_deployment: name("ELASTI_OPERATOR_DEPLOYMENT_NAME")?,
            operator_service: name("ELASTI_OPERATOR_SERVICE_NAME")?,
            operator_account: account(
                "ELASTI_OPERATOR_SERVICE_ACCOUNT",
                "elasti-operator-controller-manager",
            ),
            operator_port: port("ELASTI_OPERATOR_PORT")?,
        })
    }
}

/// Where errors are sent besides the log.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Sentry {
    /// The address, which is a secret.
    pub dsn: Option<String>,
    /// What it is called there.
    pub environment: Option<String>,
}

impl Sentry {
    fn read(environment: &Environment<'_>) -> Self {
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

/// The namespaces that are looked at.
const WATCHED: &str = "WATCH_NAMESPACES";

/// Where a process is among others, which pods need not say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Whereabouts {
    /// The address that it listens on; all of the machine if absent.
    pub host: Option<IpAddr>,
    /// The file of its token, if that is not where pods have it.
    pub token: Option<PathBuf>,
}

impl Whereabouts {
    fn read(environment: &Environment<'_>) -> Result<Self, Error> {
        Ok(Self {
            host: environment.host("ELASTI_LISTEN_ADDRESS")?,
            token: environment.text("ELASTI_TOKEN_FILE").map(PathBuf::from),
        })
    }
}

/// What the operator is told.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Where everybody is.
    pub places: Places,
    /// Where it is itself.
    pub whereabouts: Whereabouts,
    /// The time between two polls.
    pub polling_interval: Duration,
    /// From the proof that resolvers are reached until pods are ended.
    pub grace: Duration,
    /// Whom triggers ask.
    pub prometheus: Defaults,
    /// The namespaces that are looked at; all if there is none.
    pub namespaces: BTreeSet<String>,
    /// The ports that resolvers stand in on.
    pub resolver_ports: RangeInclusive<u16>,
    /// Where errors are sent.
    pub sentry: Sentry,
    /// What it was started with.
    pub flags: Flags,
}

/// Ports that nobody else is given by the system, and that are not those of nodes.
const RESOLVER_PORTS: RangeInclusive<u16> = 20_000..=29_999;

impl Settings {
    /// What `variable` says to each name, and `flags`.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>, flags: Flags) -> Result<Self, Error> {
        let environment = Environment(variable);
        let places = Places::read(&environment)?;
        let interval = environment.duration("POLLING_INTERVAL", Duration::from_secs(30))?;
        Ok(Self {
            whereabouts: Whereabouts::read(&environment)?,
            polling_interval: interval,
            grace: environment.seconds("ELASTI_GRACE_SECONDS", 5)?,
            prometheus: prometheus(&environment)?,
            namespaces: namespaces(&environment, &flags, &places),
            resolver_ports: ports(&environment, &places)?,
            sentry: Sentry::read(&environment),
            places,
            flags,
        })
    }
}

fn prometheus(environment: &Environment<'_>) -> Result<Defaults, Error> {
    const ADDRESS: &str = "PROMETHEUS_TRIGGER_SERVER_ADDRESS";
    const AUTHORIZATION: &str = "PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER";
    const ORIGINS: &str = "PROMETHEUS_TRIGGER_AUTHORIZATION_ORIGINS";
    let address = environment.text(ADDRESS);
    let known = |it: &String| {
        ["http://", "https://"]
            .iter()
            .any(|scheme| it.starts_with(scheme))
    };
    if let Some(value) = address.as_ref().filter(|it| !known(it)) {
        // It may name a user.
        let value = format!(
            "no http:// or https:// address ({} characters)",
            value.len()
        );
        let wants = "an address such as http://prometheus.monitoring:9090";
        let name = ADDRESS.to_owned();
        return Err(Error::Bad { name, value, wants });
    }
    let authorization = environment.text(AUTHORIZATION).map(|value| {
        let value = HeaderValue::from_str(&value).map(|mut value| {
            value.set_sensitive(true);
            value
        });
        value.map_err(|_| Error::Bad {
            name: AUTHORIZATION.to_owned(),
            value: "something that no header can hold".to_owned(),
            wants: "one line such as Bearer and a token",
        })
    });
    let origins = environment.text(ORIGINS).unwrap_or_default();
    let origins = origins.parse().map_err(|wrong: NotAnOrigin| Error::Bad {
        name: ORIGINS.to_owned(),
        value: format!("a list whose {wrong}"),
        wants: "origins with commas between them, such as https://prometheus.example:9090, or *",
    });
    Ok(Defaults {
        address,
        authorization: authorization.transpose()?,
        origins: origins?,
    })
}

/// Operator and resolvers are looked at in any case.
fn namespaces(environment: &Environment<'_>, flags: &Flags, places: &Places) -> BTreeSet<String> {
    let mut namespaces = environment.names(WATCHED);
    if namespaces.is_empty() {
        namespaces.extend(flags.watch_namespace.clone());
    }
    if !namespaces.is_empty() {
        let own = [&places.operator_namespace, &places.resolver_namespace];
        namespaces.extend(own.into_iter().cloned());
    }
    namespaces
}

fn ports(environment: &Environment<'_>, places: &Places) -> Result<RangeInclusive<u16>, Error> {
    const NAME: &str = "ELASTI_RESOLVER_PORT_RANGE";
    let Some(text) = environment.text(NAME) else {
        return Ok(RESOLVER_PORTS);
    };
    let read = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port >= 1024);
    let range = text.split_once('-');
    let range = range.and_then(|(first, last)| Some(read(first)?..=read(last)?));
    let taken = [places.resolver_port, places.resolver_proxy_port];
    let free = |range: &RangeInclusive<u16>| !taken.iter().any(|port| range.contains(port));
    range
        .filter(|range| !range.is_empty() && free(range))
        .ok_or_else(|| Error::Bad {
            name: NAME.to_owned(),
            value: format!("{text:?}"),
            wants: "a range such as 20000-29999, from 1024 on and without the resolvers' own ports",
        })
}

#[cfg(test)]
mod tests;
