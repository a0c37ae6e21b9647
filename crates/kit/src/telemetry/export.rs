//! Export of traces and errors, as configured by environment variables.
//!
//! Both are features of this crate, because they take long to compile. A process that was built
//! without a feature and finds its variable set logs a warning.

use tracing_subscriber::{Layer, Registry};

use super::SubscribeError;

/// Additional layers of the subscriber.
pub(super) type Layers = Vec<Box<dyn Layer<Registry> + Send + Sync>>;

/// The exports that the environment configures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ExportConfig {
    /// Whether traces are exported, as the OpenTelemetry variables configure.
    pub(super) traces: bool,
    /// The Sentry DSN that errors are sent to.
    pub(super) errors: Option<String>,
}

impl ExportConfig {
    pub(super) fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Self {
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

    /// The variables of configured exports that this build has no feature for.
    pub(super) fn unsupported(&self) -> Vec<&'static str> {
        let exports = [
            (
                self.traces && !cfg!(feature = "otlp"),
                "OTEL_EXPORTER_OTLP_ENDPOINT",
            ),
            (
                self.errors.is_some() && !cfg!(feature = "sentry"),
                "SENTRY_DSN",
            ),
        ];
        let unsupported = exports.into_iter().filter(|(missing, _)| *missing);
        unsupported.map(|(_, variable)| variable).collect()
    }
}

/// Exports traces and errors until it is dropped, which flushes them.
#[derive(Default)]
#[must_use = "dropping it stops the export"]
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
pub(super) fn start(
    service: &'static str,
    config: &ExportConfig,
) -> Result<(Exports, Layers), SubscribeError> {
    let (mut exports, mut layers) = (Exports::default(), Layers::new());
    #[cfg(feature = "otlp")]
    if config.traces {
        let (provider, layer) = traces(service)?;
        exports.traces = Some(provider);
        layers.push(layer);
    }
    #[cfg(feature = "sentry")]
    if let Some(address) = &config.errors {
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

/// Exports spans over HTTP, on a thread of the exporter.
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

/// The address contains a key, so the error does not include it.
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
            // There is nothing left to report an error to.
            let _ = traces.shutdown();
        }
    }
}

impl std::fmt::Debug for Exports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exports").finish_non_exhaustive()
    }
}
