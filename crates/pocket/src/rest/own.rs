//! The server's own writes: follow-ups of writes, and objects it creates itself.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use super::{
    Machine, Presentation, Request, Served, Target, User, Verb, broken, create::FieldOwnership,
    metadata, registry::is_established,
};
use crate::{
    crd,
    environment::BoxFuture,
    kinds::{self, Cluster, DEFINITIONS, KindRole, Settings},
    status::Result,
    store::{self, Expect, Object, Put},
};

/// The manager of fields that the server sets.
const SELF: &str = "kube-apiserver";

impl Machine {
    /// Creates an object in the server's own name; an existing one is left as it is.
    pub(crate) async fn create_own(
        &self,
        bucket: &str,
        namespace: &str,
        value: Value,
    ) -> Result<()> {
        let served = self.stored_in(bucket)?;
        let value = typed(&served, value);
        let request = own_request(&served, Verb::Create, namespace, "");
        match self
            .insert(
                &request,
                &served,
                value,
                FieldOwnership::Whole,
                &mut Vec::new(),
            )
            .await
        {
            Err(error) if error.code == StatusCode::CONFLICT => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Ok(()),
        }
    }

    /// The resource that is stored in a bucket.
    pub(super) fn stored_in(&self, bucket: &str) -> Result<Arc<Served>> {
        self.registry
            .by_bucket(bucket)
            .ok_or_else(super::registry::missing)
    }

    /// Creates the standard objects of a new namespace before the create is answered, so that the
    /// client can create a pod at once.
    pub(super) fn create_standard_objects(&self, namespace: &str) -> BoxFuture<()> {
        // Not through the caller's view: its hooks are for the caller's writes.
        let own = self.with_view(self.view.another(None));
        let namespace = namespace.to_owned();
        Box::pin(async move {
            if let Err(error) = own.ensure_standard_objects(&namespace).await {
                // Housekeeping retries.
                tracing::debug!(%namespace, %error, "the standard objects of the namespace could not be created at once");
            }
        })
    }

    /// Creates the missing standard objects of a namespace.
    pub(crate) async fn ensure_standard_objects(&self, namespace: &str) -> Result<()> {
        for (bucket, name) in kinds::STANDARD_OBJECTS {
            if self
                .head_of(bucket, &super::path(namespace, name))
                .is_some()
            {
                continue;
            }
            if let Some(object) = kinds::standard_object(bucket, self.root_ca.as_deref()) {
                self.create_own(bucket, namespace, object).await?;
            }
        }
        Ok(())
    }

    /// Stores a new state of `seen`, or removes the object if that was all it waited for. `None` if
    /// a concurrent write was first.
    pub(crate) async fn put(
        &self,
        served: &Served,
        place: &str,
        seen: &Object,
        new: &Value,
    ) -> Result<Option<Arc<Object>>> {
        let ends = ends(served, new);
        // The state that released the object was never stored: watchers are shown the one before.
        let last = ends.then(|| seen.value());
        let put = last.as_ref().map_or(Put::Object(new), Put::Gone);
        let now = self.environment.clock.now();
        let expect = Expect::Revision(seen.revision());
        match self
            .view
            .write(&served.resource.bucket, place, expect, put, now)
            .await?
        {
            Ok(_) if ends => Ok(Some(Arc::new(Object::pretended(new, seen.revision())))),
            Ok(object) => Ok(Some(object)),
            Err(store::Error::Conflict) => Ok(None),
            Err(error) => Err(broken(&error)),
        }
    }

    /// Accepts or refuses the names of a definition, in its status.
    pub(crate) fn accept(&self, served: &Served, value: &mut Value) {
        if served.role != KindRole::Definition {
            return;
        }
        let conflict = self.name_conflict(value);
        crd::accept(value, &self.environment.timestamp(), conflict.as_ref());
    }

    /// Shows a definition as it would be before its names are accepted.
    pub(crate) fn propose(served: &Served, value: &mut Value) {
        if served.role == KindRole::Definition {
            crd::propose(value);
        }
    }

    /// The names of the resources of a group, including those of pending writes.
    fn names_in(&self, group: &str) -> Vec<crd::ResourceNames> {
        let stored = self.registry.stored();
        let served = stored.iter().map(|served| &served.resource);
        let mut names: Vec<_> = served
            .filter(|resource| resource.group == group)
            .map(|resource| resource.names())
            .collect();
        // The requests of these may have been cancelled, and their turns released.
        let coming = self.view.store().pending(DEFINITIONS);
        let coming = coming.iter().map(|object| object.value());
        names.extend(
            coming
                .filter(|value| value["spec"]["group"] == group && is_established(value))
                .map(|value| crd::Definition::read(&value).names),
        );
        names
    }

