//! Figures of a process that watches with kit.

use super::{
    Figure,
    loaded::{Line, Loaded},
    row::Requirement::Limit,
};

pub(super) fn figures() -> Vec<Box<dyn Figure>> {
    vec![
        Box::new(Loaded {
            name: "following 50 000 ConfigMaps",
            arguments: &["follow"],
            has_peer: false,
            lines: &WHOLE,
        }),
        Box::new(Loaded {
            name: "following the metadata of 50 000 ConfigMaps",
            arguments: &["follow-metadata"],
            has_peer: false,
            lines: &METADATA,
        }),
        Box::new(Loaded {
            name: "writing for each change of 5 000 ConfigMaps",
            arguments: &["follow-writing"],
            has_peer: false,
            lines: &WRITING,
        }),
    ]
}

const WRITING: [Line; 2] = [
    Line::new(
        "writes per change",
        "API writes per change, one to write",
        "",
    )
    .asked(Limit(1.0)),
    Line::new("reads per change", "API reads per change, one to write", "").asked(Limit(0.0)),
];

const WHOLE: [Line; 5] = [
    Line::new("memory per object", "memory per watched ConfigMap", "KB")
        .scaled(0.001)
        .asked(Limit(2.0)),
    Line::new("peak of a relist", "peak memory of a relist", "×").asked(Limit(1.3)),
    Line::new("synced", "start to synced, 50 000", "ms"),
    Line::new("work per event", "CPU per event", "µs"),
    Line::new(
        "calls per change",
        "API calls per change, nothing to write",
        "",
    ),
];

const METADATA: [Line; 5] = [
    Line::new("memory per object", "memory per watched metadata", "KB")
        .scaled(0.001)
        .asked(Limit(1.0)),
    Line::new("peak of a relist", "peak memory of a relist, metadata", "×").asked(Limit(1.3)),
    Line::new("synced", "start to synced, 50 000, metadata", "ms"),
    Line::new("work per event", "CPU per event, metadata", "µs"),
    Line::new("calls per change", "API calls per change, metadata", ""),
];
