//! The operator with its wake service.

use std::sync::Arc;

use neap_idle::{
    elasti_service::{
        Settings, component,
        facts::{PortRange, Timeouts},
    },
    options::Installation,
    wake::WakeRunner,
};
use neap_kit::{context::Context, manager::Component, watch::WatchesStopped};

use crate::{
    run_state::RunState,
    stubs::{AlwaysReachable, AnnotationTriggers},
};

pub(crate) fn components(
    context: &Context,
    state: &Arc<RunState>,
) -> Result<Vec<Component>, WatchesStopped> {
    let settings = Settings {
        installation: Installation {
            operator_namespace: "default".to_owned(),
            resolver_namespace: "default".to_owned(),
            resolver_service: "resolver".to_owned(),
            ..Installation::standard()
        },
        resolver_ports: PortRange::default(),
        timeouts: Timeouts::default(),
    };
    let (waker, wakes) = WakeRunner::for_all_services(context)?;
    *state.operator.lock() = Some(waker);
    let operator = component(
        context,
        settings,
        Arc::new(AnnotationTriggers),
        Arc::new(AlwaysReachable),
    )?;
    Ok(vec![operator, wakes.into()])
}
