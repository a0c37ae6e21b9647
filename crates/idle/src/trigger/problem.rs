//! Why a question has no answer.

use std::time::Duration;

/// Why a question has no answer. Holds nothing that lets its reader into Prometheus.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The trigger cannot be read.
    #[error("the trigger's metadata cannot be read: {0}")]
    Metadata(String),
    /// There is nothing to ask.
    #[error("the trigger has no query")]
    NoQuery,
    /// Nobody to ask is named.
    #[error(
        "the trigger has no serverAddress, and PROMETHEUS_TRIGGER_SERVER_ADDRESS names none either"
    )]
    NoAddress,
    /// The address is none.
    #[error("serverAddress is no http:// or https:// address")]
    Address,
    /// A header cannot be sent.
    #[error("the header {0:?} cannot be sent")]
    Header(String),
    /// Nobody is there.
    #[error("Prometheus cannot be reached: {0}")]
    Unreachable(String),
    /// No answer came.
    #[error("Prometheus did not answer within {0:?}")]
    Late(Duration),
    /// It refused.
    #[error("Prometheus answered with status {status}{}", said.as_ref().map(|said| format!(": {said}")).unwrap_or_default())]
    Status {
        /// How.
        status: u16,
        /// Why, if it is a Prometheus that says so.
        said: Option<String>,
    },
    /// It refused, and was not shown what the operator has to show.
    #[error(
        "Prometheus answered with status {status}; PROMETHEUS_TRIGGER_AUTHORIZATION_HEADER is not sent to {origin}: add it to PROMETHEUS_TRIGGER_AUTHORIZATION_ORIGINS of the operator, or give the trigger headers of its own"
    )]
    Withheld {
        /// How.
        status: u16,
        /// Who, without a user.
        origin: String,
    },
    /// The answer is longer than anybody reads.
    #[error("the answer of Prometheus is longer than {0} bytes")]
    Long(usize),
    /// It is no answer of Prometheus.
    #[error("what was answered is not what Prometheus answers: {0}")]
    Unreadable(String),
    /// The query has no value.
    #[error("the query has no value; end it with \"or vector(0)\" if that means that nobody asks")]
    Nothing,
    /// The query has many values.
    #[error("the query has {0} values and must have one; sum() over them")]
    Several(usize),
    /// The query is of another type.
    #[error("the query is a {0} and must be an instant vector")]
    Kind(String),
    /// The value says nothing.
    #[error("the query's value is {0}")]
    NotFinite(String),
    /// Prometheus was not there all the time.
    #[error("Prometheus was not up during all of the cooldown, so it may have missed something")]
    Unhealthy,
    /// A resolver that may have been asked does not say.
    #[error("a resolver does not say what it was asked for: {0}")]
    Resolver(String),
}

impl Problem {
    /// In one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Metadata(_) | Self::NoQuery | Self::Address | Self::Header(_) => "TriggerInvalid",
            Self::NoAddress => "PrometheusUnknown",
            Self::Unreachable(_) | Self::Late(_) => "PrometheusUnreachable",
            Self::Status { .. } | Self::Withheld { .. } | Self::Long(_) | Self::Unreadable(_) => {
                "PrometheusFailed"
            }
            Self::Nothing => "NoValue",
            Self::Several(_) | Self::Kind(_) => "NotOneValue",
            Self::NotFinite(_) => "NotANumber",
            Self::Unhealthy => "PrometheusWasDown",
            Self::Resolver(_) => "ResolverSilent",
        }
    }
}
