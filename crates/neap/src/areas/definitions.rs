//! Installs the definitions of areas in `neap up`.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use neap_kit::{apply::Error, context::Context, definitions, manager::Component, why::chain};

/// The delay after a failure.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Installs the definitions once. One that a user deletes is created again by the next start.
pub(super) fn component(
    context: &Context,
    parts: Vec<fn() -> Vec<CustomResourceDefinition>>,
) -> Component {
    let (writer, clock) = (context.writer("neap-up"), context.clock);
    Component::new("definitions", move |stop| async move {
        let installing = async {
            for definition in parts.iter().flat_map(|definitions| definitions()) {
                while let Err(error) = install(&writer, &definition).await {
                    tracing::warn!(error = chain(&error), "a definition is not installed yet");
                    clock.sleep(RETRY_DELAY).await;
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = installing => {}
        }
        stop.cancelled().await;
    })
}

async fn install(
    writer: &neap_kit::apply::Writer,
    definition: &CustomResourceDefinition,
) -> Result<(), Error> {
    definitions::install(writer, definition.clone(), false)
        .await
        .map(drop)
}
