//! What a controller writes and tells with.

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::{Error, Hand, Object},
    clock::Clock,
    event::{Note, Recorder},
    key::Key,
    planted,
    site::Site,
};

use super::{Made, reason};

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

    /// Asks the server whether `owner` is still there and to stay, if something is about to be made
    /// or taken in for it: a cache that is behind shows owners that are gone, and what is made for
    /// those is collected and made again without end.
    pub(crate) async fn confirm<K: Object>(&self, owner: &K, makes: bool) -> Result<(), Error> {
        if makes {
            self.hand.confirm(owner).await?;
        }
        Ok(())
    }

    /// The same for an owner whose status says what is to be made: if it has changed since it was
    /// read, be it by our own write that the watch has not shown yet, there is another look first.
    pub(crate) async fn confirm_unchanged<K>(&self, owner: &K, makes: bool) -> Result<(), Error>
    where
        K: Object,
    {
        if makes && self.hand.confirm(owner).await?.resource_version != owner.resource_version() {
            return Err(Error::Replaced(Key::of(owner)));
        }
        Ok(())
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
        let said = self.hand.replace_status(after).await.map(drop);
        planted!(SaidOrNot => return Ok(()));
        said
    }

    /// Makes pods for `owner`: one, then two more, then four. Where one cannot be made the others
    /// cannot either, and that is found out before all of them have asked.
    pub(crate) async fn create_pods<K>(&self, owner: &K, pods: &[Pod]) -> Result<Made, Error>
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
        let (mut sum, mut failed) = (Made::default(), None);
        for (made, pod) in all.into_iter().zip(pods) {
            planted!(RefusalToldWhole => if made.is_err() {
                let message = format!("Error creating: {:?}", pod.spec);
                self.tell(owner, &Note::warning("FailedCreate", message)).await;
            });
            match self.created(owner, made).await {
                Ok(made) => sum.add(pod, made.as_ref()),
                Err(_) if planted!(MadeOrNot) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(sum), Err)
    }

    /// Tells what came of a pod.
    async fn created<K>(
        &self,
        owner: &K,
        made: Result<Option<Pod>, Error>,
    ) -> Result<Option<Pod>, Error>
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
                planted!(RefusalPanics => unreachable!("no create is ever refused"));
                Note::warning("FailedCreate", format!("Error creating: {}", reason(error)))
            }
        };
        self.tell(owner, &note).await;
        made
    }

    pub(crate) async fn delete_pod<K>(&self, owner: &K, pod: &Pod) -> Result<(), Error>
    where
        K: Resource<DynamicType = ()>,
    {
        let ended = self.hand.remove(pod, None).await;
        planted!(EndedOrNot => return Ok(()));
        ended?;
        let message = format!("Deleted pod: {}", pod.name_any());
        self.tell(owner, &Note::normal("SuccessfulDelete", message))
            .await;
        Ok(())
    }
}
