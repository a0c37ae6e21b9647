//! The scale subresource: the replicas of many kinds, read and written the same way.
//!
//! A Scale is made from the object, changed as an object of its own would be, managed fields
//! included, and then written back into the object that it was made from.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use crate::{
    kinds::scale::{self, Paths},
    patch::{
        apply,
        managed::{self, Element, Managers, scaled},
    },
    rest::{
        Machine, Reply, Request, Served, Verb,
        apply::applied_config,
        create::FieldOwnership,
        incoming::{Payload, check_place, nameless, unhandled, unregistered},
        metadata,
        ownership::OwnedStamp,
        patch::{Language, language},
        registry::missing,
        reply::finish,
        request::APPLY_YAML,
        update::{ObjectPart, Proposal},
    },
    schema::{self, Schema, conform},
    status::{ApiError, Problems, Result},
    store::Object,
};

const SCALE: ObjectPart = ObjectPart::Other("scale");

/// A requested change of a Scale.
enum ScaleChange {
    Put(Value),
    Patch(Language, Payload),
    Apply(Value),
}

/// One write to the Scale of an object.
struct ScaleWrite<'a> {
    request: &'a Request,
    served: &'a Served,
    paths: Paths<'a>,
    schema: Schema<'static>,
    owned: OwnedStamp,
}

impl Machine {
    pub(super) async fn scale(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        let paths = served.scale().ok_or_else(missing)?;
        if request.verb == Verb::Get {
            let object = self.read(request, served).await?;
            return show_scale(request, served, &paths, &object);
        }
        if request.verb == Verb::Patch && request.content_type != APPLY_YAML {
            language(request, served)?;
        }
        let writing = ScaleWrite {
            request,
            served,
            paths,
            schema: schema::of_kind("autoscaling", "v1", "Scale").ok_or_else(missing)?,
            owned: self.owned_stamp(request, served, SCALE)?,
        };
        if request.content_type == APPLY_YAML {
            self.present(request, served).await?;
        }
        let mut warnings = Vec::new();
        let wish = writing.wish(&mut warnings)?;
        let mut told = Vec::new();
        let object = self
            .modify(request, served, SCALE, &mut warnings, |old| {
                told.clear();
                writing.propose(&wish, old, &mut told)
            })
            .await;
        warnings.extend(told);
        let object = object.map_err(|error| error.warned(&warnings))?;
        let reply = show_scale(request, served, &paths, &object)?;
        Ok(reply.with_warnings(warnings))
    }
}