    /// A name of a definition that another resource of its group has.
    fn name_conflict(&self, value: &Value) -> Option<crd::NameConflict> {
        let spec = &value["spec"]["names"];
        let group = value["spec"]["group"].as_str().unwrap_or_default();
        let plural = spec["plural"].as_str().unwrap_or_default();
        let mut others = self.names_in(group);
        others.retain(|other| other.plural != plural);
        let resource = |name: &str| {
            let mut all = others.iter();
            all.any(|o| {
                o.plural == name || o.singular == name || o.short_names.iter().any(|s| s == name)
            })
        };
        let kind = |name: &str| others.iter().any(|o| o.kind == name || o.list_kind == name);
        let is_text = |field: &str, taken: &dyn Fn(&str) -> bool| {
            let name = spec[field].as_str().filter(|name| !name.is_empty())?;
            taken(name).then(|| name.to_owned())
        };
        let short = spec["shortNames"].as_array().into_iter().flatten();
        let mut short = short.filter_map(Value::as_str);
        let (reason, name) = None
            .or_else(|| Some(("PluralConflict", is_text("plural", &resource)?)))
            .or_else(|| Some(("SingularConflict", is_text("singular", &resource)?)))
            .or_else(|| {
                Some((
                    "ShortNamesConflict",
                    short.find(|n| resource(n))?.to_owned(),
                ))
            })
            .or_else(|| Some(("KindConflict", is_text("kind", &kind)?)))
            .or_else(|| Some(("ListKindConflict", is_text("listKind", &kind)?)))?;
        let message = format!("\"{name}\" is already in use");
        Some(crd::NameConflict { reason, message })
    }
}

/// A request in the server's own name.
pub(super) fn own_request(served: &Served, verb: Verb, namespace: &str, name: &str) -> Request {
    Request {
        verb,
        target: Target {
            group: served.resource.group.clone(),
            version: served.version.clone(),
            plural: served.resource.plural.clone(),
            namespace: namespace.into(),
            name: name.into(),
            subresource: None,
        },
        query: Vec::new(),
        body: None,
        content_type: String::new(),
        presentation: Presentation::default(),
        user_agent: SELF.into(),
        user: User::server(),
    }
}

/// The object with its kind.
pub(super) fn typed(served: &Served, mut value: Value) -> Value {
    value["apiVersion"] = served.api_version.clone().into();
    value["kind"] = served.resource.kind.clone().into();
    value
}

/// Whether an object in this state is removed, because nothing keeps it any more.
pub(super) fn ends(served: &Served, value: &Value) -> bool {
    metadata::is_deleting(value)
        && metadata::finalizers(value).is_empty()
        && served.nothing_left(value)
        && value["metadata"]["deletionGracePeriodSeconds"]
            .as_i64()
            .unwrap_or(0)
            == 0
}

impl Cluster for Machine {
    fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let head = self
            .view
            .store()
            .head(&format!("{group}/{plural}"), &super::path(namespace, name))?;
        head.object.map(|object| object.value())
    }

    fn list(&self, group: &str, plural: &str, namespace: &str) -> Vec<Value> {
        let heads = self
            .view
            .store()
            .heads(&format!("{group}/{plural}"), namespace);
        heads.iter().map(|object| object.value()).collect()
    }

    fn settings(&self) -> &Settings {
        &self.settings
    }
}

/// The cluster as a dry run sees it.
pub(super) struct DryRun<'a>(pub(super) &'a Machine);

impl Cluster for DryRun<'_> {
    fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        Cluster::get(self.0, group, plural, namespace, name)
    }

    fn list(&self, group: &str, plural: &str, namespace: &str) -> Vec<Value> {
        Cluster::list(self.0, group, plural, namespace)
    }

    fn settings(&self) -> &Settings {
        &self.0.settings
    }

    fn is_dry_run(&self) -> bool {
        true
    }
}

impl Machine {
    /// Creates the objects of a new server: its first namespaces, its own Service, the bootstrap
    /// roles.
    pub(crate) async fn bootstrap(&self, port: u16) -> Result<()> {
        for name in kinds::FIRST_NAMESPACES {
            let namespace = serde_json::json!({"metadata": {"name": name}});
            if self.head_of(kinds::NAMESPACES, name).is_none() {
                self.create_own(kinds::NAMESPACES, "", namespace).await?;
            }
        }
        for class in kinds::system_classes() {
            let name = metadata::text(&class, "name").to_owned();
            if self.head_of(kinds::PRIORITY_CLASSES, &name).is_none() {
                self.create_own(kinds::PRIORITY_CLASSES, "", class).await?;
            }
        }
        if self.head_of("/services", "default/kubernetes").is_none() {
            let service = kinds::own_service(port, &self.settings);
            self.create_own("/services", "default", service).await?;
        }
        self.ensure_bootstrap_roles().await
    }

    pub(super) fn head_of(&self, bucket: &str, place: &str) -> Option<Arc<Object>> {
        self.view.store().head(bucket, place)?.object
    }
}
