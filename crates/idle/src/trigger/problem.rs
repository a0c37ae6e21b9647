//! Why a trigger has no usable result.

use std::time::Duration;

/// Why a trigger has no usable result. Contains no credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The metadata of the trigger cannot be parsed.
    #[error("the trigger's metadata cannot be parsed: {0}")]
    Metadata(String),
    /// The trigger has no query.
    #[error("the trigger has no query")]
    NoQuery,
    /// Neither the trigger nor the operator has the address of a server.
    #[error(
        "the trigger has no serverAddress, and PROMETHEUS_TRIGGER_SERVER_ADDRESS is not set either"
    )]
    NoAddress,
    /// The address of the server is invalid.
    #[error("serverAddress is not an http:// or https:// address")]
    Address,
    /// A header cannot be sent.
    #[error("the header {0:?} cannot be sent")]
    Header(String),
    /// No connection to the server.
    #[error("Prometheus cannot be reached: {0}")]
    Unreachable(String),
    /// No response in time.
    #[error("Prometheus did not respond within {0:?}")]
    Timeout(Duration),
    /// The response has an error status.
    #[error("Prometheus responded with status {status}{}", message.as_ref().map(|message| format!(": {message}")).unwrap_or_default())]
    Status {
        /// The status.
        status: u16,
        /// The error of Prometheus; none if the response is not of a Prometheus.
        message: Option<String>,
    },
    /// The response denies access, and the request had no credentials, since the server is not listed.
    #[error(
        "Prometheus responded with status {status}; PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER is not sent to {origin}: add it to PROMETHEUS_TRIGGER_AUTHORIZATION_ORIGINS of the operator, or give the trigger headers of its own"
    )]
    Withheld {
        /// The status.
        status: u16,
        /// The origin of the server, without a user.
        origin: String,
    },
    /// The response is too long.
    #[error("the response of Prometheus is longer than {0} bytes")]
    TooLong(usize),
    /// The response is not one of Prometheus.
    #[error("the response is not one of Prometheus: {0}")]
    Unreadable(String),
    /// The result is empty.
    #[error(
        "the query has no value; end it with \"or vector(0)\" if that means that the service is idle"
    )]
    NoValue,
    /// The query with which the operator finds out whether Prometheus was up has no value.
    #[error(
        "the operator's own query {query} has no value, so that nothing shows whether Prometheus was up \
         and has missed no request; it is made of uptimeFilter, which has to select a series of the \
         server that scrapes the service"
    )]
    NoUptime {
        /// The query.
        query: String,
    },
    /// The result has more than one value.
    #[error("the query has {0} values and must have one; sum() over them")]
    ManyValues(usize),
    /// The result is of another type.
    #[error("the query is a {0} and must be an instant vector")]
    WrongType(String),
    /// The value is not a finite number.
    #[error("the query's value is {0}")]
    NotFinite(String),
    /// Prometheus was not up during the whole cooldown.
    #[error("Prometheus was not up during the whole cooldown, so it may have missed requests")]
    Unhealthy,
    /// A resolver that may have received requests does not respond.
    #[error("a resolver does not report its requests: {0}")]
    Resolver(String),
}

impl Problem {
    /// The reason of the condition.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Metadata(_) | Self::NoQuery | Self::Address | Self::Header(_) => "TriggerInvalid",
            Self::NoAddress => "PrometheusUnknown",
            Self::Unreachable(_) | Self::Timeout(_) => "PrometheusUnreachable",
            Self::Status { .. }
            | Self::Withheld { .. }
            | Self::TooLong(_)
            | Self::Unreadable(_) => "PrometheusFailed",
            Self::NoValue | Self::NoUptime { .. } => "NoValue",
            Self::ManyValues(_) | Self::WrongType(_) => "NotOneValue",
            Self::NotFinite(_) => "NotANumber",
            Self::Unhealthy => "PrometheusWasDown",
            Self::Resolver(_) => "ResolverSilent",
        }
    }
}
