//! Who says where resolvers and pods are, and runs the pods.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use k8s_openapi::api::{
    apps::v1::Deployment, core::v1::Service as KubeService, discovery::v1::EndpointSlice,
};
use kube::Resource;
use neap_idle::api::names;
use neap_kit::{
    apply::Error,
    controller::Outcome,
    key::Key,
    manager::Service,
    site::Site,
    watch::{Cache, Ended},
    wiring::{Tools, Wiring},
};
use serde_json::{Value, json};

use crate::town::Town;

/// So long a pod takes to start, and so long it takes connections after it was told to end.
const START: Duration = Duration::from_secs(2);
const LINGER: Duration = Duration::from_secs(1);
const POD: &str = "10.2.0.1";

pub(crate) fn services(site: &Site, town: &Arc<Town>) -> Result<Vec<Service>, Ended> {
    Ok(vec![endpoints(site)?, pods(site, town)?])
}

fn endpoints(site: &Site) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, "endpoints");
    let services = wiring.kept::<KubeService>()?;
    let slices = wiring.read::<EndpointSlice>()?;
    let work = (services, slices, wiring.tools());
    Ok(wiring.service(work, |work, key| async move {
        let (services, slices, tools) = &*work;
        if slices.get(&Key::new("default", "resolvers")).is_some() {
            return Ok(Outcome::Settled);
        }
        let Some(service) = services.get(&key).filter(|_| key.name() == "resolver") else {
            return Ok(Outcome::Settled);
        };
        let labels = json!({"kubernetes.io/service-name": "resolver"});
        let mut slice = slice("resolvers", &labels, &["10.9.0.1"]);
        slice.metadata.owner_references =
            Some(service.controller_owner_ref(&()).into_iter().collect());
        tools.hand.create(&slice).await?;
        Ok(Outcome::Again(Duration::from_secs(1)))
    }))
}

struct Pods {
    deployments: Cache<Deployment>,
    slices: Cache<EndpointSlice>,
    tools: Tools,
    site: Site,
    town: Arc<Town>,
}

fn pods(site: &Site, town: &Arc<Town>) -> Result<Service, Ended> {
    let mut wiring = Wiring::new(site, "pods");
    let work = Pods {
        deployments: wiring.kept::<Deployment>()?,
        slices: wiring.read::<EndpointSlice>()?,
        tools: wiring.tools(),
        site: site.clone(),
        town: town.clone(),
    };
    Ok(wiring.service(work, Pods::run))
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
        if wanted && !(ready && self.town.pods.lock().contains(&pod)) {
            self.site.clock.sleep(START).await;
            self.town.pods.lock().insert(pod);
            self.tell(live.as_deref(), &[POD]).await?;
        } else if !wanted && ready {
            self.tell(live.as_deref(), &[]).await?;
            self.site.clock.sleep(LINGER).await;
            self.town.pods.lock().remove(&pod);
        } else if !wanted {
            self.town.pods.lock().remove(&pod);
        }
        Ok(Outcome::Settled)
    }

    async fn tell(&self, live: Option<&EndpointSlice>, addresses: &[&str]) -> Result<(), Error> {
        let private = names::private_service("web");
        let labels =
            json!({"idle.neaptide.dev/private": "true", "kubernetes.io/service-name": private});
        let mut slice = slice("pods", &labels, addresses);
        match live {
            None => self.tools.hand.create(&slice).await.map(drop),
            Some(live) => {
                slice.metadata = live.metadata.clone();
                self.tools.hand.replace(&slice).await.map(drop)
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
