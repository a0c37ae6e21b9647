use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use proptest::prelude::*;

use crate::resolver::{
    hold::{Admission, Ticket, WaitQueue},
    routes::{HoldLimits, PodAddresses},
};

const PORT: u16 = 80;
const START: Duration = Duration::ZERO;

fn limits(requests: usize, bytes: usize, per_pod: usize) -> HoldLimits {
    HoldLimits {
        requests,
        bytes,
        per_pod,
    }
}

fn pod(number: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, number], 8080))
}

fn pods(numbers: &[u8]) -> PodAddresses {
    BTreeMap::from([(PORT, numbers.iter().map(|number| pod(*number)).collect())])
}

fn tickets(gone: &[(Ticket, u16, SocketAddr)]) -> Vec<u64> {
    gone.iter().map(|(ticket, ..)| ticket.0).collect()
}

#[test]
fn requests_pass_while_a_pod_is_ready_and_pods_take_turns() {
    let mut queue = WaitQueue::new(limits(1, 1, 1));
    queue.set_pods(&pods(&[1, 2]));
    let arrivals: Vec<_> = (0..3)
        .map(|ticket| queue.arrive(PORT, Ticket(ticket), 10, START))
        .collect();
    let expected = [pod(1), pod(2), pod(1)].map(Admission::Pass);
    assert_eq!(arrivals, expected);
    assert_eq!(queue.held(), 0);
}

#[test]
fn no_more_are_held_than_count_and_bytes_allow() {
    let mut queue = WaitQueue::new(limits(2, 100, 1));
    assert_eq!(queue.arrive(PORT, Ticket(1), 60, START), Admission::Wait);
    assert_eq!(queue.arrive(PORT, Ticket(2), 60, START), Admission::Full);
    assert_eq!(queue.arrive(81, Ticket(3), 40, START), Admission::Wait);
    assert_eq!(queue.arrive(PORT, Ticket(4), 0, START), Admission::Full);
    assert!(!queue.grow(Ticket(1), 1));
    queue.leave(PORT, Ticket(1));
    assert!(queue.grow(Ticket(3), 60));
    assert_eq!((queue.held(), queue.held_bytes()), (1, 100));
}

#[test]
fn waiting_requests_are_released_in_order_and_up_to_the_limit_of_each_pod() {
    let mut queue = WaitQueue::new(limits(100, 100, 2));
    for ticket in 0..7 {
        queue.arrive(PORT, Ticket(ticket), 0, START);
    }
    queue.set_pods(&pods(&[1, 2]));
    assert_eq!(tickets(&queue.release(START)), [0, 1, 2, 3]);
    // A request that arrives now does not overtake.
    assert_eq!(queue.arrive(PORT, Ticket(9), 0, START), Admission::Wait);
    queue.finish(PORT, pod(2));
    let gone = queue.release(START);
    assert_eq!(gone, [(Ticket(4), PORT, pod(2))]);
    queue.set_pods(&pods(&[3]));
    assert_eq!(tickets(&queue.release(START)), [5, 6]);
    queue.finish(PORT, pod(3));
    assert_eq!(tickets(&queue.release(START)), [9]);
}

#[test]
fn the_retry_delay_of_a_pod_that_refuses_doubles() {
    let mut queue = WaitQueue::new(limits(100, 100, 1));
    queue.arrive(PORT, Ticket(1), 5, START);
    queue.set_pods(&pods(&[1]));
    let mut now = START;
    let mut pauses = Vec::new();
    for _ in 0..8 {
        assert_eq!(tickets(&queue.release(now)), [1]);
        queue.record_refused(PORT, pod(1), now);
        queue.finish(PORT, pod(1));
        queue.wait(PORT, Ticket(1), 5);
        assert!(queue.lacks_pods(now));
        assert!(queue.release(now).is_empty());
        let next = queue.next(now).unwrap();
        pauses.push(next.saturating_sub(now).as_millis());
        now = next;
    }
    assert_eq!(pauses, [20, 40, 80, 160, 320, 640, 1000, 1000]);
    assert_eq!(tickets(&queue.release(now)), [1]);
    queue.record_accepted(PORT, pod(1));
    assert_eq!(queue.next(now), None);
    assert_eq!(queue.held_bytes(), 0);
}

