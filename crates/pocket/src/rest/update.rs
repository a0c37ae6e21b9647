//! Update: one loop for PUT, every kind of PATCH and the status subresource.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::{Machine, Reply, Request, Served, create::Booking, metadata};
use crate::{
    status::{ApiError, Problems, Result},
    store::Object,
};

/// How often a write that named no revision is tried again when somebody was faster.
const ATTEMPTS: usize = 16;

/// Which part of the object an endpoint may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but status.
    Main,
    /// Status alone.
    Status,
    /// One field through a subresource of its own (`scale`, `finalize`); the name is booked.
    Other(&'static str),
}

impl Part {
    /// The name under which managed fields of this endpoint are booked.
    pub(crate) fn subresource(self) -> Option<&'static str> {
        match self {
            Self::Main => None,
            Self::Status => Some("status"),
            Self::Other(name) => Some(name),
        }
    }
}

/// A new state made from the stored one.
pub(crate) struct Proposal {
    /// The new object, in the storage version.
    pub(crate) value: Value,
    /// Who booked its managed fields.
    pub(crate) booking: Booking,
}

impl Machine {
    pub(super) async fn update(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        self.replace(request, served, Part::Main).await
    }

    /// PUT on the main resource or on status.
    pub(super) async fn replace(
        &self,
        request: &Request,
        served: &Arc<Served>,
        part: Part,
    ) -> Result<Reply> {
        let mut warnings = Vec::new();
        let value = self.shape(request, served, request.payload()?, &mut warnings)?;
        let creates = part == Part::Main && served.traits().create_on_update;
        if creates
            && self
                .head(served, &request.target.path())
                .is_none_or(|head| head.object.is_none())
        {
            let object = self
                .insert(request, served, value, Booking::Whole, &mut warnings)
                .await?;
            let reply = self.reply(request, served, StatusCode::CREATED, &object)?;
            return Ok(reply.with_warnings(warnings));
        }
        let named = !matches!(metadata::text(&value, "resourceVersion"), "" | "0");
        let allowed = named || served.traits().unconditional_update;
        let mut value = value;
        served.to_storage(&mut value);
        // Asked of the object that is there: of one that is not, it is said that it is not.
        let change = |_: &Value| {
            if !allowed {
                return Err(served.unversioned(&request.target.name));
            }
            Ok(Proposal {
                value: value.clone(),
                booking: Booking::Whole,
            })
        };
        let object = self
            .modify(request, served, part, &mut warnings, change)
            .await?;
        let reply = self.reply(request, served, StatusCode::OK, &object)?;
        Ok(reply.with_warnings(warnings))
    }

    /// Reads, proposes, checks and writes until nobody was faster.
    pub(super) async fn modify(
        &self,
        request: &Request,
        served: &Arc<Served>,
        part: Part,
        warnings: &mut Vec<String>,
        mut propose: impl FnMut(&Value) -> Result<Proposal>,
    ) -> Result<Arc<Object>> {
        let place = request.target.path();
        let name = &request.target.name;
        let _turn = self.turn(served).await;
        for _ in 0..ATTEMPTS {
            let Some(head) = self.head(served, &place) else {
                return Err(served.not_found(name));
            };
            let Some(live) = head.object else {
                self.settled(head.revision).await?;
                return Err(served.not_found(name));
            };
            let outcome = self
                .attempt(request, served, part, &live, warnings, &mut propose)
                .await;
            // Whatever is answered rests on the state that was read.
            self.settled(live.revision()).await?;
            if let Some(object) = outcome? {
                return Ok(object);
            }
        }
        Err(served.stale(name))
    }

    /// One try; `None` if somebody was faster and trying again may help.
    async fn attempt(
        &self,
        request: &Request,
        served: &Arc<Served>,
        part: Part,
        live: &Arc<Object>,
        warnings: &mut Vec<String>,
        propose: &mut impl FnMut(&Value) -> Result<Proposal>,
    ) -> Result<Option<Arc<Object>>> {
        let old = live.value();
        let Proposal {
            value: mut new,
            booking,
        } = propose(&old)?;
        let name = &request.target.name;
        check_preconditions(served, name, &new, &old, live)?;
        self.settle_fields(request, served, part, &mut new, &old)?;
        if booking == Booking::Whole {
            self.book(request, served, part, Some(&old), &mut new)?;
        }
        self.check_change(served, part, name, &new, &old)?;
        if part == Part::Main {
            self.admit(served, &mut new, Some(&old))?;
            self.accept(served, &mut new);
            *warnings = merge(warnings, served.warnings(&new, Some(&old)));
        }
        if same(&new, &old) {
            return Ok(Some(live.clone()));
        }
        if request.dry_run()? {
            return Ok(Some(Arc::new(Object::pretended(&new, live.revision()))));
        }
        // A write that named its state is tried again too: only the state that beat it tells
        // whether it is stale or its object is gone.
        self.put(served, &request.target.path(), live, &new).await
    }

