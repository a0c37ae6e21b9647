//! Where traces and errors go beside the log, if the environment says so.
//!
//! Both are features of this crate, because they are much to build. A process that was built
//! without them and is asked for them says so.

use tracing_subscriber::{Layer, Registry};

use super::SubscribeError;

/// More places for what is logged.
pub(super) type Layers = Vec<Box<dyn Layer<Registry> + Send + Sync>>;

/// What the environment asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Wanted {
    /// Traces, to where the variables of OpenTelemetry say.
    pub(super) traces: bool,
    /// Errors, to this address.
    pub(super) errors: Option<String>,
}

impl Wanted {
    pub(super) fn by(variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let off = set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"))
            || set("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none");
        let endpoint = set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let endpoint = endpoint.or_else(|| set("OTEL_EXPORTER_OTLP_ENDPOINT"));
        Self {
            traces: endpoint.is_some() && !off,
            errors: set("SENTRY_DSN"),
        }
    }

    /// What is asked for and was not built in, by the variable that asks for it.
    pub(super) fn lacking(&self) -> Vec<&'static str> {
        let asked = [
            (
                self.traces && !cfg!(feature = "otlp"),
                "OTEL_EXPORTER_OTLP_ENDPOINT",
            ),
            (
                self.errors.is_some() && !cfg!(feature = "sentry"),
                "SENTRY_DSN",
            ),
        ];
        let lacking = asked.into_iter().filter(|(lacks, _)| *lacks);
        lacking.map(|(_, variable)| variable).collect()
    }
}

/// Sends traces and errors as long as it is held, and what is left when it is dropped.
#[derive(Default)]
#[must_use = "what was not sent yet is sent when it is dropped"]
pub struct Exports {
    #[cfg(feature = "otlp")]
    traces: Option<opentelemetry_sdk::trace::SdkTracerProvider>,
    #[cfg(feature = "sentry")]
    errors: Option<sentry::ClientInitGuard>,
}

#[cfg_attr(
    not(any(feature = "otlp", feature = "sentry")),
    expect(
        clippy::unnecessary_wraps,
        unused_variables,
        unused_mut,
        reason = "features are off"
    )
)]
pub(super) fn begin(
    service: &'static str,
    wanted: &Wanted,
) -> Result<(Exports, Layers), SubscribeError> {
    let (mut exports, mut layers) = (Exports::default(), Layers::new());
    #[cfg(feature = "otlp")]
    if wanted.traces {
        let (provider, layer) = traces(service)?;
        exports.traces = Some(provider);
        layers.push(layer);
    }
    #[cfg(feature = "sentry")]
    if let Some(address) = &wanted.errors {
        exports.errors = Some(errors(service, address)?);
        layers.push(sentry::integrations::tracing::ErrorLayer::new().boxed());
        layers.push(sentry::integrations::tracing::BreadcrumbLayer::new().boxed());
    }
    Ok((exports, layers))
}

#[cfg(feature = "otlp")]
type Traces = (
    opentelemetry_sdk::trace::SdkTracerProvider,
    Box<dyn Layer<Registry> + Send + Sync>,
);

/// Sends spans over HTTP, from a thread of the exporter's own.
#[cfg(feature = "otlp")]
fn traces(service: &'static str) -> Result<Traces, SubscribeError> {
    use opentelemetry::trace::TracerProvider as _;
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .build()
        .map_err(|error| SubscribeError::Traces(error.into()))?;
    let resource = opentelemetry_sdk::Resource::builder();
    let resource = if std::env::var_os("OTEL_SERVICE_NAME").is_some() {
        resource
    } else {
        resource.with_service_name(service)
    };
    let provider = opentelemetry_sdk::trace::SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource.build())
        .build();
    let tracer = provider.tracer(service);
    let layer = tracing_opentelemetry::layer().with_tracer(tracer);
    Ok((provider, layer.boxed()))
}

/// The address has a key in it, so nobody is told what it was.
#[cfg(feature = "sentry")]
fn errors(service: &'static str, address: &str) -> Result<sentry::ClientInitGuard, SubscribeError> {
    let dsn: sentry::types::Dsn = address.trim().parse().map_err(|_| SubscribeError::Dsn)?;
    let version = env!("CARGO_PKG_VERSION");
    let mut options = sentry::ClientOptions::new()
        .release(format!("{service}@{version}"))
        .send_default_pii(false);
    options.dsn = Some(dsn);
    Ok(sentry::init(options))
}

#[cfg(feature = "otlp")]
impl Drop for Exports {
    fn drop(&mut self) {
        if let Some(traces) = self.traces.take() {
            // Nobody is left to be told.
            let _ = traces.shutdown();
        }
    }
}

impl std::fmt::Debug for Exports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exports").finish_non_exhaustive()
    }
}