#[derive(Debug, Clone)]
enum QueueOperation {
    Arrive(u16, usize),
    Leave(usize),
    PodAddresses(Vec<u8>),
    Done(usize),
    Refused(usize),
    Later(u64),
}

fn operation() -> impl Strategy<Value = QueueOperation> {
    prop_oneof![
        3 => (80_u16..82, 0_usize..40).prop_map(|(port, bytes)| QueueOperation::Arrive(port, bytes)),
        1 => any::<usize>().prop_map(QueueOperation::Leave),
        1 => proptest::collection::btree_set(1_u8..5, 0..4)
            .prop_map(|numbers| QueueOperation::PodAddresses(numbers.into_iter().collect())),
        2 => any::<usize>().prop_map(QueueOperation::Done),
        1 => any::<usize>().prop_map(QueueOperation::Refused),
        1 => (0_u64..500).prop_map(QueueOperation::Later),
    ]
}

/// A simple model of a queue.
#[derive(Default)]
struct Model {
    waiting: BTreeMap<(u16, Ticket), usize>,
    going: Vec<(Ticket, u16, SocketAddr)>,
}

proptest! {
    #[test]
    fn no_request_is_lost_or_overtakes_and_no_limit_is_exceeded(operations in proptest::collection::vec(operation(), 0..120)) {
        let limits = limits(6, 100, 2);
        let mut queue = WaitQueue::new(limits);
        let mut model = Model::default();
        let mut now = START;
        for (number, operation) in operations.into_iter().enumerate() {
            let ticket = Ticket(number as u64);
            match operation {
                QueueOperation::Arrive(port, bytes) => {
                    if queue.arrive(port, ticket, bytes, now) == Admission::Wait {
                        model.waiting.insert((port, ticket), bytes);
                    }
                }
                QueueOperation::Leave(which) => {
                    let key = model.waiting.keys().nth(which % 7).copied();
                    if let Some((port, ticket)) = key {
                        model.waiting.remove(&(port, ticket));
                        queue.leave(port, ticket);
                    }
                }
                QueueOperation::PodAddresses(numbers) => {
                    let mut all = pods(&numbers);
                    all.insert(81, numbers.iter().map(|number| pod(*number)).collect());
                    queue.set_pods(&all);
                }
                QueueOperation::Done(which) if !model.going.is_empty() => {
                    let (_, port, pod) = model.going.remove(which % model.going.len());
                    queue.finish(port, pod);
                }
                QueueOperation::Refused(which) if !model.going.is_empty() => {
                    let (ticket, port, pod) = model.going.remove(which % model.going.len());
                    queue.record_refused(port, pod, now);
                    queue.finish(port, pod);
                    queue.wait(port, ticket, 0);
                    model.waiting.insert((port, ticket), 0);
                }
                QueueOperation::Later(milliseconds) => now += Duration::from_millis(milliseconds),
                QueueOperation::Done(_) | QueueOperation::Refused(_) => {}
            }
            for (ticket, port, pod) in queue.release(now) {
                let first = model.waiting.keys().find(|(other, _)| *other == port).copied();
                prop_assert_eq!(first, Some((port, ticket)));
                model.waiting.remove(&(port, ticket));
                model.going.push((ticket, port, pod));
            }
            prop_assert_eq!(queue.held(), model.waiting.len());
            prop_assert_eq!(queue.held_bytes(), model.waiting.values().sum::<usize>());
            prop_assert!(queue.held_bytes() <= limits.bytes);
            prop_assert!(queue.next(now).is_none_or(|next| next > now));
        }
    }
}
