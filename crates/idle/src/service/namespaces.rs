//! What was said for whole namespaces.

use std::{collections::HashMap, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt};
use neap_kit::{
    clock::Clock,
    controller::Trigger,
    key::Key,
    site::Site,
    watch::{Cache, Change, Ended, Metadata, Selection},
    wiring::Wiring,
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::switches::Switches;

/// So often namespaces are asked for that may not be watched.
const OFTEN: Duration = Duration::from_secs(30);

/// Is told of the namespace in which something else is said now; of none if it is meant for all.
pub(crate) type Tell = Arc<dyn Fn(&str, &Trigger<Key>) + Send + Sync>;

/// Knows what was said for whole namespaces. Cheap to copy.
#[derive(Clone)]
pub(crate) struct Namespaces {
    /// What is said in that of the operator is meant for all.
    home: String,
    seen: Seen,
}

#[derive(Clone)]
enum Seen {
    Watched(Cache<Metadata<Namespace>>),
    /// Whoever may see some namespaces only may not watch them, but may ask for each: a watch of one
    /// by its name is asked for beside all namespaces, where no Role of one counts.
    Asked(Arc<Asked>),
}

struct Asked {
    namespaces: Vec<String>,
    api: Api<Namespace>,
    clock: Clock,
    said: Mutex<HashMap<String, Switches>>,
    tell: Tell,
    trigger: Trigger<Key>,
    home: String,
}

impl Namespaces {
    pub(crate) fn new(
        wiring: &mut Wiring,
        site: &Site,
        home: &str,
        tell: Tell,
    ) -> Result<Self, Ended> {
        let client = site.client.clone();
        let home = home.to_owned();
        if site.watches.namespaces().is_empty() {
            let cache = wiring.select(Api::all(client), Selection::default())?;
            let here = home.clone();
            wiring.follow(&cache, move |change, trigger| {
                if let Change::Modified { old, new } = change
                    && said(old) != said(new)
                {
                    tell(meant(&here, change.key().name()), trigger);
                }
            });
            let seen = Seen::Watched(cache);
            return Ok(Self { home, seen });
        }
        let asked = Arc::new(Asked {
            namespaces: site.watches.namespaces().to_vec(),
            api: Api::all(client),
            clock: site.clock,
            said: Mutex::default(),
            tell,
            trigger: wiring.trigger(),
            home: home.clone(),
        });
        let once = asked.clone();
        wiring.once(async move { once.ask().await });
        let seen = Seen::Asked(asked);
        Ok(Self { home, seen })
    }

    /// What was said for all services of a namespace.
    pub(crate) fn switches(&self, namespace: &str) -> Switches {
        self.of(namespace).or(self.of(&self.home))
    }

    fn of(&self, namespace: &str) -> Switches {
        match &self.seen {
            Seen::Watched(cache) => {
                let found = cache.get(&Key::new("", namespace));
                found.map(|found| said(&found)).unwrap_or_default()
            }
            Seen::Asked(asked) => {
                let said = asked.said.lock();
                said.get(namespace).copied().unwrap_or_default()
            }
        }
    }

    /// Asks until told to stop, if nobody tells.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let Seen::Asked(asked) = self.seen else {
            return;
        };
        let asking = async {
            loop {
                asked.clock.sleep(OFTEN).await;
                asked.ask().await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = asking => {}
        }
    }
}

impl Asked {
    async fn ask(&self) {
        for namespace in &self.namespaces {
            // Whoever does not answer has said what it said before.
            let Ok(found) = self.api.get_metadata(namespace).await else {
                continue;
            };
            let now = Switches::of(found.annotations());
            let before = self.said.lock().insert(namespace.clone(), now);
            if before.unwrap_or_default() != now {
                (self.tell)(meant(&self.home, namespace), &self.trigger);
            }
        }
    }
}

/// What is said at home is meant for all.
fn meant<'a>(home: &str, namespace: &'a str) -> &'a str {
    if namespace == home { "" } else { namespace }
}

fn said(namespace: &Metadata<Namespace>) -> Switches {
    Switches::of(namespace.annotations())
}
