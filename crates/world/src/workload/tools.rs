//! What a controller writes and tells with.

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::{Error, Hand, Object},
    clock::Clock,
    event::{Note, Recorder},
    site::Site,
};

use super::reason;

/// The hand, the voice and the clock of one controller.
#[derive(Debug, Clone)]
pub(crate) struct Tools {
    pub(crate) hand: Hand,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
}

impl Tools {
    pub(crate) fn new(site: &Site, name: &'static str) -> Self {
        Self {
            hand: site.hand(name),
            recorder: site.recorder(name),
            clock: site.clock,
        }
    }

    /// The same, whose Events are of another component.
    pub(crate) fn speaking_as(mut self, site: &Site, component: &'static str) -> Self {
        self.recorder = site.recorder(component);
        self
    }

    pub(crate) async fn tell<K: Resource<DynamicType = ()>>(&self, about: &K, note: &Note) {
        self.recorder.tell(about, note).await;
    }

    /// Writes the status of what was `before`: once, and only if it says something new.
    pub(crate) async fn report<K: Object + PartialEq>(
        &self,
        before: &K,
        after: &K,
    ) -> Result<(), Error> {
        if before == after {
            return Ok(());
        }
        self.hand.replace_status(after).await.map(drop)
    }

    /// Makes pods for `owner`: one, then two more, then four. Where one cannot be made the others
    /// cannot either, and that is found out before all of them have asked. Says the version of the
    /// newest, unless all were there.
    pub(crate) async fn create_pods<K>(
        &self,
        owner: &K,
        pods: &[Pod],
    ) -> Result<Option<String>, Error>
    where
        K: Resource<DynamicType = ()>,
    {
        let (mut left, mut together, mut all) = (pods, 1, Vec::new());
        while !left.is_empty() && all.iter().all(Result::is_ok) {
            let (now, later) = left.split_at(together.min(left.len()));
            all.extend(join_all(now.iter().map(|pod| self.hand.create(pod))).await);
            (left, together) = (later, together * 2);
        }
        // Told last: whoever waits for the pods does not wait for the words.
        let (mut newest, mut failed) = (None, None);
        for made in all {
            match self.created(owner, made).await {
                Ok(version) => newest = version.or(newest),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(newest), Err)
    }

    /// Tells what came of a pod.
    async fn created<K>(
        &self,
        owner: &K,
        made: Result<Option<Pod>, Error>,
    ) -> Result<Option<String>, Error>
    where
        K: Resource<DynamicType = ()>,
    {
        let note = match &made {
            Ok(None) => return Ok(None),
            Ok(Some(pod)) => Note::normal(
                "SuccessfulCreate",
                format!("Created pod: {}", pod.name_any()),
            ),
            Err(error) => {
                Note::warning("FailedCreate", format!("Error creating: {}", reason(error)))
            }
        };
        self.tell(owner, &note).await;
        Ok(made?.and_then(|pod| pod.resource_version()))
    }

    pub(crate) async fn delete_pod<K>(&self, owner: &K, pod: &Pod) -> Result<(), Error>
    where
        K: Resource<DynamicType = ()>,
    {
        self.hand.remove(pod, None).await?;
        let message = format!("Deleted pod: {}", pod.name_any());
        self.tell(owner, &Note::normal("SuccessfulDelete", message))
            .await;
        Ok(())
    }
}
