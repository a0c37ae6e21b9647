//! Who owns which fields: bookings of plain writes, and the stamp of every write.

use serde_json::Value;

use super::{Machine, Request, Served, update::Part};
use crate::{
    patch::managed::{self, Scope, Stamp},
    status::Result,
};

/// An owned [`Stamp`].
pub(super) struct Booked {
    manager: String,
    api_version: String,
    subresource: Option<&'static str>,
    time: String,
    scope: Scope,
}

impl Booked {
    pub(super) fn stamp(&self) -> Stamp<'_> {
        Stamp {
            manager: &self.manager,
            api_version: &self.api_version,
            subresource: self.subresource,
            time: &self.time,
            scope: self.scope,
        }
    }
}

impl Machine {
    /// The stamp of a write through this endpoint.
    pub(super) fn booked(&self, request: &Request, served: &Served, part: Part) -> Result<Booked> {
        let scope = match part {
            Part::Main => Scope::Main {
                has_status: served.has_status(),
            },
            Part::Status if served.is_custom() => Scope::Status,
            Part::Status => Scope::StatusAndMetadata,
            Part::Other(_) => Scope::Other,
        };
        Ok(Booked {
            manager: request.manager()?.to_owned(),
            api_version: served.api_version.clone(),
            subresource: part.subresource(),
            time: self.environment.timestamp(),
            scope,
        })
    }

    /// Books the whole of a new object, or what changed of an old one, to the request's manager.
    pub(super) fn book(
        &self,
        request: &Request,
        served: &Served,
        part: Part,
        old: Option<&Value>,
        new: &mut Value,
    ) -> Result<()> {
        let booked = self.booked(request, served, part)?;
        managed::track_update(served.storage_schema(), old, new, &booked.stamp());
        Ok(())
    }
}
