//! Where the other resolvers are: connections that come from there may be proofs.

use std::{net::IpAddr, sync::Arc};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use neap_kit::{
    manager::Service,
    site::Site,
    watch::{Cache, Ended, Selection},
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::taken::Taken;
use crate::service::objects::SERVICE_NAME;

/// Keeps `taken` told of the addresses that the slices of the resolvers' own Service have, ready or
/// not: one that is about to end still proves what it was asked to.
pub fn service(
    site: &Site,
    namespace: &str,
    service: &str,
    taken: Taken,
) -> Result<Service, Ended> {
    let selection = Selection {
        labels: Some(format!("{SERVICE_NAME}={service}")),
        fields: None,
    };
    let api = Api::namespaced(site.client.clone(), namespace);
    let slices: Cache<EndpointSlice> = site.watches.of(api, selection)?;
    let changed = Arc::new(Notify::new());
    let notify = changed.clone();
    slices.follow(move |_| notify.notify_one());
    let run = move |stop: CancellationToken| async move {
        loop {
            let all = slices.list("");
            taken.resolvers_are(all.iter().flat_map(|slice| addresses(slice)).collect());
            tokio::select! {
                () = stop.cancelled() => return,
                () = changed.notified() => {}
            }
        }
    };
    Ok(Service::new("peers", run))
}

fn addresses(slice: &EndpointSlice) -> impl Iterator<Item = IpAddr> {
    let endpoints = slice.endpoints.iter().flatten();
    let addresses = endpoints.flat_map(|endpoint| &endpoint.addresses);
    addresses.filter_map(|address| address.parse().ok())
}
