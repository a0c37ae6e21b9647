//! Create: POST, and the two verbs that create a missing object.

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Machine, Reply, Request, Served,
    admission::AdmissionWrite,
    broken,
    hidden_parts::HiddenParts,
    incoming::{Origin, shape},
    metadata,
    own::DryRun,
    request::{Verb, path},
    update::{ObjectPart, check_change, is_untyped, merge, prepare},
};
use crate::{
    kinds::{WriteContext, metadata::dedup_owners},
    status::{ApiError, Problems, Result},
    store::{self, Expect, Object, Put},
};

/// Attempts to generate a free name.
const MAX_NAME_ATTEMPTS: usize = 8;

/// Where the managed fields of a new object come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldOwnership {
    /// The whole object is recorded for the request's manager.
    Whole,
    /// The caller has recorded them already.
    Done,
    /// Server-side apply has recorded them, and dropped this.
    Applied(HiddenParts),
}

impl FieldOwnership {
    /// What the object has beside what it shows.
    pub(super) fn hidden(self) -> HiddenParts {
        match self {
            Self::Applied(hidden) => hidden,
            Self::Whole | Self::Done => HiddenParts::default(),
        }
    }
}

impl Machine {
    pub(super) async fn create(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        let mut warnings = Vec::new();
        let payload = request.payload()?;
        let value = shape(request, served, payload, Origin::Body, &mut warnings)
            .map_err(|error| error.warned(&warnings))?;
        let object = self
            .insert(request, served, value, FieldOwnership::Whole, &mut warnings)
            .await
            .map_err(|error| error.warned(&warnings))?;
        let reply = self.reply(request, served, StatusCode::CREATED, &object)?;
        Ok(reply.with_warnings(warnings))
    }

    /// Stores a new object and returns it as stored; with a dry run, as it would be stored.
    pub(super) async fn insert(
        &self,
        request: &Request,
        served: &Served,
        mut value: Value,
        ownership: FieldOwnership,
        warnings: &mut Vec<String>,
    ) -> Result<Arc<Object>> {
        self.check_namespace(request, served).await?;
        served.check_not_ending(metadata::text(&value, "name"))?;
        warnings.extend(dedup_owners(&mut value));
        let asked = metadata::text(&value, "resourceVersion").to_owned();
        let has_revision = request.verb == Verb::Create && asked.parse().unwrap_or(0_u64) > 0;
        self.stamp(served, request, &mut value);
        served.check_alias(&mut value)?;
        served.to_storage(&mut value);
        served.default(&mut value);
        let part = match request.target.subresource.as_deref() {
            Some("status") => ObjectPart::Status,
            _ => ObjectPart::Main,
        };
        let untyped = ownership == FieldOwnership::Whole && is_untyped(served, &[&value]);
        // A status that is dropped has no owner, except when the object is created through its
        // status subresource: then it is dropped later.
        if part == ObjectPart::Main {
            served.drop_status(&mut value);
        }
        if untyped {
            metadata::of(&mut value).remove("managedFields");
        } else if ownership == FieldOwnership::Whole {
            self.record_ownership(request, served, part, None, &mut value)?;
        }
        served.forget_empty_lists(&mut value);
        served.drop_status(&mut value);
        let change = AdmissionWrite {
            request,
            served,
            part,
            old: None,
        };
        // What the server adds from here on has no owner.
        if self.mutate(change, &mut value, warnings).await? {
            served.drop_status(&mut value);
        }
        let generated = self.name(&mut value);
        self.check_grant(change, &value)?;
        if !admitted_first(change) {
            self.prepare_and_validate(change, &mut value, warnings)?;
        }
        self.check_may_create(request)?;
        let _held = self.settle(change, &mut value, warnings).await?;
        let dry = request.dry_run()?;
        if has_revision && !dry {
            let why = "resourceVersion should not be set on objects to be created";
            return Err(ApiError::failure(why));
        }
        if dry {
            if !asked.is_empty() {
                metadata::of(&mut value).insert("resourceVersion".into(), json!(asked));
            }
            return self.pretend_create(request, served, &value).await;
        }
        metadata::of(&mut value).remove("selfLink");
        let object = self.store_new(request, served, value, generated).await?;
        object.set_hidden(ownership.hidden().mark);
        if served.is_namespace() {
            self.create_standard_objects(&object.metadata().name).await;
        }
        Ok(object)
    }

