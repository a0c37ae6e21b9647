use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use proptest::prelude::*;

use crate::resolver::{
    hold::{Arrival, Line, Ticket},
    routes::{Limits, Pods},
};

const PORT: u16 = 80;
const START: Duration = Duration::ZERO;

fn limits(requests: usize, bytes: usize, per_pod: usize) -> Limits {
    Limits {
        requests,
        bytes,
        per_pod,
    }
}

fn pod(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 8080))
}

fn pods(numbers: &[u8]) -> Pods {
    BTreeMap::from([(PORT, numbers.iter().map(|number| pod(*number)).collect())])
}

fn tickets(gone: &[(Ticket, u16, SocketAddr)]) -> Vec<u64> {
    gone.iter().map(|(ticket, ..)| ticket.0).collect()
}

#[test]
fn whoever_comes_while_a_pod_is_ready_passes_and_pods_take_turns() {
    let mut line = Line::new(limits(1, 1, 1));
    line.pods(&pods(&[1, 2]));
    let arrivals: Vec<_> = (0..3)
        .map(|ticket| line.arrive(PORT, Ticket(ticket), 10, START))
        .collect();
    let expected = [pod(1), pod(2), pod(1)].map(Arrival::Pass);
    assert_eq!(arrivals, expected);
    assert_eq!(line.held(), 0);
}

#[test]
fn no_more_are_held_than_count_and_bytes_allow() {
    let mut line = Line::new(limits(2, 100, 1));
    assert_eq!(line.arrive(PORT, Ticket(1), 60, START), Arrival::Wait);
    assert_eq!(line.arrive(PORT, Ticket(2), 60, START), Arrival::Full);
    assert_eq!(line.arrive(81, Ticket(3), 40, START), Arrival::Wait);
    assert_eq!(line.arrive(PORT, Ticket(4), 0, START), Arrival::Full);
    assert!(!line.grow(Ticket(1), 1));
    line.leave(PORT, Ticket(1));
    assert!(line.grow(Ticket(3), 60));
    assert_eq!((line.held(), line.held_bytes()), (1, 100));
}

#[test]
fn a_herd_is_let_go_in_order_and_so_many_at_a_time() {
    let mut line = Line::new(limits(100, 100, 2));
    for ticket in 0..7 {
        line.arrive(PORT, Ticket(ticket), 0, START);
    }
    line.pods(&pods(&[1, 2]));
    assert_eq!(tickets(&line.release(START)), [0, 1, 2, 3]);
    // One who comes now does not overtake.
    assert_eq!(line.arrive(PORT, Ticket(9), 0, START), Arrival::Wait);
    line.arrived(PORT, pod(2));
    let gone = line.release(START);
    assert_eq!(gone, [(Ticket(4), PORT, pod(2))]);
    line.pods(&pods(&[3]));
    assert_eq!(tickets(&line.release(START)), [5, 6]);
    line.arrived(PORT, pod(3));
    assert_eq!(tickets(&line.release(START)), [9]);
}

#[test]
fn a_pod_that_refuses_is_left_alone_for_longer_each_time() {
    let mut line = Line::new(limits(100, 100, 1));
    line.arrive(PORT, Ticket(1), 5, START);
    line.pods(&pods(&[1]));
    let mut now = START;
    let mut pauses = Vec::new();
    for _ in 0..8 {
        assert_eq!(tickets(&line.release(now)), [1]);
        line.refused(PORT, pod(1), now);
        line.arrived(PORT, pod(1));
        line.wait(PORT, Ticket(1), 5);
        assert!(line.lacks_pods(now));
        assert!(line.release(now).is_empty());
        let next = line.next(now).unwrap();
        pauses.push(next.saturating_sub(now).as_millis());
        now = next;
    }
    assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1000, 1000]);
    assert_eq!(tickets(&line.release(now)), [1]);
    line.took(PORT, pod(1));
    assert_eq!(line.next(now), None);
    assert_eq!(line.held_bytes(), 0);
}

#[derive(Debug, Clone)]
enum Deed {
    Arrive(u16, usize),
    Leave(usize),
    Pods(Vec<u8>),
    Done(usize),
    Refused(usize),
    Later(u64),
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        3 => (80_u16..82, 0_usize..40).prop_map(|(port, bytes)| Deed::Arrive(port, bytes)),
        1 => any::<usize>().prop_map(Deed::Leave),
        1 => proptest::collection::btree_set(1_u8..5, 0..4)
            .prop_map(|numbers| Deed::Pods(numbers.into_iter().collect())),
        2 => any::<usize>().prop_map(Deed::Done),
        1 => any::<usize>().prop_map(Deed::Refused),
        1 => (0_u64..500).prop_map(Deed::Later),
    ]
}

/// What must be true of a line, kept the slow way.
#[derive(Default)]
struct Model {
    waiting: BTreeMap<(u16, Ticket), usize>,
    going: Vec<(Ticket, u16, SocketAddr)>,
}

proptest! {
    #[test]
    fn nobody_is_lost_nobody_overtakes_and_no_limit_is_passed(deeds in proptest::collection::vec(deed(), 0..120)) {
        let limits = limits(6, 100, 2);
        let mut line = Line::new(limits);
        let mut model = Model::default();
        let mut now = START;
        for (number, deed) in deeds.into_iter().enumerate() {
            let ticket = Ticket(number as u64);
            match deed {
                Deed::Arrive(port, bytes) => {
                    if line.arrive(port, ticket, bytes, now) == Arrival::Wait {
                        model.waiting.insert((port, ticket), bytes);
                    }
                }
                Deed::Leave(which) => {
                    let key = model.waiting.keys().nth(which % 7).copied();
                    if let Some((port, ticket)) = key {
                        model.waiting.remove(&(port, ticket));
                        line.leave(port, ticket);
                    }
                }
                Deed::Pods(numbers) => {
                    let mut all = pods(&numbers);
                    all.insert(81, numbers.iter().map(|number| pod(*number)).collect());
                    line.pods(&all);
                }
                Deed::Done(which) if !model.going.is_empty() => {
                    let (_, port, pod) = model.going.remove(which % model.going.len());
                    line.arrived(port, pod);
                }
                Deed::Refused(which) if !model.going.is_empty() => {
                    let (ticket, port, pod) = model.going.remove(which % model.going.len());
                    line.refused(port, pod, now);
                    line.arrived(port, pod);
                    line.wait(port, ticket, 0);
                    model.waiting.insert((port, ticket), 0);
                }
                Deed::Later(milliseconds) => now += Duration::from_millis(milliseconds),
                Deed::Done(_) | Deed::Refused(_) => {}
            }
            for (ticket, port, pod) in line.release(now) {
                let first = model.waiting.keys().find(|(other, _)| *other == port).copied();
                prop_assert_eq!(first, Some((port, ticket)));
                model.waiting.remove(&(port, ticket));
                model.going.push((ticket, port, pod));
            }
            prop_assert_eq!(line.held(), model.waiting.len());
            prop_assert_eq!(line.held_bytes(), model.waiting.values().sum::<usize>());
            prop_assert!(line.held_bytes() <= limits.bytes);
            prop_assert!(line.next(now).is_none_or(|next| next > now));
        }
    }
}
