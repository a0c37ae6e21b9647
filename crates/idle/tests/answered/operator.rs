//! The operator, and its wakes.

use std::sync::Arc;

use neap_idle::{
    service::{
        facts::Patience,
        ports::Range,
        run::{Settings, service},
    },
    wake::WakeService,
};
use neap_kit::{manager::Service, site::Site, watch::Ended};

use crate::{
    answers::{Always, Written},
    town::Town,
};

pub(crate) fn services(site: &Site, town: &Arc<Town>) -> Result<Vec<Service>, Ended> {
    let settings = Settings {
        namespace: "default".to_owned(),
        resolver_namespace: "default".to_owned(),
        resolver_service: "resolver".to_owned(),
        range: Range::default(),
        patience: Patience::default(),
    };
    let (waker, wakes) = WakeService::of_all(site)?;
    *town.operator.lock() = Some(waker);
    let operator = service(site, settings, Arc::new(Written), Arc::new(Always))?;
    Ok(vec![operator, wakes.into()])
}