impl ScaleWrite<'_> {
    fn wish(&self, warnings: &mut Vec<String>) -> Result<ScaleChange> {
        if self.request.verb == Verb::Update {
            return self
                .put(self.request.payload()?, warnings)
                .map(ScaleChange::Put);
        }
        if self.request.content_type == APPLY_YAML {
            let config = applied_config(self.request, "Scale", scaled::VERSION, warnings)?;
            return Ok(ScaleChange::Apply(config));
        }
        let language = language(self.request, self.served)?;
        Ok(ScaleChange::Patch(language, self.request.payload()?))
    }

    fn put(&self, payload: Payload, warnings: &mut Vec<String>) -> Result<Value> {
        let mut scale = payload.value;
        let unread = |error| {
            if self.served.is_custom() {
                ApiError::bad_request(
                    "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"",
                )
            } else {
                error
            }
        };
        let (kind, version) = called(&scale);
        if (kind, version) != ("Scale", scaled::VERSION) {
            return Err(unread(unhandled(("autoscaling", "Scale"), kind, version)));
        }
        let conformed =
            conform::conform(self.schema, &mut scale, "Scale", scaled::VERSION).map_err(unread)?;
        let mode = self.request.field_validation()?;
        let judged = mode.check(
            &conformed.unknown,
            &payload.duplicates,
            "Scale",
            scaled::VERSION,
        );
        warnings.extend(judged.map_err(unread)?);
        if metadata::text(&scale, "name").is_empty() {
            return Err(nameless(&self.request.target.name));
        }
        check_place(self.request, self.served, &mut scale)?;
        Ok(scale)
    }

    fn propose(
        &self,
        wish: &ScaleChange,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<Proposal> {
        let place = |version: &str| self.served.number(version);
        let owners = Managers::of(old).unwrap_or_default();
        let mut current = scale::read(&self.served.converted(old.clone()), &self.paths);
        let entries = scaled::shown(&owners, &place).encode();
        managed::put_managed_fields(&mut current, entries);
        let mut wanted = self.wanted(wish, &current, warnings)?;
        self.check(&wanted, old)?;
        if !matches!(wish, ScaleChange::Apply(_)) {
            let stamp = self.owned.stamp();
            managed::track_update(self.schema, Some(&current), &mut wanted, &stamp);
        }
        let mut value = old.clone();
        scale::write(&mut value, &wanted, &self.paths);
        let scaled = Managers::of(&wanted).unwrap_or_default();
        let owners = scaled::carried_back(&owners, &scaled, &self.served.api_version, &place);
        managed::put_managed_fields(&mut value, owners.encode());
        copy_preconditions(&mut value, &wanted);
        Ok(Proposal {
            value,
            ownership: FieldOwnership::Done,
        })
    }

    fn wanted(
        &self,
        wish: &ScaleChange,
        current: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<Value> {
        let mut wanted = match wish {
            ScaleChange::Put(scale) => return Ok(scale.clone()),
            ScaleChange::Patch(language, payload) => {
                self.patched(*language, current, payload, warnings)?
            }
            ScaleChange::Apply(config) => self.applied(current, config)?,
        };
        check_place(self.request, self.served, &mut wanted)?;
        Ok(wanted)
    }

    fn patched(
        &self,
        language: Language,
        current: &Value,
        payload: &Payload,
        warnings: &mut Vec<String>,
    ) -> Result<Value> {
        let mut wanted =
            language.change(self.request, self.schema, current.clone(), &payload.value)?;
        let (kind, version) = called(&wanted);
        if (kind, version) != ("Scale", scaled::VERSION) {
            return Err(conform::unreadable_patch(&unregistered(kind, version)));
        }
        let conformed = match language {
            Language::Strategic => conform::conform_merged(self.schema, &mut wanted, "Scale")
                .map_err(|why| conform::unreadable_patch(&why))?,
            _ => conform::conform_patched(self.schema, &mut wanted, "Scale")?,
        };
        let mode = self.request.field_validation()?;
        warnings.extend(mode.check_patch(&conformed.unknown, &payload.duplicates)?);
        Ok(wanted)
    }

    fn applied(&self, current: &Value, config: &Value) -> Result<Value> {
        if self.served.is_custom() && current["metadata"].get("managedFields").is_none() {
            return Err(ApiError::failure(format!(
                "failed to create manager for existing fields: failed to convert live object \
                 (/; {version}, Kind=Scale) to proper version: \
                 request to convert CR to an invalid group/version: {version}",
                version = scaled::VERSION,
            )));
        }
        let stamp = self.owned.stamp();
        let force = self.request.flag("force");
        let applied = apply::apply(self.schema, Some(current), config, &stamp, force)?;
        let mut wanted = applied.object;
        if self.served.is_custom() && !managed::same_but_entries(current, &wanted) {
            // kube-apiserver converts a Scale as if it were the custom object, which always fails.
            return Err(ApiError::failure(format!(
                "failed to convert new object ({}/{}; {version}, Kind=Scale) to proper version: \
                 request to convert CR to an invalid group/version: {version}",
                metadata::text(config, "namespace"),
                metadata::text(config, "name"),
                version = scaled::VERSION,
            )));
        }
        conform::conform_merged(self.schema, &mut wanted, "Scale").map_err(ApiError::failure)?;
        Ok(wanted)
    }

    /// Custom objects are validated with the new replicas in them, and a patch of their Scale may
    /// have any uid.
    fn check(&self, wanted: &Value, old: &Value) -> Result<()> {
        if self.served.is_custom() {
            return Ok(());
        }
        let name = &self.request.target.name;
        let (uid, stored) = (metadata::text(wanted, "uid"), metadata::text(old, "uid"));
        let another = !uid.is_empty() && uid != stored;
        if another && self.request.verb == Verb::Update {
            // The writer refuses it, whatever the number is.
            return Ok(());
        }
        let mut problems = Problems::new();
        scale::validate(wanted, &mut problems);
        if !problems.is_empty() {
            return Err(ApiError::invalid("autoscaling", "Scale", name, &problems));
        }
        if another {
            let resource = &self.served.resource;
            let plural = format!("{}/scale", resource.plural);
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {stored}"
            );
            return Err(ApiError::conflict(&resource.group, &plural, name, &why));
        }
        Ok(())
    }
}

impl Served {
    /// The path of the replicas in a version.
    fn number(&self, api_version: &str) -> Option<Vec<Element>> {
        let path = self.number_path(api_version)?;
        let steps = path.split('.').filter(|step| !step.is_empty());
        Some(steps.map(Element::field).collect())
    }
}

/// Kind and version of a body; one without them is a Scale.
fn called(scale: &Value) -> (&str, &str) {
    let text = |field: &str, default| {
        let text = scale[field].as_str().filter(|text| !text.is_empty());
        text.unwrap_or(default)
    };
    (text("kind", "Scale"), text("apiVersion", scaled::VERSION))
}

fn show_scale(
    request: &Request,
    served: &Served,
    paths: &Paths<'_>,
    object: &Arc<Object>,
) -> Result<Reply> {
    let scale = scale::read(&served.value(object), paths);
    finish(request, StatusCode::OK, scale.to_string().into())
}

/// Copies the uid and resourceVersion of a scale or binding, which are preconditions on the object.
pub(super) fn copy_preconditions(value: &mut Value, sent: &Value) {
    for field in ["resourceVersion", "uid"] {
        if let Some(named) = sent["metadata"].get(field) {
            value["metadata"][field] = named.clone();
        }
    }
}
