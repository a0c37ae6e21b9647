//! What is played while faults strike.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use neap_kit::{clock::Clock, context::Context, manager::Component, watch::WatchesStopped};
use serde_json::Value;

use crate::{
    actor::Actor,
    external::{ExternalClient, ExternalService, ExternalSystem, SimulatedSystem},
    generate,
    node::Node,
    plan::Rule,
};

/// Opens a system for one run.
pub(crate) type OpenService = Arc<dyn Fn(Clock) -> ExternalService + Send + Sync>;

/// The processes under test, the simulated node, and the requests of users, step by step.
#[derive(Clone)]
pub struct Workload {
    /// Its name in plans.
    pub name: &'static str,
    pub(crate) actors: Vec<Actor>,
    pub(crate) node: Option<Node>,
    /// Requests that are sent before anything starts.
    pub(crate) initial_requests: Vec<UserRequest>,
    /// Creates the external system.
    pub(crate) system: Arc<dyn Fn() -> Box<dyn ExternalSystem> + Send + Sync>,
    /// The systems that processes call over HTTP, by their hosts.
    pub(crate) services: Vec<(&'static str, OpenService)>,
    /// Each step waits until the one before has come to rest.
    pub steps: Vec<Step>,
    /// Why there can be no poisoned objects next to it, if so.
    unpoisoned: Option<&'static str>,
    pub(crate) differences: Vec<PermittedDifference>,
    /// Why its runs cannot be compared, if so.
    pub(crate) incomparable: Option<&'static str>,
}

/// A field whose value is another in every run, with the reason.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PermittedDifference {
    pub(crate) kind: &'static str,
    pub(crate) pointer: &'static str,
    /// The field inside the JSON that the value is the text of.
    pub(crate) inside: Option<&'static str>,
    #[expect(dead_code, reason = "the reason is documentation")]
    why: &'static str,
}

#[cfg(test)]
impl PermittedDifference {
    pub(crate) fn inside(kind: &'static str, pointer: &'static str, inside: &'static str) -> Self {
        Self {
            kind,
            pointer,
            inside: Some(inside),
            why: "a test",
        }
    }
}

/// A step of a workload.
#[derive(Debug, Clone)]
pub struct Step {
    pub name: Cow<'static, str>,
    /// Sent one after another, without waiting for rest.
    pub requests: Vec<UserRequest>,
    /// The step lasts at least until this time of the run: a controller that waits for the clock is
    /// at rest before that.
    pub until: Option<Duration>,
}

/// A request of a user.
#[derive(Debug, Clone)]
pub enum UserRequest {
    /// Creates the object.
    Create(Value),
    /// Merges the patch into the object at this path, such as
    /// `/apis/apps/v1/namespaces/default/deployments/web`.
    Patch(&'static str, Value),
    /// Deletes the object at this path.
    Delete(&'static str),
}

impl Workload {
    /// A workload without processes and steps.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            actors: Vec::new(),
            node: None,
            initial_requests: Vec::new(),
            system: Arc::new(|| Box::new(SimulatedSystem::default())),
            services: Vec::new(),
            steps: Vec::new(),
            unpoisoned: None,
            differences: Vec::new(),
            incomparable: None,
        }
    }

    /// Permits the value of a field to differ from that of a run without faults, and says why: a hash of
    /// uids is one. That the field is there is compared.
    pub fn differs(mut self, kind: &'static str, pointer: &'static str, why: &'static str) -> Self {
        self.differences.push(PermittedDifference {
            kind,
            pointer,
            inside: None,
            why,
        });
        self
    }

    /// Permits the value of one field to differ in a value that is the text of a JSON document. The others are
    /// compared.
    pub fn differs_inside(
        mut self,
        kind: &'static str,
        pointer: &'static str,
        inside: &'static str,
        why: &'static str,
    ) -> Self {
        self.differences.push(PermittedDifference {
            kind,
            pointer,
            inside: Some(inside),
            why,
        });
        self
    }

    /// Judges its runs without comparing them with one without faults, and says why: objects that are named after
    /// the time have other names in every run. What its systems judge, and everything else that needs no
    /// comparison, still counts.
    pub fn judged_alone(mut self, why: &'static str) -> Self {
        self.incomparable = Some(why);
        self
    }

    /// Declares that there can be no poisoned objects next to it, and why: a controller that treats
    /// all namespaces as one sees them too.
    pub fn without_poison(mut self, why: &'static str) -> Self {
        self.unpoisoned = Some(why);
        self
    }

    /// The faults for poisoned objects next to it.
    pub fn poison(&self) -> Vec<Rule> {
        match self.unpoisoned {
            Some(_) => Vec::new(),
            None => generate::poison(),
        }
    }

    /// Adds a process that runs these components, without leader election.
    pub fn actor(
        self,
        name: &'static str,
        components: impl Fn(&Context) -> Result<Vec<Component>, WatchesStopped> + Send + Sync + 'static,
    ) -> Self {
        self.process(name, None, move |context, _| components(context))
    }

    /// Adds a process that works while it holds the Lease of that name.
    pub fn elected(
        self,
        name: &'static str,
        lease: &'static str,
        components: impl Fn(&Context) -> Result<Vec<Component>, WatchesStopped> + Send + Sync + 'static,
    ) -> Self {
        self.process(name, Some(lease), move |context, _| components(context))
    }

    /// Adds a process that calls external systems; with a Lease's name it takes part in that
    /// election.
    pub fn process(
        mut self,
        name: &'static str,
        elected: Option<&'static str>,
        components: impl Fn(&Context, &ExternalClient) -> Result<Vec<Component>, WatchesStopped>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.actors.push(Actor {
            name,
            components: Arc::new(components),
            elected,
        });
        self
    }

    /// Replaces the default external system, which knows every key and every fence.
    pub fn system<S: ExternalSystem + 'static>(
        mut self,
        system: impl Fn() -> S + Send + Sync + 'static,
    ) -> Self {
        self.system = Arc::new(move || Box::new(system()));
        self
    }

    /// Adds a system that processes call over HTTP, under its host name. Each run opens its own; it
    /// outlives the crashes of the processes. They reach it through
    /// [`ExternalClient::transport`], which is where faults strike.
    pub fn service(
        mut self,
        host: &'static str,
        open: impl Fn(Clock) -> ExternalService + Send + Sync + 'static,
    ) -> Self {
        self.services.push((host, Arc::new(open)));
        self
    }

    /// Adds a simulated node.
    pub fn node(mut self, node: Node) -> Self {
        self.node = Some(node);
        self
    }

    /// Adds a request that is sent before anything starts.
    pub fn given(mut self, request: UserRequest) -> Self {
        self.initial_requests.push(request);
        self
    }

    /// Adds a step, which starts once the one before has come to rest.
    pub fn step(mut self, name: &'static str, requests: impl Into<Vec<UserRequest>>) -> Self {
        let requests = requests.into();
        let until = None;
        let name = Cow::Borrowed(name);
        self.steps.push(Step {
            name,
            requests,
            until,
        });
        self
    }

    /// Extends the last step at least until this time of the run. Whatever delays the steps before,
    /// what is due at a time of day happens in the same step.
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
