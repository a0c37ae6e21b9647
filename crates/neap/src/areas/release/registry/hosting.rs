//! Where tools find the registry: the ConfigMap `local-registry-hosting` in `kube-public`, as kind, k3d and
//! minikube publish theirs (KEP-1755). Its address differs between data folders.

use std::{net::SocketAddr, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use neap_kit::{
    apply::{Error, Writer},
    context::Context,
    key::Key,
    manager::Component,
    why::chain,
};
use serde::Deserialize;
use serde_json::{Value, json};

pub(in crate::areas::release) const NAMESPACE: &str = "kube-public";
pub(in crate::areas::release) const NAME: &str = "local-registry-hosting";
const ENTRY: &str = "localRegistryHosting.v1";
/// The delay after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The entry of the ConfigMap; only the part that is read here.
#[derive(Deserialize)]
struct Hosting {
    host: Option<String>,
}

/// The host of the registry that the ConfigMap names.
pub(in crate::areas::release) fn host_in(map: &ConfigMap) -> Option<String> {
    let text = map.data.as_ref()?.get(ENTRY)?;
    let hosting: Hosting = serde_saphyr::from_str(text).ok()?;
    hosting.host.filter(|host| !host.is_empty())
}

/// Publishes the address when the process starts.
pub(super) fn component(context: &Context, address: SocketAddr) -> Component {
    let (writer, clock) = (context.writer("neap"), context.clock);
    Component::new("release-registry-hosting", move |stop| async move {
        let mut known = String::new();
        loop {
            match publish(&writer, address).await {
                Ok(true) => return stop.cancelled().await,
                Ok(false) => {}
                Err(error) => {
                    let why = chain(&error);
                    if why != known {
                        tracing::warn!("{NAMESPACE}/{NAME} cannot be written: {why}");
                    }
                    known = why;
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(RETRY_DELAY) => {}
            }
        }
    })
}

/// Creates the ConfigMap, or replaces one with another address, such as that of a copied data folder. False if it
/// was deleted meanwhile.
async fn publish(writer: &Writer, address: SocketAddr) -> Result<bool, Error> {
    let wanted = config_map(address);
    if writer.create(&wanted).await?.is_some() {
        return Ok(true);
    }
    let key = Key::of(&wanted);
    let Some(mut found) = writer.find::<ConfigMap>(&key).await? else {
        return Ok(false);
    };
    if host_in(&found) != host_in(&wanted) {
        found.data = wanted.data;
        writer.replace(&found).await?;
    }
    Ok(true)
}

fn config_map(address: SocketAddr) -> ConfigMap {
    // JSON is YAML, and needs no quoting of its own.
    let hosting: Value = json!({
        "host": address.to_string(),
        "help": "the registry of neap up; its samples are under sample/",
    });
    ConfigMap {
        metadata: kube::api::ObjectMeta {
            name: Some(NAME.to_owned()),
            namespace: Some(NAMESPACE.to_owned()),
            ..Default::default()
        },
        data: Some([(ENTRY.to_owned(), hosting.to_string())].into()),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use kube::{Api, Client};
    use neap_kit::{clock::Clock, lease::Leadership};
    use neap_pocket::{Options, Pocket, environment::Environment};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_address_is_published_and_a_former_one_replaced() {
        let pocket = Pocket::open(Options::new(Environment::simulated(7)));
        let pocket = pocket.await.unwrap();
        let client = Client::new(pocket.service(), "default");
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
        let leadership = Leadership::without_election(clock);
        let writer = Writer::new(client.clone(), "t", leadership, clock);
        let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
        let mut versions = Vec::new();
        for host in ["127.1.0.5:5000", "127.1.0.5:5000", "127.9.0.5:5000"] {
            assert!(publish(&writer, host.parse().unwrap()).await.unwrap());
            let found = maps.get(NAME).await.unwrap();
            assert_eq!(host_in(&found).as_deref(), Some(host));
            versions.push(found.metadata.resource_version);
        }
        assert_eq!(
            versions[0], versions[1],
            "nothing changed, nothing is written"
        );
        assert_ne!(versions[1], versions[2]);
    }

    #[test]
    fn an_entry_of_another_tool_is_read() {
        let read = |text: &str| {
            let data = [(ENTRY.to_owned(), text.to_owned())].into();
            let map = ConfigMap {
                data: Some(data),
                ..ConfigMap::default()
            };
            host_in(&map)
        };
        let of_kind = "host: \"localhost:5001\"\nhelp: \"https://kind.sigs.k8s.io/\"\n";
        assert_eq!(read(of_kind).as_deref(), Some("localhost:5001"));
        assert_eq!(read("hostFromClusterNetwork: registry:5000\n"), None);
        assert_eq!(read("host: ''"), None);
        assert_eq!(read("host: ["), None);
    }
}
