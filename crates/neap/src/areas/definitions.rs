//! Installs the definitions of areas in `neap up`.

use std::time::Duration;

use k8s_openapi::{
    api::rbac::v1::ClusterRole,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use neap_kit::{
    apply::{Error, Writer},
    clock::Clock,
    context::Context,
    definitions,
    key::Key,
    manager::Component,
    why::chain,
};

use super::host::StartGate;

/// The delay after a failure.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// The time between two looks at a definition that the server does not serve yet.
const SERVED_INTERVAL: Duration = Duration::from_millis(5);

/// Installs the definitions once, with the roles that let those who may view the cluster view their objects, and
/// drops the gate when the server serves their kinds: `kubectl apply` right
/// after "Ready" finds them. A definition that a user deletes is created again by the next start.
pub(super) fn component(
    context: &Context,
    parts: Vec<fn() -> Vec<CustomResourceDefinition>>,
    gate: StartGate,
) -> Component {
    let (writer, clock) = (context.writer("neap-up"), context.clock);
    Component::new("definitions", move |stop| async move {
        let installing = async {
            let all: Vec<_> = parts.iter().flat_map(|part| part()).collect();
            for definition in &all {
                while let Err(error) = install(&writer, definition).await {
                    tracing::warn!(error = chain(&error), "a definition is not installed yet");
                    clock.sleep(RETRY_DELAY).await;
                }
            }
            for role in super::all().filter_map(|area| area.view_role()) {
                while let Err(error) = install_role(&writer, &role).await {
                    tracing::warn!(error = chain(&error), "a role is not installed yet");
                    clock.sleep(RETRY_DELAY).await;
                }
            }
            for definition in &all {
                served(&writer, clock, &Key::of(definition)).await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = installing => {}
        }
        drop(gate);
        stop.cancelled().await;
    })
}

async fn install(writer: &Writer, definition: &CustomResourceDefinition) -> Result<(), Error> {
    definitions::install(writer, definition.clone(), false)
        .await
        .map(drop)
}

/// Creates the role, or gives one of another version its rules.
async fn install_role(writer: &Writer, role: &ClusterRole) -> Result<(), Error> {
    if writer.create(role).await?.is_some() {
        return Ok(());
    }
    match writer.find::<ClusterRole>(&Key::of(role)).await? {
        Some(found) if found.rules != role.rules => {
            let replaced = ClusterRole {
                rules: role.rules.clone(),
                ..found
            };
            writer.replace(&replaced).await.map(drop)
        }
        _ => Ok(()),
    }
}

/// Returns when the server serves the kind of the definition, or the definition is gone.
pub(crate) async fn served(writer: &Writer, clock: Clock, name: &Key) {
    loop {
        match writer.find::<CustomResourceDefinition>(name).await {
            Ok(found) if found.as_ref().is_none_or(definitions::is_established) => return,
            Ok(_) => clock.sleep(SERVED_INTERVAL).await,
            Err(_) => clock.sleep(RETRY_DELAY).await,
        }
    }
}
