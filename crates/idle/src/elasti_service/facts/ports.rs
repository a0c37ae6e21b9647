//! Allots resolver ports to the ports of Services.
//!
//! A data plane that lags still sends connections of the former Service to a port. So a port that was freed
//! is not allotted again for a while.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use jiff::{SignedDuration, Timestamp};

use crate::api::ResolverPort;

/// How long a freed port is not allotted again.
pub(super) const QUARANTINE: Duration = Duration::from_mins(10);

/// The ports that may be allotted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl PortRange {
    /// Whether `port` is in the range.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// Ports that the system assigns to no other program, and that are not node ports.
impl Default for PortRange {
    fn default() -> Self {
        let (first, last) = (20_000, 29_999);
        Self { first, last }
    }
}

/// The text is not a range of ports.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a range of ports such as 20000-29999")]
pub struct InvalidPortRange(String);

impl FromStr for PortRange {
    type Err = InvalidPortRange;

    fn from_str(text: &str) -> Result<Self, InvalidPortRange> {
        let (first, last) = text.split_once('-').unwrap_or_default();
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if 0 < first && first <= last => Ok(Self { first, last }),
            _ => Err(InvalidPortRange(text.to_owned())),
        }
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// An ElastiService that has a port. The older one has precedence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PortHolder {
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Its uid, which decides between two of the same age.
    pub uid: String,
}

/// The state of all ports.
pub(super) struct PortLedger<'a> {
    /// The ports that may be allotted.
    pub range: PortRange,
    /// The oldest of the other ElastiServices that have a port.
    pub held: &'a dyn Fn(i32) -> Option<PortHolder>,
    /// When ports were freed.
    pub freed: &'a BTreeMap<i32, Timestamp>,
    /// The time.
    pub now: Timestamp,
}

/// The ports that an ElastiService may have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GrantedPorts {
    /// Its ports, in the order of the Service.
    pub ports: Vec<ResolverPort>,
    /// The ports that it had and no other ElastiService has.
    pub freed: Vec<i32>,
}

/// No port is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no port is free in {0}; widen ELASTI_RESOLVER_PORT_RANGE or delete ElastiServices")]
pub struct PortsExhausted(pub PortRange);

/// Allots to `us` a port for each of the `wanted` names and numbers of `service`. A `recorded` port stays,
/// unless an older ElastiService has the same, or it stood in for another Service: connections that still
/// arrive there are meant for that one.
pub(super) fn grant(
    book: &PortLedger<'_>,
    us: &PortHolder,
    service: &str,
    recorded: &[ResolverPort],
    wanted: &[(String, i32)],
) -> Result<GrantedPorts, PortsExhausted> {
    let older_has = |port: i32| (book.held)(port).is_some_and(|other| other < *us);
    let mine = |port: &&ResolverPort| !older_has(port.resolver_port);
    let mut ports: Vec<ResolverPort> = Vec::new();
    for (name, port) in wanted {
        let given = |resolver: i32| ports.iter().any(|other| other.resolver_port == resolver);
        let mut kept = recorded.iter().filter(mine);
        let kept = kept.find(|it| it.port == *port && it.is_of(service));
        let kept = kept.map(|kept| kept.resolver_port);
        let resolver_port = match kept.filter(|resolver| !given(*resolver)) {
            Some(kept) => kept,
            None => book
                .free()
                .find(|free| !given(*free) && !recorded.iter().any(|it| it.resolver_port == *free))
                .ok_or(PortsExhausted(book.range))?,
        };
        ports.push(ResolverPort {
            name: name.clone(),
            port: *port,
            resolver_port,
            service: Some(service.to_owned()),
        });
    }
    let had = recorded.iter().filter(mine).map(|port| port.resolver_port);
    let gone = |port: &i32| !ports.iter().any(|kept| kept.resolver_port == *port);
    let freed = had.filter(gone).collect();
    Ok(GrantedPorts { ports, freed })
}