    /// Keeps what this endpoint may not change, fills defaults and counts the generation.
    fn settle_fields(
        &self,
        _request: &Request,
        served: &Served,
        part: Part,
        new: &mut Value,
        old: &Value,
    ) -> Result<()> {
        metadata::carry_over(new, old);
        let has_status = served.has_status();
        match part {
            Part::Main if has_status => keep(new, old, "status"),
            Part::Status => keep_all_but_status(new, old),
            Part::Main | Part::Other(_) => {}
        }
        served.default(new);
        if part == Part::Main {
            (served.rules().prepare_update)(new, old);
        }
        let counts = served.traits().generation && part != Part::Status;
        if counts && metadata::wanted_state_differs(new, old, has_status) {
            metadata::bump_generation(new);
        }
        Ok(())
    }

    fn check_change(
        &self,
        served: &Served,
        part: Part,
        name: &str,
        new: &Value,
        old: &Value,
    ) -> Result<()> {
        let mut problems = Problems::new();
        if part == Part::Status {
            served.validate_status(new, old, &mut problems);
        } else {
            served.validate(new, Some(old), &mut problems);
        }
        served.refuse(name, &problems)
    }
}

/// Refuses a change of another object or of an older state.
fn check_preconditions(
    served: &Served,
    name: &str,
    new: &Value,
    old: &Value,
    live: &Object,
) -> Result<()> {
    let uid = metadata::text(new, "uid");
    let stored = metadata::text(old, "uid");
    if !uid.is_empty() && uid != stored {
        let why = format!(
            "Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}"
        );
        return Err(ApiError::conflict(
            &served.resource.group,
            &served.resource.plural,
            name,
            &why,
        ));
    }
    let revision = match &new["metadata"]["resourceVersion"] {
        Value::String(text) if text.is_empty() || text == "0" => return Ok(()),
        Value::String(text) => text.parse::<u64>().map_err(|_| {
            let mut problems = Problems::new();
            problems.invalid(
                "metadata.resourceVersion",
                text.as_str(),
                "must be a decimal number",
            );
            ApiError::invalid(
                &served.resource.group,
                &served.resource.kind,
                name,
                &problems,
            )
        })?,
        _ => return Ok(()),
    };
    if revision == live.revision() {
        return Ok(());
    }
    Err(served.stale(name))
}

fn keep(new: &mut Value, old: &Value, field: &str) {
    let Some(fields) = new.as_object_mut() else {
        return;
    };
    match old.get(field) {
        Some(value) => fields.insert(field.into(), value.clone()),
        None => fields.remove(field),
    };
}

fn keep_all_but_status(new: &mut Value, old: &Value) {
    let status = new.get("status").cloned();
    let managed = new["metadata"].get("managedFields").cloned();
    *new = old.clone();
    match status {
        Some(status) => new["status"] = status,
        None => {
            if let Some(fields) = new.as_object_mut() {
                fields.remove("status");
            }
        }
    }
    if let Some(managed) = managed {
        metadata::of(new).insert("managedFields".into(), managed);
    }
    metadata::of(new).remove("resourceVersion");
}

/// Whether a write would change nothing; the revision and the times of bookings do not count.
fn same(new: &Value, old: &Value) -> bool {
    let fields = |value: &Value| value.as_object().map_or(0, serde_json::Map::len);
    let equal = |key: &String, value: &Value| {
        if key == "metadata" {
            same_metadata(value, &old["metadata"])
        } else {
            old.get(key) == Some(value)
        }
    };
    fields(new) == fields(old)
        && new
            .as_object()
            .is_some_and(|all| all.iter().all(|(k, v)| equal(k, v)))
}

fn same_metadata(new: &Value, old: &Value) -> bool {
    let count = |value: &Value| {
        let fields = value.as_object();
        fields.map_or(0, |all| {
            all.keys().filter(|key| *key != "resourceVersion").count()
        })
    };
    let (Some(fields), true) = (new.as_object(), count(new) == count(old)) else {
        return false;
    };
    fields.iter().all(|(key, value)| match key.as_str() {
        "resourceVersion" => true,
        "managedFields" => same_bookings(value, &old["managedFields"]),
        _ => old.get(key) == Some(value),
    })
}

fn same_bookings(new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_array(), old.as_array()) else {
        return new == old;
    };
    let timeless = |entry: &Value| {
        let mut entry = entry.clone();
        entry["time"] = json!(null);
        entry
    };
    new.len() == old.len()
        && new
            .iter()
            .zip(old)
            .all(|(a, b)| a == b || timeless(a) == timeless(b))
}

fn merge(warnings: &[String], more: Vec<String>) -> Vec<String> {
    let mut all = warnings.to_vec();
    for text in more {
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}
