//! Allocation of node ports, which Services have on every node.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
};

use serde_json::Value;

use super::{OtherServices, has_health_port, has_node_ports, is_on_nodes};
use crate::{
    kinds::fields::{each_mut, list, number, set, text},
    status::{ApiError, Problems},
};

/// The node ports of a Service, zero where a port has none.
pub(super) fn of(spec: &Value) -> impl Iterator<Item = i64> {
    list(spec, "ports")
        .iter()
        .map(|port| number(port, "nodePort"))
}

/// Gives each port of the Service its node port, and the Service its health-check port. The Service
/// keeps the ports it has, even if the range has changed since.
pub(super) fn allocate(
    spec: &mut Value,
    old: Option<&Value>,
    neighbours: &OtherServices<'_>,
    problems: &mut Problems,
) -> Result<(), ApiError> {
    let asked = of(spec).filter(|&port| port != 0);
    let mut pool = NodePortPool::new(neighbours, asked.collect());
    if is_on_nodes(spec) {
        match old {
            None => give_all(spec, &mut pool, problems)?,
            Some(old) => give_more(spec, old, &mut pool, problems)?,
        }
    }
    let held = old.is_some_and(has_health_port);
    if problems.is_empty() && !held && has_health_port(spec) {
        give_health(spec, &mut pool)?;
    }
    Ok(())
}

/// Allocates for a new Service. Ports of different protocols with the same number share a node
/// port.
fn give_all(
    spec: &mut Value,
    pool: &mut NodePortPool<'_>,
    problems: &mut Problems,
) -> Result<(), ApiError> {
    let draws = has_node_ports(spec);
    let asked: Vec<(i64, i64)> = list(spec, "ports")
        .iter()
        .map(|port| (number(port, "port"), number(port, "nodePort")))
        .collect();
    // The first node port that is requested for each number.
    let named = asked.iter().rev().filter(|(_, node)| *node != 0);
    let named: HashMap<i64, i64> = named.copied().collect();
    let mut given: HashMap<i64, i64> = HashMap::new();
    for (index, port) in each_mut(spec, "ports").enumerate() {
        let (service, node) = asked[index];
        if node == 0 && !draws {
            continue;
        }
        let shared = given.get(&service).copied();
        let wanted = match shared {
            Some(shared) if node == 0 || node == shared => {
                set(port, "nodePort", shared);
                continue;
            }
            Some(_) => node,
            // A later port of the same number may request one.
            None => named.get(&service).copied().unwrap_or_default(),
        };
        let node = pool.hand_out(index, wanted, problems)?;
        if !problems.is_empty() {
            return Ok(());
        }
        if shared.is_none() {
            set(port, "nodePort", node);
            given.insert(service, node);
        }
    }
    Ok(())
}

/// Allocates for a changed Service: it keeps its ports, and new ones are not shared.
fn give_more(
    spec: &mut Value,
    old: &Value,
    pool: &mut NodePortPool<'_>,
    problems: &mut Problems,
) -> Result<(), ApiError> {
    let draws = has_node_ports(spec);
    let held: HashSet<i64> = of(old).collect();
    let mut seen: HashSet<(String, i64)> = HashSet::new();
    for (index, port) in each_mut(spec, "ports").enumerate() {
        let asked = number(port, "nodePort");
        if asked == 0 && !draws {
            continue;
        }
        let own = asked != 0 && (held.contains(&asked) || pool.given.contains(&asked));
        if !own {
            let node = pool.hand_out(index, asked, problems)?;
            if !problems.is_empty() {
                return Ok(());
            }
            set(port, "nodePort", node);
        }
        let mine = (text(port, "protocol").to_owned(), number(port, "nodePort"));
        if seen.contains(&mine) {
            let (protocol, node) = mine;
            return Err(ApiError::failure(format!(
                "duplicate nodePort: {{{protocol} {node}}}"
            )));
        }
        seen.insert(mine);
    }
    Ok(())
}

fn give_health(spec: &mut Value, pool: &mut NodePortPool<'_>) -> Result<(), ApiError> {
    let port = match number(spec, "healthCheckNodePort") {
        0 => pool.draw().map_err(|why| {
            ApiError::internal(format!(
                "failed to allocate a HealthCheck NodePort 0: {why}"
            ))
        })?,
        asked => pool.take(asked).map_err(|why| {
            ApiError::internal(format!(
                "failed to allocate requested HealthCheck NodePort {asked}: {why}"
            ))
        })?,
    };
    set(spec, "healthCheckNodePort", port);
    Ok(())
}

