//! The audit log of the writes of controllers and node, in the data folder.

use std::{path::Path, sync::Arc};

use kube::Client;
use neap_kit::{
    apply::Writer,
    audit::{Anchor, AnchorOptions, Audit, AuditWriter},
    clock::Clock,
    lease::Leadership,
    manager::Manager,
    process::Process,
};

use crate::exit::{Exit, Failure, chain};

/// A process whose writes are recorded in the audit log, if there is a data folder.
pub(super) struct AuditedProcess {
    pub(super) process: Process,
    log: Option<(Audit, AuditWriter, AnchorOptions)>,
}

impl AuditedProcess {
    /// Verifies the existing log and continues it.
    pub(super) fn open(data: Option<&Path>, clock: Clock) -> Result<Self, Failure> {
        let process = Process::default();
        let Some(data) = data else {
            return Ok(Self { process, log: None });
        };
        let options = AnchorOptions::for_data_folder(data);
        let (audit, writer_component) = Audit::open(&options.path, clock).map_err(|error| {
            Failure::new(
                "NT-UP-0023",
                Exit::Refused,
                "cannot continue the audit log of the data folder",
                &chain(&error),
            )
            .remedy("inspect it with neap audit verify; to start a new log, move audit.jsonl and its parts elsewhere and keep them")
        })?;
        Ok(Self {
            process: process.with_write_observer(Arc::new(audit.clone())),
            log: Some((audit, writer_component, options)),
        })
    }

    /// Adds the audit writer to the manager, and the component that anchors the last record in the API.
    pub(super) fn add_to(self, manager: &mut Manager, client: Client, clock: Clock) {
        if let Some((audit, writer_component, options)) = self.log {
            let writer = Writer::new(client, "neap", Leadership::without_election(clock), clock);
            manager.add(Anchor::new(audit, writer, options, clock));
            manager.add(writer_component);
        }
    }
}