    /// Brings an object into the form that its kind's rules validate, and validates it.
    pub(super) fn prepare_and_validate(
        &self,
        change: AdmissionWrite<'_>,
        value: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        let served = change.served;
        let Some(old) = change.old else {
            (served.rules().prepare_create)(value, &self.moment());
            check_new(served, value)?;
            served.settle_numbers(value);
            warnings.extend(served.warnings(value, None));
            return Ok(());
        };
        prepare(served, change.part, value, old);
        check_change(served, change.part, &change.request.target.name, value, old)?;
        served.settle_numbers(value);
        if matches!(change.part, ObjectPart::Main | ObjectPart::Other("scale")) {
            *warnings = merge(warnings, served.warnings(value, Some(old)));
        }
        Ok(())
    }

    pub(super) fn moment(&self) -> WriteContext {
        let mut seed = [0; 8];
        self.environment.entropy.fill(&mut seed);
        WriteContext {
            now: self.environment.clock.now(),
            seed: u64::from_le_bytes(seed),
        }
    }

    /// Generates a name if only generateName was given. True if it did.
    fn name(&self, value: &mut Value) -> bool {
        let base = metadata::text(value, "generateName").to_owned();
        if !metadata::text(value, "name").is_empty() || base.is_empty() {
            return false;
        }
        let name = self.generate_name(&base);
        metadata::of(value).insert("name".into(), json!(name));
        true
    }

    async fn pretend_create(
        &self,
        request: &Request,
        served: &Served,
        value: &Value,
    ) -> Result<Arc<Object>> {
        let place = path(&request.target.namespace, metadata::text(value, "name"));
        if self
            .head(served, &place)
            .is_some_and(|head| head.object.is_some())
        {
            return self.taken(served, &place, value).await;
        }
        // A client that looks must not find an object that was about to be removed.
        self.settle_head(served, &place).await?;
        pretended(Object::unstored(value))
    }

    async fn store_new(
        &self,
        request: &Request,
        served: &Served,
        mut value: Value,
        generated: bool,
    ) -> Result<Arc<Object>> {
        let bucket = &served.resource.bucket;
        for _ in 0..MAX_NAME_ATTEMPTS {
            let place = path(&request.target.namespace, metadata::text(&value, "name"));
            let now = self.environment.clock.now();
            let put = Put::Object(&value);
            match self
                .view
                .write(bucket, &place, Expect::Absent, put, now)
                .await?
            {
                Ok(object) => return Ok(object),
                Err(store::Error::Conflict) if generated => {
                    let base = metadata::text(&value, "generateName").to_owned();
                    let name = self.generate_name(&base);
                    metadata::of(&mut value).insert("name".into(), json!(name));
                }
                Err(store::Error::Conflict) => return self.taken(served, &place, &value).await,
                Err(error) => return Err(broken(&error)),
            }
        }
        let name = metadata::text(&value, "generateName");
        Err(not_generated(served.already_exists(name)))
    }

    /// The error for a taken name; returned only once the object that has it is committed.
    async fn taken(&self, served: &Served, place: &str, value: &Value) -> Result<Arc<Object>> {
        self.settle_head(served, place).await?;
        let mut error = served.already_exists(metadata::text(value, "name"));
        if !metadata::text(value, "generateName").is_empty() {
            error = not_generated(error);
        }
        let head = self.head(served, place).and_then(|head| head.object);
        if head.is_some_and(|object| metadata::is_deleting(&object.value())) {
            error.message.insert_str(0, "object is being deleted: ");
        }
        Err(error)
    }

    /// Runs the kind's rules that read other objects. They see writes that are not committed yet,
    /// so a refusal waits until these are.
    pub(super) async fn admit(
        &self,
        served: &Served,
        value: &mut Value,
        old: Option<&Value>,
        is_dry_run: bool,
    ) -> Result<(), ApiError> {
        let Some(admit) = served.rules().admit else {
            return Ok(());
        };
        let admitted = if is_dry_run {
            admit(value, old, &DryRun(self))
        } else {
            admit(value, old, self)
        };
        if admitted.is_err() {
            self.settle_all().await?;
        }
        admitted
    }
}

/// The error for a taken name when generateName was given too, used or not.
fn not_generated(mut error: ApiError) -> ApiError {
    let why = ", the server was not able to generate a unique name for the object";
    error.message.push_str(why);
    error.retry_after = Some(1);
    error
}

/// The result of a dry run, unless the object could not be stored.
pub(super) fn pretended(object: Object) -> Result<Arc<Object>> {
    object.check_size().map_err(|error| broken(&error))?;
    Ok(Arc::new(object))
}

/// Whether the kind validates what is allocated, so that its rules run after that.
pub(super) fn admitted_first(change: AdmissionWrite<'_>) -> bool {
    change.part == ObjectPart::Main && change.served.traits().admitted_first
}

fn check_new(served: &Served, value: &Value) -> Result<()> {
    let mut problems = Problems::new();
    served.validate(value, None, &mut problems);
    served.refuse_object(value, metadata::text(value, "name"), &problems)
}
