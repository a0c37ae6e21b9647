//! What a client remembers about each host.

use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;

use super::{
    budget::{BudgetPolicy, RetryBudget},
    circuit::{Circuit, CircuitPolicy},
};
use crate::clock::{Clock, Uptime};

/// The number of hosts that are remembered. The names may come from objects that users write, so they
/// must not fill the memory.
const MAX_HOSTS: usize = 1024;

/// The circuits and retry budgets of the hosts that a client calls.
#[derive(Debug)]
pub(super) struct Hosts {
    clock: Clock,
    circuit: CircuitPolicy,
    budget: BudgetPolicy,
    states: Mutex<HashMap<String, HostState>>,
}

#[derive(Debug, Clone, Copy)]
struct HostState {
    circuit: Circuit,
    budget: RetryBudget,
    last_call: Uptime,
}

impl Hosts {
    pub(super) fn new(clock: Clock, circuit: CircuitPolicy, budget: BudgetPolicy) -> Self {
        Self {
            clock,
            circuit,
            budget,
            states: Mutex::default(),
        }
    }

    /// Counts a call in the budget of its host.
    pub(super) fn count_call(&self, host: &str) {
        let now = self.clock.uptime();
        self.with(host, |state| state.budget.deposit(&self.budget, now));
    }

    /// Takes a retry from the budget of the host, if one is left.
    pub(super) fn take_retry(&self, host: &str) -> bool {
        let now = self.clock.uptime();
        self.with(host, |state| state.budget.withdraw(&self.budget, now))
    }

    /// Permission to send a request; if the circuit is open, how long to wait.
    pub(super) fn admit<'a>(&'a self, host: &'a str) -> Result<Admission<'a>, Duration> {
        let now = self.clock.uptime();
        self.with(host, |state| state.circuit.admit(&self.circuit, now))?;
        Ok(Admission {
            hosts: self,
            host,
            ended: false,
        })
    }

    fn with<T>(&self, host: &str, act: impl FnOnce(&mut HostState) -> T) -> T {
        let now = self.clock.uptime();
        let mut states = self.states.lock();
        if states.len() >= MAX_HOSTS && !states.contains_key(host) {
            forget_oldest(&mut states);
        }
        let state = states.entry(host.to_owned()).or_insert_with(|| HostState {
            circuit: Circuit::CLOSED,
            budget: RetryBudget::new(&self.budget, now),
            last_call: now,
        });
        state.last_call = now;
        act(state)
    }
}

fn forget_oldest(states: &mut HashMap<String, HostState>) {
    let oldest = states.iter().min_by_key(|(_, state)| state.last_call);
    if let Some(host) = oldest.map(|(host, _)| host.clone()) {
        states.remove(&host);
    }
}

/// Permission to send one request. Dropped without a result, it counts as abandoned.
#[derive(Debug)]
pub(super) struct Admission<'a> {
    hosts: &'a Hosts,
    host: &'a str,
    ended: bool,
}

impl Admission<'_> {
    /// Ends it with the result of the request.
    pub(super) fn end(mut self, succeeded: bool) {
        self.ended = true;
        let now = self.hosts.clock.uptime();
        self.hosts.with(self.host, |state| {
            if succeeded {
                state.circuit.succeeded();
            } else {
                state.circuit.failed(&self.hosts.circuit, now);
            }
        });
    }
}

impl Drop for Admission<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let now = self.hosts.clock.uptime();
            self.hosts
                .with(self.host, |state| state.circuit.abandoned(now));
        }
    }
}
