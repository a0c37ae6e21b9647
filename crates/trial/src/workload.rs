//! What is done while faults strike.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use neap_kit::{manager::Service, site::Site, watch::Ended};
use serde_json::Value;

use crate::{
    actor::Actor,
    generate,
    node::Node,
    outside::{Keeper, Outside, System},
    plan::Rule,
};

/// The processes under trial, the node that plays along, and what users do, step by step.
#[derive(Clone)]
pub struct Workload {
    /// How plans call it.
    pub name: &'static str,
    pub(crate) actors: Vec<Actor>,
    pub(crate) node: Option<Node>,
    /// What is there before anything begins.
    pub(crate) setting: Vec<Deed>,
    /// Who is outside.
    pub(crate) system: Arc<dyn Fn() -> Box<dyn System> + Send + Sync>,
    /// What users do. Each step waits until the one before has come to rest.
    pub steps: Vec<Step>,
    /// Why there can be no poisoned objects beside it, if so.
    unpoisoned: Option<&'static str>,
}

/// Something that users do.
#[derive(Debug, Clone)]
pub struct Step {
    /// In their words.
    pub name: Cow<'static, str>,
    /// One after another, without waiting.
    pub deeds: Vec<Deed>,
    /// It goes on until this time of the run at least: what waits for the clock is at rest before.
    pub until: Option<Duration>,
}

/// One request of a user.
#[derive(Debug, Clone)]
pub enum Deed {
    /// Makes the object.
    Create(Value),
    /// Merges the patch into the object at this path, such as
    /// `/apis/apps/v1/namespaces/default/deployments/web`.
    Patch(&'static str, Value),
    /// Deletes the object at this path.
    Delete(&'static str),
}

impl Workload {
    /// A workload of nobody and nothing.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            actors: Vec::new(),
            node: None,
            setting: Vec::new(),
            system: Arc::new(|| Box::new(Keeper::default())),
            steps: Vec::new(),
            unpoisoned: None,
        }
    }

    /// There can be no poisoned objects beside it, and why: those who look at all namespaces as one
    /// see theirs too.
    pub fn without_poison(mut self, why: &'static str) -> Self {
        self.unpoisoned = Some(why);
        self
    }

    /// What can happen to poisoned objects beside it.
    pub fn poison(&self) -> Vec<Rule> {
        match self.unpoisoned {
            Some(_) => Vec::new(),
            None => generate::poison(),
        }
    }

    /// Adds a process in which these services run, alone.
    pub fn actor(
        self,
        name: &'static str,
        services: impl Fn(&Site) -> Result<Vec<Service>, Ended> + Send + Sync + 'static,
    ) -> Self {
        self.process(name, None, move |site, _| services(site))
    }

    /// Adds a process that works while it holds the Lease of that name.
    pub fn elected(
        self,
        name: &'static str,
        lease: &'static str,
        services: impl Fn(&Site) -> Result<Vec<Service>, Ended> + Send + Sync + 'static,
    ) -> Self {
        self.process(name, Some(lease), move |site, _| services(site))
    }

    /// Adds a process that asks systems outside; one that stands for a Lease if that is named.
    pub fn process(
        mut self,
        name: &'static str,
        elected: Option<&'static str>,
        services: impl Fn(&Site, &Outside) -> Result<Vec<Service>, Ended> + Send + Sync + 'static,
    ) -> Self {
        self.actors.push(Actor {
            name,
            services: Arc::new(services),
            elected,
        });
        self
    }

    /// Puts another system outside than one that knows every key and every fence.
    pub fn system<S: System + 'static>(
        mut self,
        system: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        self.system = Arc::new(move || Box::new(system()));
        self
    }

    /// Adds a node that plays along.
    pub fn node(mut self, node: Node) -> Self {
        self.node = Some(node);
        self
    }

    /// Something that is there before anything begins.
    pub fn given(mut self, deed: Deed) -> Self {
        self.setting.push(deed);
        self
    }

    /// Something that users do once all before has come to rest.
    pub fn step(mut self, name: &'static str, deeds: impl Into<Vec<Deed>>) -> Self {
        let deeds = deeds.into();
        let until = None;
        let name = Cow::Borrowed(name);
        self.steps.push(Step { name, deeds, until });
        self
    }

    /// The last step goes on until this time of the run at least. Whatever delays the steps before,
    /// what comes at a time of day comes in the same step.
    pub fn until(mut self, moment: Duration) -> Self {
        if let Some(step) = self.steps.last_mut() {
            step.until = Some(moment);
        }
        self
    }
}

impl fmt::Debug for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workload")
            .field("name", &self.name)
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}
