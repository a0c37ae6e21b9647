//! Tracks the addresses of all resolvers: connections that come from them may be probes.

use std::{net::IpAddr, sync::Arc};

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use neap_kit::{
    context::Context,
    manager::Component,
    watch::{Cache, Selection, WatchesStopped},
};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::accepted_connections::AcceptedConnections;
use crate::api::labels::SERVICE_NAME;

/// Keeps the resolver addresses of `accepted` equal to those in the EndpointSlices of the resolvers'
/// Service, ready or not: a resolver that is shutting down still sends the probes it was asked for.
pub fn component(
    context: &Context,
    namespace: &str,
    service: &str,
    accepted: AcceptedConnections,
) -> Result<Component, WatchesStopped> {
    let selection = Selection {
        labels: Some(format!("{SERVICE_NAME}={service}")),
        fields: None,
    };
    let api = Api::namespaced(context.client.clone(), namespace);
    let slices: Cache<EndpointSlice> = context.watches.cache(api, selection)?;
    let changed = Arc::new(Notify::new());
    let notify = changed.clone();
    slices.subscribe(move |_| notify.notify_one());
    let run = move |stop: CancellationToken| async move {
        loop {
            let all = slices.list("");
            accepted
                .set_resolver_addresses(all.iter().flat_map(|slice| addresses(slice)).collect());
            tokio::select! {
                () = stop.cancelled() => return,
                () = changed.notified() => {}
            }
        }
    };
    Ok(Component::new("resolver-addresses", run))
}

fn addresses(slice: &EndpointSlice) -> impl Iterator<Item = IpAddr> {
    let endpoints = slice.endpoints.iter().flatten();
    let addresses = endpoints.flat_map(|endpoint| &endpoint.addresses);
    addresses.filter_map(|address| address.parse().ok())
}
