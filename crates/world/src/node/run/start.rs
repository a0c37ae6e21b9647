//! Starts a container, and goes with it to its end.

use std::{fs, panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;
use k8s_openapi::api::core::v1::{Container, Pod};
use neap_kit::{event::Note, key::Key};

use super::{
    mount::{Parts, blocking, words},
    node::Node,
    probing::Probing,
};
use crate::node::{
    link::links,
    pod::Obstacle,
    process::{Log, Running, Started},
    recipe::{Kitchen, Recipe, recipe},
    source::Sources,
};

/// What stands for the exit code of whoever was killed.
const KILLED: i32 = 137;

impl Node {
    /// Starts a container, or notes why that is not possible.
    pub(super) async fn start(self: &Arc<Self>, key: &Key, name: &str, parts: &Parts) {
        let sources = &parts.sources;
        let Some(container) = container(&sources.pod, name) else {
            return;
        };
        // A process without company would be one whose end nobody notes. Only a node that has
        // ended takes none any more.
        let Ok(company) = self.lives.reserve().await else {
            return;
        };
        match self.launch(container, parts).await {
            Ok(Err(why)) => {
                self.locals.fail(key, container, &why, self.clock.now());
                let note = Note::warning("Failed", format!("Error: {why}"));
                self.recorder.tell(&sources.pod, &note).await;
            }
            Ok(Ok(started)) => {
                company.send(self.accompanied(key, container, sources, started));
                let note = Note::normal("Started", format!("Started container {name}"));
                self.recorder.tell(&sources.pod, &note).await;
            }
            Err(obstacle) => self.locals.obstruct(key, name, obstacle),
        }
    }

    /// What was started; or why its command cannot be; or what stands in the way.
    async fn launch(
        &self,
        container: &Container,
        parts: &Parts,
    ) -> Result<Result<Started, String>, Obstacle> {
        let sources = &parts.sources;
        let volumes = parts.places.as_ref().map_err(Clone::clone)?;
        let folder = self.folder(&sources.pod);
        let own = folder.join("containers").join(&container.name);
        let services = self.services.list("");
        let mut given = links(&sources.pod, services.iter().map(|service| &**service));
        given.extend(self.options.environment.clone());
        let kitchen = Kitchen {
            images: &self.options.images,
            rooms: self.options.rooms,
            given: &given,
            volumes,
            own_proc: self.options.own_proc,
            as_root: self.options.as_root,
            hosts: &folder.join("hosts"),
            host_name: &folder.join("hostname"),
            folder: &own,
        };
        let Recipe { launch, folders } = recipe(container, sources, &kitchen)?;
        let place = own.clone();
        let started = async {
            blocking(move || {
                folders.iter().try_for_each(fs::create_dir_all)?;
                fs::create_dir_all(&place)
            })
            .await?;
            self.starter.start(launch, &own, &Log::of(&own)).await
        };
        started.await.map_err(|error| Obstacle {
            reason: "RunContainerError",
            message: words(&error),
        })
    }

    /// Notes a process, and returns what sees to its probes, to what it prints and to its end.
    fn accompanied(
        self: &Arc<Self>,
        key: &Key,
        container: &Container,
        sources: &Sources,
        started: Started,
    ) -> futures::future::BoxFuture<'static, ()> {
        let name = container.name.clone();
        let running = started.running.clone();
        let turn = self
            .locals
            .begin(key, container, running.clone(), self.clock.now());
        let probing = self.probing(key, &sources.pod, container, turn, running);
        let (node, key, of) = (Arc::downgrade(self), key.clone(), name);
        Box::pin(async move {
            let (clock, running) = (probing.clock, started.running.clone());
            let life = async {
                tokio::select! {
                    code = started.live(clock) => code,
                    () = probing.run() => KILLED,
                }
            };
            let lived = contained(Box::pin(life)).await;
            // Nobody goes with it after a defect, so it was killed.
            running.over().await;
            let Some(node) = node.upgrade() else {
                return;
            };
            let code = lived.unwrap_or_else(|defect| {
                tracing::error!(pod = %key, container = of, defect, "what goes with a container met a defect");
                let words = format!("a defect of the node ended it: {defect}");
                node.locals.note(&key, &of, turn, |seen| seen.sick = Some(words));
                KILLED
            });
            node.locals.end(&key, &of, turn, code, clock.now());
            node.trigger.changed(key);
        })
    }
}

impl Node {
    /// Looks after a container while one of its processes runs.
    pub(super) fn probing(
        self: &Arc<Self>,
        key: &Key,
        pod: &Pod,
        container: &Container,
        turn: u64,
        running: Running,
    ) -> Probing {
        Probing {
            node: Arc::downgrade(self),
            key: key.clone(),
            pod: pod.clone(),
            container: container.clone(),
            turn,
            address: self.address(pod),
            running,
            folder: self.folder(pod).join("containers").join(&container.name),
            clock: self.clock,
        }
    }
}

/// What `life` comes to, or what it said when it panicked.
async fn contained<T>(life: impl Future<Output = T>) -> Result<T, String> {
    let lived = AssertUnwindSafe(life).catch_unwind().await;
    lived.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        text.unwrap_or_else(|| "it said nothing".to_owned())
    })
}

pub(super) fn container<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers);
    all.find(|container| container.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_defect_beside_a_container_is_told_and_not_lost() {
        assert_eq!(contained(async { 3 }).await, Ok(3));
        let defect = contained(async { panic!("no such {}", "thing") });
        let said: Result<(), String> = defect.await;
        assert_eq!(said, Err("no such thing".to_owned()));
    }
}
