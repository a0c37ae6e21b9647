//! What a controller writes and tells with.

use kube::{Resource, ResourceExt};

use crate::{
    apply::{Error, Hand, Object},
    clock::Clock,
    event::{Note, Recorder},
    key::Key,
    planted,
    site::Site,
};

/// The hand, the voice and the clock of one controller.
#[derive(Debug, Clone)]
pub struct Tools {
    /// Writes.
    pub hand: Hand,
    /// Tells.
    pub recorder: Recorder,
    /// The time.
    pub clock: Clock,
}

impl Tools {
    /// Those of the controller `name`.
    pub fn new(site: &Site, name: &'static str) -> Self {
        Self {
            hand: site.hand(name),
            recorder: site.recorder(name),
            clock: site.clock,
        }
    }

    /// The same, whose Events are of another component.
    pub fn speaking_as(mut self, site: &Site, component: &'static str) -> Self {
        self.recorder = site.recorder(component);
        self
    }

    /// Says `note` of `about`.
    pub async fn tell<K: Resource<DynamicType = ()>>(&self, about: &K, note: &Note) {
        self.recorder.tell(about, note).await;
    }

    /// Asks the server whether `owner` is still there and to stay, if something is about to be made
    /// or taken in for it: a cache that is behind shows owners that are gone, and what is made for
    /// those is collected and made again without end.
    pub async fn confirm<K: Object>(&self, owner: &K, makes: bool) -> Result<(), Error> {
        if makes {
            self.hand.confirm(owner).await?;
        }
        Ok(())
    }

    /// The same for an owner whose status says what is to be made: if it has changed since it was
    /// read, be it by our own write that the watch has not shown yet, there is another look first.
    pub async fn confirm_unchanged<K>(&self, owner: &K, makes: bool) -> Result<(), Error>
    where
        K: Object,
    {
        if makes && self.hand.confirm(owner).await?.resource_version != owner.resource_version() {
            return Err(Error::Replaced(Key::of(owner)));
        }
        Ok(())
    }

    /// Writes the status of what was `before`: once, and only if it says something new.
    pub async fn report<K: Object + PartialEq>(&self, before: &K, after: &K) -> Result<(), Error> {
        if before == after {
            return Ok(());
        }
        let said = self.hand.replace_status(after).await.map(drop);
        planted!(SaidOrNot => return Ok(()));
        said
    }
}
