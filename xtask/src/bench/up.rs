//! Figures of all of `neap up`: its API, its controllers and its node together.

use super::{
    Figure,
    loaded::{Line, Loaded},
    row::Requirement::Limit,
};

pub(super) fn figures() -> Vec<Box<dyn Figure>> {
    vec![
        Box::new(Loaded {
            name: "the sample, from the command to its answer",
            arguments: &["sample", "--times", "5"],
            has_peer: false,
            lines: &SAMPLE,
        }),
        Box::new(Loaded {
            name: "a Deployment of 50",
            arguments: &["rollout", "--times", "5"],
            has_peer: true,
            lines: &ROLLOUT,
        }),
    ]
}

const SAMPLE: [Line; 4] = [
    Line::new("ready", "neap up to ready, with node and controllers", "ms"),
    Line::new("applied", "neap up to the sample applied", "ms"),
    Line::new("answer", "neap up to the sample's first answer", "ms").asked(Limit(2000.0)),
    Line::new("answer worst", "the same, the slowest", "ms"),
];

const ROLLOUT: [Line; 2] = [
    Line::new("pods", "Deployment of 50 to all pods exist", "ms").asked(Limit(50.0)),
    Line::new("pods worst", "the same, the slowest", "ms"),
];
