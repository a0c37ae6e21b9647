//! The ports that Services take on every node.

use std::collections::HashSet;

use serde_json::Value;

use super::{has_health_port, has_node_ports};
use crate::{
    kinds::fields::{each_mut, list, number, set, text},
    status::{ApiError, Problems},
};

/// The node ports of the ports of a Service, zero where there is none.
pub(super) fn of(spec: &Value) -> impl Iterator<Item = i64> {
    list(spec, "ports")
        .iter()
        .map(|port| number(port, "nodePort"))
}

/// Gives each port of the Service its node port, and the Service its health-check port. What it
/// `held` before stays its own, even if the range has changed since.
pub(super) fn allocate(
    spec: &mut Value,
    held: &Value,
    others: &[Value],
    range: (u16, u16),
    problems: &mut Problems,
) -> Result<(), ApiError> {
    let mut pool = Pool {
        range,
        taken: taken(others),
    };
    let asked: Vec<i64> = of(spec).collect();
    let held_ports: Vec<i64> = of(held).collect();
    for (index, &port) in asked.iter().enumerate() {
        if port != 0 && !held_ports.contains(&port) {
            pool.check(port, &format!("spec.ports[{index}].nodePort"), problems);
        }
    }
    let health = number(spec, "healthCheckNodePort");
    if health != 0 && health != number(held, "healthCheckNodePort") {
        pool.check(health, "spec.healthCheckNodePort", problems);
    }
    pool.taken.extend(asked);
    pool.taken.insert(health);
    if has_node_ports(spec) {
        give(spec, &mut pool)?;
    }
    if has_health_port(spec) && health == 0 {
        let port = pool.take()?;
        set(spec, "healthCheckNodePort", port);
    }
    Ok(())
}

/// Ports of different protocols with the same number share a node port.
fn give(spec: &mut Value, pool: &mut Pool) -> Result<(), ApiError> {
    let mut given: Vec<(i64, String, i64)> = Vec::new();
    for port in each_mut(spec, "ports") {
        let (number_, protocol) = (number(port, "port"), text(port, "protocol").to_owned());
        let mut node = number(port, "nodePort");
        if node == 0 {
            let shared = given
                .iter()
                .find(|(other, with, _)| *other == number_ && *with != protocol);
            node = match shared {
                Some(&(_, _, node)) => node,
                None => pool.take()?,
            };
            set(port, "nodePort", node);
        }
        given.push((number_, protocol, node));
    }
    Ok(())
}

fn taken(others: &[Value]) -> HashSet<i64> {
    let specs = others.iter().map(|other| &other["spec"]);
    specs
        .flat_map(|spec| of(spec).chain([number(spec, "healthCheckNodePort")]))
        .filter(|&port| port != 0)
        .collect()
}

struct Pool {
    range: (u16, u16),
    taken: HashSet<i64>,
}

impl Pool {
    fn check(&self, port: i64, path: &str, problems: &mut Problems) {
        let (first, last) = self.range;
        if !(i64::from(first)..=i64::from(last)).contains(&port) {
            let detail = format!(
                "provided port is not in the valid range. The range of valid ports is {first}-{last}"
            );
            problems.invalid(path, port, detail);
        } else if self.taken.contains(&port) {
            problems.invalid(path, port, "provided port is already allocated");
        }
    }

    /// The low ports are left for those who ask by number, as long as there are others.
    fn take(&mut self) -> Result<i64, ApiError> {
        let (first, last) = (i64::from(self.range.0), i64::from(self.range.1));
        let band = ((last - first + 1) / 32).clamp(16, 128);
        let mut ports = (first + band..=last).chain(first..=last.min(first + band - 1));
        let free = ports
            .find(|port| !self.taken.contains(port))
            .ok_or_else(|| ApiError::internal("failed to allocate a nodePort: range is full"))?;
        self.taken.insert(free);
        Ok(free)
    }
}
