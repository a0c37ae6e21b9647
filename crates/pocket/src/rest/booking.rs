//! Who owns which fields: bookings of plain writes, and the stamp of every write.

use serde_json::Value;

use super::{Machine, Request, Served, Verb, own::own_request, update::Part};
use crate::{
    kinds::{Role, event::convert::name_owned},
    patch::managed::{self, Scope, Stamp, scaled},
    status::Result,
};

/// Who empties namespaces elsewhere.
const CONTROLLERS: &str = "kube-controller-manager";

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
            Part::Status => Scope::StatusAndMetadata(served.traits().status_keeps),
            Part::Other("scale") => Scope::Scale,
            Part::Other(_) => Scope::Other,
        };
        Ok(Booked {
            manager: request.manager()?.to_owned(),
            api_version: match part {
                Part::Other("scale") => scaled::VERSION.into(),
                _ => served.api_version.clone(),
            },
            subresource: part.subresource(),
            // Who scales is booked without a time, as the reference does it.
            time: match part {
                Part::Other("scale") => String::new(),
                _ => self.environment.timestamp(),
            },
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
        if served.role != Role::Event {
            return self.book_stored(request, served, part, old, new);
        }
        let mut old = old.cloned();
        for event in old.iter_mut().chain([&mut *new]) {
            name_owned(event, Some(&served.resource.storage));
        }
        self.book_stored(request, served, part, old.as_ref(), new)?;
        name_owned(new, None);
        Ok(())
    }

    /// Books that the finalizers of a namespace were taken away, to whom others book it.
    pub(crate) fn book_finalized(
        &self,
        served: &Served,
        old: &Value,
        new: &mut Value,
    ) -> Result<()> {
        let request = Request {
            user_agent: CONTROLLERS.into(),
            ..own_request(served, Verb::Update, "", "")
        };
        let part = Part::Other("finalize");
        self.book(&request, served, part, Some(old), new)
    }

    fn book_stored(
        &self,
        request: &Request,
        served: &Served,
        part: Part,
        old: Option<&Value>,
        new: &mut Value,
    ) -> Result<()> {
        let booked = self.booked(request, served, part)?;
        let stamp = booked.stamp();
        let blank = served.blank_fields();
        if !served.is_alias() && (old.is_some() || blank.is_empty()) {
            managed::track_update(served.storage_schema(), old, new, &stamp);
            return Ok(());
        }
        // What an object has before anybody says anything is owned by nobody.
        let mut said = new.clone();
        if old.is_none() {
            for pointer in blank {
                remove_blank(&mut said, pointer);
            }
        }
        if served.is_alias() {
            // Fields are owned under the names of the version they were written in.
            served.from_storage(&mut said);
            let old = old.map(|old| served.converted(old.clone()));
            managed::track_update(served.schema(), old.as_ref(), &mut said, &stamp);
        } else {
            managed::track_update(served.storage_schema(), old, &mut said, &stamp);
        }
        managed::put_managed_fields(new, said["metadata"]["managedFields"].take());
        Ok(())
    }
}

/// Removes the field at `pointer` if nothing is in it.
fn remove_blank(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return;
    };
    let fields = value.pointer_mut(parent).and_then(Value::as_object_mut);
    let Some(fields) = fields else { return };
    let blank = match fields.get(name) {
        Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Object(entries)) => entries.is_empty(),
        _ => false,
    };
    if blank {
        fields.remove(name);
    }
}