impl PortLedger<'_> {
    fn free(&self) -> impl Iterator<Item = i32> {
        let all = i32::from(self.range.first)..=i32::from(self.range.last);
        all.filter(|port| (self.held)(*port).is_none() && !self.is_quarantined(*port))
    }

    fn is_quarantined(&self, port: i32) -> bool {
        let freed = self.freed.get(&port);
        freed.is_some_and(|freed| is_recent(*freed, self.now))
    }
}

impl fmt::Debug for PortLedger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Book")
            .field("range", &self.range)
            .field("freed", &self.freed)
            .finish_non_exhaustive()
    }
}

/// Parses the recorded freed ports.
pub(super) fn parse_freed(data: &BTreeMap<String, String>) -> BTreeMap<i32, Timestamp> {
    let known = data.iter().filter_map(|(port, freed)| {
        let (port, freed) = (port.parse().ok()?, freed.parse().ok()?);
        Some((port, freed))
    });
    known.collect()
}

/// The data to record once `ports` are freed, without those whose quarantine is over.
pub(in crate::elasti_service) fn freed_data(
    freed: &BTreeMap<i32, Timestamp>,
    ports: &[i32],
    now: Timestamp,
) -> BTreeMap<String, String> {
    let quarantined = freed.iter().filter(|(_, freed)| is_recent(**freed, now));
    let quarantined = quarantined.map(|(port, freed)| (*port, *freed));
    let new = ports.iter().map(|port| (*port, now));
    let all = quarantined.chain(new);
    all.map(|(port, freed)| (port.to_string(), freed.to_string()))
        .collect()
}

