//! What the controllers and the node do is noted in the data folder, if there is one.

use std::{path::Path, sync::Arc};

use kube::Client;
use neap_kit::{
    apply::Hand,
    audit::{Anchor, AnchorOptions, Audit, AuditService},
    clock::Clock,
    lease::Leadership,
    manager::Manager,
    process::Process,
};

use crate::exit::{Exit, Failure, chain};

/// A process whose deeds are noted, and what notes them.
pub(super) struct Noted {
    pub(super) process: Process,
    notes: Option<(Audit, AuditService, AnchorOptions)>,
}

impl Noted {
    /// Checks what was noted before, and goes on after it.
    pub(super) fn open(data: Option<&Path>, clock: Clock) -> Result<Self, Failure> {
        let process = Process::default();
        let Some(data) = data else {
            return Ok(Self {
                process,
                notes: None,
            });
        };
        let options = AnchorOptions::of(data);
        let (audit, service) = Audit::open(&options.path, clock).map_err(|error| {
            Failure::new(
                "NT-UP-0023",
                Exit::Refused,
                "the audit in the data folder cannot be gone on with",
                &chain(&error),
            )
            .remedy("look at it with neap audit verify; to begin a new one, move audit.jsonl and its parts away and keep them")
        })?;
        Ok(Self {
            process: process.witnessed_by(Arc::new(audit.clone())),
            notes: Some((audit, service, options)),
        })
    }

    /// Has the manager run what notes, and what anchors the end of it in the API.
    pub(super) fn run_by(self, manager: &mut Manager, client: Client, clock: Clock) {
        if let Some((audit, service, options)) = self.notes {
            let hand = Hand::new(client, "neap", Leadership::alone(clock), clock);
            manager.add(Anchor::new(audit, hand, options, clock));
            manager.add(service);
        }
    }
}
