//! Where controllers work: what each of them is given, and nothing else.

#[cfg(test)]
mod tests;

use std::{fmt, hash::Hash};

use k8s_openapi::NamespaceResourceScope;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use crate::{
    apply::{Hand, Object},
    clock::Clock,
    controller::{Controller, Options},
    event::Recorder,
    lease::Leadership,
    watch::{Cache, Ended, Selection, Watches},
};

/// An API to work on, the watches of this process, and the right to write. Cheap to copy.
#[derive(Clone)]
pub struct Site {
    /// For reads that no cache answers. Writes go through [`Self::hand`].
    pub client: Client,
    /// The caches that everybody shares.
    pub watches: Watches,
    /// Who may write.
    pub leadership: Leadership,
    /// The time.
    pub clock: Clock,
}

impl Site {
    /// A hand that writes as `manager`.
    pub fn hand(&self, manager: &str) -> Hand {
        let (client, leadership) = (self.client.clone(), self.leadership.clone());
        let process = self.watches.process();
        let hand = Hand::new(client, manager, leadership, self.clock)
            .counted_by(process.telemetry().clone());
        match process.witness() {
            Some(witness) => hand.witnessed_by(witness.clone()),
            None => hand,
        }
    }

    /// Tells of what `component` does.
    pub fn recorder(&self, component: &'static str) -> Recorder {
        Recorder::new(self.hand(component), component, self.clock)
    }

    /// A controller that begins nothing while another process leads, looks at nothing again before
    /// the watches show what it wrote, and whose queue can be seen in the state of this process.
    pub fn controller<K>(&self, options: Options) -> Controller<K>
    where
        K: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
    {
        let process = self.watches.process();
        let controller = Controller::new(options, self.clock)
            .led_by(self.leadership.clone())
            .counted_by(process.telemetry().clone())
            .reading(self.watches.clone());
        process.show(controller.view());
        controller
    }

    /// All objects of a kind.
    pub fn all<K>(&self) -> Result<Cache<K>, Ended>
    where
        K: Object + 'static,
    {
        let api = Api::all(self.client.clone());
        self.watches.of(api, Selection::default())
    }

    /// Objects of a kind, where this process looks: in all namespaces, or in those that its watches
    /// are for.
    pub fn here<K>(&self, selection: &Selection) -> Result<Cache<K>, Ended>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
        K: Clone + fmt::Debug + DeserializeOwned + Send + Sync + 'static,
    {
        let watches = &self.watches;
        if watches.namespaces().is_empty() {
            return watches.of(Api::all(self.client.clone()), selection.clone());
        }
        let parts = watches.namespaces().iter().map(|namespace| {
            let api = Api::namespaced(self.client.clone(), namespace);
            let part = watches.of(api, selection.clone())?;
            Ok((namespace.clone(), part))
        });
        watches.together(parts.collect::<Result<_, _>>()?)
    }
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site")
            .field("watches", &self.watches)
            .field("leadership", &self.leadership)
            .finish_non_exhaustive()
    }
}