fn is_recent(freed: Timestamp, now: Timestamp) -> bool {
    let quarantine = SignedDuration::try_from(QUARANTINE).unwrap_or(SignedDuration::MAX);
    now.duration_since(freed) < quarantine
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn holder(age: i64, uid: &str) -> PortHolder {
        PortHolder {
            created: Some(at(age)),
            uid: uid.to_owned(),
        }
    }

    fn port(port: i32, resolver_port: i32) -> ResolverPort {
        ResolverPort {
            name: String::new(),
            port,
            resolver_port,
            service: Some("web".to_owned()),
        }
    }

    fn wanted(ports: &[i32]) -> Vec<(String, i32)> {
        ports.iter().map(|port| (String::new(), *port)).collect()
    }

    fn try_grant(
        held: &BTreeMap<i32, PortHolder>,
        freed: &BTreeMap<i32, Timestamp>,
        recorded: &[ResolverPort],
        ports: &[i32],
    ) -> Result<GrantedPorts, PortsExhausted> {
        let held = |port: i32| held.get(&port).cloned();
        let book = PortLedger {
            range: PortRange {
                first: 100,
                last: 103,
            },
            held: &held,
            freed,
            now: at(1000),
        };
        grant(&book, &holder(50, "us"), "web", recorded, &wanted(ports))
    }

    #[test]
    fn ports_are_kept_given_and_freed() {
        let (elder, younger) = (holder(1, "a"), holder(99, "b"));
        let none = BTreeMap::new();
        let unheld = BTreeMap::new();
        let resting = BTreeMap::from([(100, at(1000 - 599)), (101, at(1000 - 600))]);
        let granted = |ports: &[ResolverPort], freed: &[i32]| {
            Ok(GrantedPorts {
                ports: ports.to_vec(),
                freed: freed.to_vec(),
            })
        };
        // Ports are allotted in order, and a recorded one stays.
        assert_eq!(
            try_grant(&unheld, &none, &[], &[80, 443]),
            granted(&[port(80, 100), port(443, 101)], &[])
        );
        assert_eq!(
            try_grant(&unheld, &none, &[port(443, 103)], &[80, 443]),
            granted(&[port(80, 100), port(443, 103)], &[])
        );
        // A port that is no longer wanted is freed, and is not allotted again for ten minutes.
        assert_eq!(
            try_grant(&unheld, &none, &[port(80, 100), port(81, 102)], &[81]),
            granted(&[port(81, 102)], &[100])
        );
        assert_eq!(
            try_grant(&unheld, &resting, &[], &[80]),
            granted(&[port(80, 101)], &[])
        );
        // A port of another Service is freed, and one that is recorded without a Service is ours.
        let of = |service: Option<&str>| ResolverPort {
            service: service.map(str::to_owned),
            ..port(80, 100)
        };
        assert_eq!(
            try_grant(&unheld, &none, &[of(Some("shop"))], &[80]),
            granted(&[port(80, 101)], &[100])
        );
        assert_eq!(
            try_grant(&unheld, &none, &[of(None)], &[80]),
            granted(&[port(80, 100)], &[])
        );
        // The younger one gives way, and does not free a port of the older one.
        let held = BTreeMap::from([(100, elder.clone())]);
        assert_eq!(
            try_grant(&held, &none, &[port(80, 100)], &[80]),
            granted(&[port(80, 101)], &[])
        );
        let held = BTreeMap::from([(100, younger)]);
        assert_eq!(
            try_grant(&held, &none, &[port(80, 100)], &[80]),
            granted(&[port(80, 100)], &[])
        );
        let held = (100..=103).map(|port| (port, elder.clone())).collect();
        let full = try_grant(&held, &none, &[], &[80]);
        let message = full.unwrap_err().to_string();
        assert!(
            message.starts_with("no port is free in 100-103"),
            "{message}"
        );
    }

    #[test]
    fn a_range_is_two_ports() {
        assert_eq!("20000-29999".parse(), Ok(PortRange::default()));
        for wrong in ["", "1", "9-1", "0-5", "1-70000", "a-b"] {
            assert!(wrong.parse::<PortRange>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn freed_ports_are_recorded_until_their_quarantine_is_over() {
        let before = BTreeMap::from([(1, at(0)), (2, at(700))]);
        let data = freed_data(&before, &[3], at(1000));
        assert_eq!(
            parse_freed(&data),
            BTreeMap::from([(2, at(700)), (3, at(1000))])
        );
        let odd = BTreeMap::from([("x".to_owned(), "y".to_owned())]);
        assert!(parse_freed(&odd).is_empty());
    }

    proptest! {
        #[test]
        fn no_port_is_allotted_that_another_has_or_had_just_now(
            held in proptest::collection::btree_map(100..104_i32, 0..100_i64, 0..4),
            freed in proptest::collection::btree_map(100..104_i32, 0..1000_i64, 0..4),
            recorded in proptest::collection::vec((80..84_i32, 100..104_i32), 0..4),
            ports in proptest::collection::btree_set(80..84_i32, 0..4),
        ) {
            let held: BTreeMap<_, _> = held.into_iter().map(|(port, age)| (port, holder(age, "other"))).collect();
            let freed: BTreeMap<_, _> = freed.into_iter().map(|(port, when)| (port, at(when))).collect();
            let recorded: Vec<_> = recorded.into_iter().map(|(one, other)| port(one, other)).collect();
            let ports: Vec<_> = ports.into_iter().collect();
            let Ok(granted) = try_grant(&held, &freed, &recorded, &ports) else { return Ok(()) };
            prop_assert_eq!(granted.ports.len(), ports.len());
            let mut numbers: Vec<_> = granted.ports.iter().map(|port| port.resolver_port).collect();
            numbers.sort_unstable();
            numbers.dedup();
            prop_assert_eq!(numbers.len(), ports.len(), "no port twice");
            for given in &granted.ports {
                let was = recorded.iter().any(|it| it.resolver_port == given.resolver_port);
                let other = held.get(&given.resolver_port);
                prop_assert!(other.is_none_or(|other| was && *other > holder(50, "us")));
                let rests = freed.get(&given.resolver_port).is_some_and(|freed| is_recent(*freed, at(1000)));
                prop_assert!(was || !rests);
                prop_assert!(!granted.freed.contains(&given.resolver_port));
            }
            // A second grant changes nothing.
            let again = try_grant(&held, &freed, &granted.ports, &ports);
            prop_assert_eq!(again, Ok(GrantedPorts { ports: granted.ports, freed: Vec::new() }));
        }
    }
}
