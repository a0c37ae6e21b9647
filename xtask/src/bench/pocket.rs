//! Figures of the embedded API server beside a real kube-apiserver and its etcd.

use super::{
    Figure,
    in_process::InProcess,
    loaded::{Line, Loaded},
    row::Requirement::{Limit, Times},
};

pub(super) fn figures() -> Vec<Box<dyn Figure>> {
    let mut figures: Vec<Box<dyn Figure>> = Vec::new();
    for beside in BESIDE_A_PEER {
        figures.push(Box::new(beside));
    }
    figures.push(Box::new(InProcess));
    for alone in ALONE {
        figures.push(Box::new(alone));
    }
    figures
}

const fn beside(
    name: &'static str,
    arguments: &'static [&'static str],
    lines: &'static [Line],
) -> Loaded {
    Loaded {
        name,
        arguments,
        has_peer: true,
        lines,
    }
}

const fn alone(
    name: &'static str,
    arguments: &'static [&'static str],
    lines: &'static [Line],
) -> Loaded {
    Loaded {
        name,
        arguments,
        has_peer: false,
        lines,
    }
}

const BESIDE_A_PEER: [Loaded; 11] = [
    beside("start, empty", &["start", "--times", "5"], &START),
    beside("50 000 objects", &["stored", "--objects", "50000"], &STORED),
    beside(
        "creates and gets, durable",
        &["throughput", "--objects", "20000"],
        &DURABLE,
    ),
    beside(
        "creates in memory",
        &["throughput", "--objects", "20000", "--memory"],
        &IN_MEMORY,
    ),
    beside(
        "gets by a bound user",
        &["bound", "--objects", "20000"],
        &BOUND,
    ),
    beside(
        "one connection, durable",
        &["single", "--objects", "3000"],
        &SINGLE,
    ),
    beside(
        "one connection, in memory",
        &["single", "--objects", "3000", "--memory"],
        &SINGLE_IN_MEMORY,
    ),
    beside(
        "from a write to its event",
        &["told", "--times", "501"],
        &TOLD,
    ),
    beside(
        "a thousand watchers",
        &["fan-out", "--times", "51"],
        &FAN_OUT,
    ),
    beside(
        "list of 8 000 objects",
        &["list", "--objects", "8000"],
        &LIST,
    ),
    beside(
        "namespace delete",
        &["namespace", "--objects", "100", "--times", "3"],
        &NAMESPACE,
    ),
];

const ALONE: [Loaded; 3] = [
    alone(
        "from a definition to its resource",
        &["definition", "--times", "21"],
        &DEFINITION,
    ),
    alone(
        "a client beside long lists",
        &["neighbour", "--objects", "4000"],
        &NEIGHBOUR,
    ),
    alone(
        "start after a million writes; takes some minutes",
        &["restart", "--objects", "50000", "--writes", "1000000"],
        &RESTART,
    ),
];

const START: [Line; 2] = [
    Line::new("start", "start to ready, empty", "ms").asked(Limit(100.0)),
    Line::new("idle", "resident memory when idle", "MB")
        .scaled(1e-6)
        .asked(Limit(40.0)),
];

const STORED: [Line; 3] = [
    Line::new(
        "start with objects",
        "start with 50 000 objects on disk",
        "ms",
    )
    .asked(Limit(500.0)),
    Line::new(
        "memory per object",
        "resident memory per stored ConfigMap",
        "KB",
    )
    .scaled(0.001)
    .asked(Limit(2.5)),
    Line::new(
        "bytes of an object",
        "size of such a ConfigMap as JSON",
        "KB",
    )
    .scaled(0.001),
];

const DURABLE: [Line; 6] = [
    Line::rate("creates", "create, 16 connections, durable").asked(Times(5.0)),
    Line::new("create p50", "create p50, 16 connections, durable", "ms"),
    Line::new("create p99", "create p99, 16 connections, durable", "ms").asked(Limit(3.0)),
    Line::rate("gets", "get, 16 connections").asked(Times(7.0)),
    Line::new("get p50", "get p50, 16 connections", "ms"),
    Line::new("get p99", "get p99, 16 connections", "ms"),
];

const IN_MEMORY: [Line; 2] = [
    Line::rate("creates", "create, 16 connections, in memory").asked(Times(6.0)),
    Line::new("create p99", "create p99, 16 connections, in memory", "ms"),
];

const BOUND: [Line; 1] =
    [Line::rate("bound gets", "get by a service account with a role").asked(Times(7.0))];

const SINGLE: [Line; 1] = [Line::new(
    "single create p50",
    "create p50, one connection, durable",
    "ms",
)
.asked(Times(3.0))];

const SINGLE_IN_MEMORY: [Line; 1] = [Line::new(
    "single create p50",
    "create p50, one connection, in memory",
    "ms",
)
.asked(Times(6.0))];

const TOLD: [Line; 1] = [Line::new("told", "POST sent to watch event", "ms").asked(Times(4.0))];

const FAN_OUT: [Line; 2] = [
    Line::new("last told", "one write to last of 1 000 watchers", "ms").asked(Times(1.8)),
    Line::new("last told, alone", "the same with a connection each", "ms"),
];

const LIST: [Line; 1] = [Line::new("list", "list of 8 000 objects", "ms").asked(Times(4.0))];

const NAMESPACE: [Line; 1] =
    [Line::new("namespace delete", "namespace delete, 100 objects", "ms").asked(Limit(100.0))];

const DEFINITION: [Line; 1] =
    [Line::new("definition", "definition to served and described", "ms").asked(Limit(10.0))];

const NEIGHBOUR: [Line; 4] = [
    Line::new("p99 alone", "small requests, p99", "ms"),
    Line::new("p99 beside", "the same beside bodies of 1 MiB", "ms"),
    Line::new("times", "how many times as long", "×").asked(Limit(3.0)),
    Line::new("large", "a request with such a body", "ms"),
];

const RESTART: [Line; 4] = [
    Line::new(
        "start",
        "start with 50 000 objects after 1 000 000 writes",
        "ms",
    )
    .asked(Limit(500.0)),
    Line::rate(
        "updates",
        "durable updates of 50 000 objects, 16 connections",
    ),
    Line::new("update p99", "durable update, 99 of 100 within", "ms"),
    Line::new(
        "update worst",
        "durable update, the slowest of 950 000",
        "ms",
    ),
];
