//! Field ownership of plain writes in managedFields, and the stamp of every write.

use serde_json::Value;

use super::{Machine, Request, Served, Verb, own::own_request, update::ObjectPart};
use crate::{
    kinds::{KindRole, event::convert::name_owned},
    patch::managed::{self, EndpointScope, Stamp, scaled},
    status::Result,
};

/// The manager under which Kubernetes records that a namespace was emptied.
const CONTROLLERS: &str = "kube-controller-manager";

/// An owned [`Stamp`].
pub(super) struct OwnedStamp {
    manager: String,
    api_version: String,
    subresource: Option<&'static str>,
    time: String,
    scope: EndpointScope,
}

impl OwnedStamp {
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
    pub(super) fn owned_stamp(
        &self,
        request: &Request,
        served: &Served,
        part: ObjectPart,
    ) -> Result<OwnedStamp> {
        let scope = match part {
            ObjectPart::Main => EndpointScope::Main {
                has_status: served.has_status(),
            },
            ObjectPart::Status if served.is_custom() => EndpointScope::Status,
            ObjectPart::Status => EndpointScope::StatusAndMetadata(served.traits().status_keeps),
            ObjectPart::Other("scale") => EndpointScope::Scale,
            ObjectPart::Other(_) => EndpointScope::Other,
        };
        Ok(OwnedStamp {
            manager: request.manager()?.to_owned(),
            api_version: match part {
                ObjectPart::Other("scale") => scaled::VERSION.into(),
                _ => served.api_version.clone(),
            },
            subresource: part.subresource(),
            // Scaling is recorded without a time, as in kube-apiserver.
            time: match part {
                ObjectPart::Other("scale") => String::new(),
                _ => self.environment.timestamp(),
            },
            scope,
        })
    }

    /// Records the whole of a new object, or the changes of an old one, for the request's manager.
    pub(super) fn record_ownership(
        &self,
        request: &Request,
        served: &Served,
        part: ObjectPart,
        old: Option<&Value>,
        new: &mut Value,
    ) -> Result<()> {
        if served.role != KindRole::Event {
            return self.record_stored(request, served, part, old, new);
        }
        let mut old = old.cloned();
        for event in old.iter_mut().chain([&mut *new]) {
            name_owned(event, Some(&served.resource.storage));
        }
        self.record_stored(request, served, part, old.as_ref(), new)?;
        name_owned(new, None);
        Ok(())
    }

    /// Records that the finalizers of a namespace were removed, for the manager that Kubernetes
    /// uses.
    pub(crate) fn record_finalized(
        &self,
        served: &Served,
        old: &Value,
        new: &mut Value,
    ) -> Result<()> {
        let request = Request {
            user_agent: CONTROLLERS.into(),
            ..own_request(served, Verb::Update, "", "")
        };
        let part = ObjectPart::Other("finalize");
        self.record_ownership(&request, served, part, Some(old), new)
    }

    fn record_stored(
        &self,
        request: &Request,
        served: &Served,
        part: ObjectPart,
        old: Option<&Value>,
        new: &mut Value,
    ) -> Result<()> {
        let owned = self.owned_stamp(request, served, part)?;
        let stamp = owned.stamp();
        let blank = served.blank_fields();
        if !served.is_alias() && (old.is_some() || blank.is_empty()) {
            managed::track_update(served.storage_schema(), old, new, &stamp);
            return Ok(());
        }
        // Fields that exist before any client sets them have no owner.
        let mut said = new.clone();
        if old.is_none() {
            for pointer in blank {
                remove_blank(&mut said, pointer);
            }
        }
        if served.is_alias() {
            // Fields are recorded under the names of the version they were written in.
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

/// Removes the field at `pointer` if it is empty.
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