/// The free ports, and those allocated to this write.
struct NodePortPool<'a> {
    neighbours: &'a OtherServices<'a>,
    taken: OnceCell<HashSet<i64>>,
    /// Explicitly requested, so not drawn for another port.
    asked: HashSet<i64>,
    given: HashSet<i64>,
    /// Steps of the search for a free port that found none: they need not be repeated.
    searched: i64,
    /// The highest port that a dry run has drawn.
    highest: i64,
}

impl<'a> NodePortPool<'a> {
    fn new(neighbours: &'a OtherServices<'a>, asked: HashSet<i64>) -> Self {
        Self {
            neighbours,
            taken: OnceCell::new(),
            asked,
            given: HashSet::new(),
            searched: 0,
            highest: 0,
        }
    }

    /// A node port for the port at `index`: the requested one, or any.
    fn hand_out(
        &mut self,
        index: usize,
        asked: i64,
        problems: &mut Problems,
    ) -> Result<i64, ApiError> {
        if asked == 0 {
            return self.draw().map_err(|why| {
                ApiError::internal(format!("failed to allocate a nodePort: {why}"))
            });
        }
        self.take(asked).or_else(|why| {
            let path = format!("spec.ports[{index}].nodePort");
            problems.invalid(path, asked, why);
            Ok(asked)
        })
    }

    /// Takes a port. A dry run ignores the range.
    fn take(&mut self, port: i64) -> Result<i64, String> {
        let (first, last) = self.neighbours.cluster.settings().node_ports;
        let is_dry_run = self.neighbours.cluster.is_dry_run();
        if !is_dry_run && !(i64::from(first)..=i64::from(last)).contains(&port) {
            return Err(format!(
                "provided port is not in the valid range. The range of valid ports is {first}-{last}"
            ));
        }
        if self.given.contains(&port) || self.taken().contains(&port) {
            return Err("provided port is already allocated".to_owned());
        }
        self.given.insert(port);
        self.highest = self.highest.max(port);
        Ok(port)
    }

    /// Draws a free port. The low ports are left for explicit requests, as long as there are
    /// others. A dry run draws a port that no Service has.
    fn draw(&mut self) -> Result<i64, String> {
        let settings = self.neighbours.cluster.settings();
        let (first, last) = (
            i64::from(settings.node_ports.0),
            i64::from(settings.node_ports.1),
        );
        if self.neighbours.cluster.is_dry_run() {
            let port = self.highest.max(last + 1) + 1;
            self.highest = port;
            self.given.insert(port);
            return Ok(port);
        }
        let band = ((last - first + 1) / 32).clamp(16, 128);
        let high = last - first - band + 1;
        let start = (self.neighbours.start as i64).checked_rem(high);
        let start = start.unwrap_or_default();
        let low = first..=last.min(first + band - 1);
        let ports = (0..high)
            .map(|step| first + band + (start + step) % high)
            .chain(low);
        let free = |port: i64| {
            let own = self.given.contains(&port) || self.asked.contains(&port);
            !own && !self.taken().contains(&port)
        };
        // Ports that are not free stay so during this write.
        let passed = usize::try_from(self.searched).unwrap_or_default();
        let mut ports = (0..).zip(ports).skip(passed);
        let found = ports.find(|(_, port)| free(*port));
        let (step, free) = found.ok_or_else(|| "range is full".to_owned())?;
        self.searched = step + 1;
        self.given.insert(free);
        Ok(free)
    }

    /// The ports of other Services. Ports in a spec whose type uses none are free.
    fn taken(&self) -> &HashSet<i64> {
        self.taken.get_or_init(|| {
            let others = self.neighbours.all();
            let specs = others.iter().map(|other| &other["spec"]);
            let on_nodes = specs.filter(|spec| is_on_nodes(spec));
            on_nodes
                .flat_map(|spec| of(spec).chain([number(spec, "healthCheckNodePort")]))
                .filter(|&port| port != 0)
                .collect()
        })
    }
}
