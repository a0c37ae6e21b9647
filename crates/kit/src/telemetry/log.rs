//! Log output.

use std::str::FromStr;

use tracing::{Subscriber, subscriber::SetGlobalDefaultError};
use tracing_subscriber::{
    EnvFilter, Layer, filter::ParseError, fmt::MakeWriter, layer::SubscriberExt,
};

use super::{
    Exports,
    export::{self, ExportConfig, Layers},
};
use crate::why::{Code, Coded};

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs: one object in each line.
    Json,
}

impl FromStr for Format {
    type Err = SubscribeError;

    fn from_str(text: &str) -> Result<Self, SubscribeError> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            other => Err(SubscribeError::Format(other.to_owned())),
        }
    }
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SubscribeError {
    /// There is no such format.
    #[error("log lines are text or json, not {0:?}")]
    Format(String),
    /// The filter is not valid.
    #[error(
        "{filter:?} is not a valid log filter; use a level such as info, or info,neap_kit=debug"
    )]
    Filter {
        /// The filter.
        filter: String,
        /// The error of the parser.
        #[source]
        source: ParseError,
    },
    /// The process has a log subscriber already.
    #[error("logging of this process is already set up")]
    AlreadySet(#[source] SetGlobalDefaultError),
    /// The exporter of traces could not be set up.
    #[error("traces cannot be exported as configured by the OTEL_EXPORTER_OTLP_* variables")]
    Traces(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The Sentry DSN is not valid.
    #[error("SENTRY_DSN is not an address of the form https://key@host/project")]
    Dsn,
}

/// Writes the log lines of the whole process that pass `filter` to standard error. With the features
/// `otlp` and `sentry`, exports traces as the `OTEL_EXPORTER_OTLP_*` variables configure, and errors to
/// `SENTRY_DSN`, with the service name `service`.
pub fn subscribe(
    service: &'static str,
    format: Format,
    filter: &str,
) -> Result<Exports, SubscribeError> {
    let config = ExportConfig::from_variables(|name| std::env::var(name).ok());
    let (exports, layers) = export::start(service, &config)?;
    let subscriber = subscriber(format, filter, std::io::stderr, layers)?;
    tracing::subscriber::set_global_default(subscriber).map_err(SubscribeError::AlreadySet)?;
    for variable in config.unsupported() {
        tracing::warn!(
            variable,
            "this variable is set, but this program was built without the feature for it"
        );
    }
    Ok(exports)
}

/// A subscriber that writes the log lines that pass `filter` to `output`, and to `more` layers.
pub(super) fn subscriber<W>(
    format: Format,
    filter: &str,
    output: W,
    more: Layers,
) -> Result<impl Subscriber + Send + Sync, SubscribeError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter_layer = EnvFilter::try_new(filter).map_err(|source| SubscribeError::Filter {
        filter: filter.to_owned(),
        source,
    })?;
    let lines = tracing_subscriber::fmt::layer().with_writer(output);
    let lines = match format {
        Format::Text => lines.with_ansi(false).boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    };
    // An empty list of layers would disable all events.
    let more = (!more.is_empty()).then_some(more);
    let registry = tracing_subscriber::registry().with(more);
    Ok(registry.with(filter_layer).with(lines))
}

impl Coded for SubscribeError {
    fn code(&self) -> Code {
        Code("NT-KIT-018")
    }
}
