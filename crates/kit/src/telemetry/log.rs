//! Where log lines go.

use std::str::FromStr;

use tracing::{Subscriber, subscriber::SetGlobalDefaultError};
use tracing_subscriber::{
    EnvFilter, Layer, filter::ParseError, fmt::MakeWriter, layer::SubscriberExt,
};

use super::{
    Exports,
    export::{self, Layers, Wanted},
};
use crate::why::{Code, Coded};

/// How log lines look.
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

/// Why nothing can be logged so.
#[derive(Debug, thiserror::Error)]
pub enum SubscribeError {
    /// There is no such format.
    #[error("log lines are text or json, not {0:?}")]
    Format(String),
    /// The filter is none.
    #[error(
        "{filter:?} is no filter of log lines; write a level such as info, or info,neap_kit=debug"
    )]
    Filter {
        /// As it was given.
        filter: String,
        /// What is wrong.
        #[source]
        source: ParseError,
    },
    /// The process logs already.
    #[error("log lines of this process have a place already")]
    Taken(#[source] SetGlobalDefaultError),
    /// Traces cannot be sent as the variables say.
    #[error("traces cannot be sent as the OTEL_EXPORTER_OTLP_* variables say")]
    Traces(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The address for errors is none.
    #[error("SENTRY_DSN is no address of the form https://key@host/project")]
    Dsn,
}

/// Sends the log lines of the whole process that pass `filter` to standard error. With the features
/// for it, traces go to where the `OTEL_EXPORTER_OTLP_*` variables say and errors to `SENTRY_DSN`,
/// in the name of `service`.
pub fn subscribe(
    service: &'static str,
    format: Format,
    filter: &str,
) -> Result<Exports, SubscribeError> {
    let wanted = Wanted::by(|name| std::env::var(name).ok());
    let (exports, layers) = export::begin(service, &wanted)?;
    let subscriber = subscriber(format, filter, std::io::stderr, layers)?;
    tracing::subscriber::set_global_default(subscriber).map_err(SubscribeError::Taken)?;
    for variable in wanted.lacking() {
        tracing::warn!(
            variable,
            "this variable is set, and this program was built without what it asks for"
        );
    }
    Ok(exports)
}

/// Sends log lines that pass `filter` to `place`, and to more layers.
pub(super) fn subscriber<W>(
    format: Format,
    filter: &str,
    place: W,
    more: Layers,
) -> Result<impl Subscriber + Send + Sync, SubscribeError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let passes = EnvFilter::try_new(filter).map_err(|source| SubscribeError::Filter {
        filter: filter.to_owned(),
        source,
    })?;
    let lines = tracing_subscriber::fmt::layer().with_writer(place);
    let lines = match format {
        Format::Text => lines.with_ansi(false).boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    };
    // No layers at all would be taken for layers that want nothing.
    let more = (!more.is_empty()).then_some(more);
    let registry = tracing_subscriber::registry().with(more);
    Ok(registry.with(passes).with(lines))
}

impl Coded for SubscribeError {
    fn code(&self) -> Code {
        Code("NT-KIT-018")
    }
}
