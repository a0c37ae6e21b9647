//! Simulated controllers: they write the EndpointSlices of resolvers and pods, and run the pods.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service, discovery::v1::EndpointSlice};
use kube::Resource;
use neap_idle::api::names;
use neap_kit::{
    apply::Error,
    builder::{ControllerBuilder, Tools},
    context::Context,
    controller::Outcome,
    key::Key,
    manager::Component,
    watch::{Cache, WatchesStopped},
};
use serde_json::{Value, json};

use crate::run_state::RunState;

/// How long a pod takes to start.
const START_DELAY: Duration = Duration::from_secs(2);
/// How long a pod accepts connections after its endpoint is removed.
const TERMINATION_DELAY: Duration = Duration::from_secs(1);
const POD: &str = "10.2.0.1";

pub(crate) fn components(
    context: &Context,
    state: &Arc<RunState>,
) -> Result<Vec<Component>, WatchesStopped> {
    Ok(vec![endpoints(context)?, pods(context, state)?])
}

fn endpoints(context: &Context) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "endpoints");
    let services = builder.primary::<Service>()?;
    let slices = builder.cache::<EndpointSlice>()?;
    let work = (services, slices, builder.tools());
    Ok(builder.build(work, |work, key| async move {
        let (services, slices, tools) = &*work;
        if slices.get(&Key::new("default", "resolvers")).is_some() {
            return Ok::<_, Error>(Outcome::Done);
        }
        let Some(service) = services.get(&key).filter(|_| key.name() == "resolver") else {
            return Ok(Outcome::Done);
        };
        let labels = json!({"kubernetes.io/service-name": "resolver"});
        let mut slice = slice("resolvers", &labels, &["10.9.0.1"]);
        slice.metadata.owner_references =
            Some(service.controller_owner_ref(&()).into_iter().collect());
        tools.writer.create(&slice).await?;
        Ok(Outcome::RequeueAfter(Duration::from_secs(1)))
    }))
}

struct Pods {
    deployments: Cache<Deployment>,
    slices: Cache<EndpointSlice>,
    tools: Tools,
    context: Context,
    state: Arc<RunState>,
}

fn pods(context: &Context, state: &Arc<RunState>) -> Result<Component, WatchesStopped> {
    let mut builder = ControllerBuilder::new(context, "pods");
    let work = Pods {
        deployments: builder.primary::<Deployment>()?,
        slices: builder.cache::<EndpointSlice>()?,
        tools: builder.tools(),
        context: context.clone(),
        state: state.clone(),
    };
    Ok(builder.build(work, Pods::run))
}

impl Pods {
    async fn run(self: Arc<Self>, key: Key) -> Result<Outcome, Error> {
        let Some(web) = self.deployments.get(&key) else {
            return Ok(Outcome::Gone);
        };
        let wanted = web.spec.as_ref().and_then(|spec| spec.replicas) != Some(0);
        let live = self.slices.get(&Key::new("default", "pods"));
        let ready = (live.iter()).any(|slice| slice.endpoints.iter().flatten().next().is_some());
        let pod = SocketAddr::new(POD.parse().unwrap(), 8080);
        if wanted && !(ready && self.state.pods.lock().contains(&pod)) {
            self.context.clock.sleep(START_DELAY).await;
            self.state.pods.lock().insert(pod);
            self.write_slice(live.as_deref(), &[POD]).await?;
        } else if !wanted && ready {
            self.write_slice(live.as_deref(), &[]).await?;
            self.context.clock.sleep(TERMINATION_DELAY).await;
            self.state.pods.lock().remove(&pod);
        } else if !wanted {
            self.state.pods.lock().remove(&pod);
        }
        Ok(Outcome::Done)
    }

    async fn write_slice(
        &self,
        live: Option<&EndpointSlice>,
        addresses: &[&str],
    ) -> Result<(), Error> {
        let private = names::private_service("web");
        let labels =
            json!({"idle.neaptide.dev/private": "true", "kubernetes.io/service-name": private});
        let mut slice = slice("pods", &labels, addresses);
        match live {
            None => self.tools.writer.create(&slice).await.map(drop),
            Some(live) => {
                slice.metadata = live.metadata.clone();
                self.tools.writer.replace(&slice).await.map(drop)
            }
        }
    }
}

fn slice(name: &str, labels: &Value, addresses: &[&str]) -> EndpointSlice {
    let endpoints: Vec<_> = addresses
        .iter()
        .map(|address| json!({"addresses": [address], "conditions": {"ready": true}}))
        .collect();
    let slice = json!({
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "addressType": "IPv4", "ports": [{"name": "http", "port": 8080}], "endpoints": endpoints,
    });
    serde_json::from_value(slice).unwrap()
}
