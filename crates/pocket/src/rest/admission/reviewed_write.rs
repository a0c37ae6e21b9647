//! A write as webhooks are shown it: which object, under which names, with which options.

use std::sync::Arc;

use serde_json::{Value, json};

use super::AdmissionWrite;
use crate::{
    admission::{GroupVersionKind, GroupVersionResource, Operation},
    kinds::scale,
    rest::{
        DeleteOptions, Machine, Propagation, Request, Served, Verb, metadata, update::ObjectPart,
    },
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct ReviewedWrite<'a> {
    pub(crate) request: &'a Request,
    pub(crate) served: &'a Served,
    pub(crate) operation: Operation,
    pub(crate) face: ShownForm<'a>,
}

/// The form in which objects are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ShownForm<'a> {
    /// As stored, in any served version.
    Stored,
    /// As the Scale of the stored object.
    Scale(scale::Paths<'a>),
    /// As they are, of this kind.
    Plain(GroupVersionKind<'a>),
}

const SCALE: GroupVersionKind<'static> = GroupVersionKind {
    group: "autoscaling",
    version: "v1",
    kind: "Scale",
};

impl<'a> ReviewedWrite<'a> {
    /// A change of a stored object.
    pub(crate) fn of(change: AdmissionWrite<'a>) -> Self {
        let scale = change.served.scale();
        Self {
            request: change.request,
            served: change.served,
            operation: change.operation(),
            face: match scale {
                Some(paths) if change.part == ObjectPart::Other("scale") => ShownForm::Scale(paths),
                _ => ShownForm::Stored,
            },
        }
    }

    /// A delete of a stored object.
    pub(crate) fn delete(request: &'a Request, served: &'a Served) -> Self {
        Self {
            request,
            served,
            operation: Operation::Delete,
            face: ShownForm::Stored,
        }
    }

    /// An action on an object that is not stored.
    pub(crate) fn action(
        request: &'a Request,
        served: &'a Served,
        operation: Operation,
        kind: GroupVersionKind<'a>,
    ) -> Self {
        Self {
            request,
            served,
            operation,
            face: ShownForm::Plain(kind),
        }
    }

    /// The versions in which objects can be shown, the requested one first.
    pub(super) fn versions(&self, machine: &Machine) -> Vec<Arc<Served>> {
        let mut all = vec![Arc::new(self.served.clone())];
        if !matches!(self.face, ShownForm::Stored) {
            return all;
        }
        let groups = machine.registry.groups();
        let others = groups.values().flat_map(|plurals| plurals.values());
        all.extend(
            others
                .filter(|other| {
                    other.resource.bucket == self.served.resource.bucket
                        && other.api_version != self.served.api_version
                })
                .cloned(),
        );
        all
    }

    /// A stored or plain object as it is shown in a version.
    pub(super) fn shown(&self, version: &Served, object: &Value) -> Value {
        match self.face {
            ShownForm::Stored => version.converted(object.clone()),
            ShownForm::Scale(paths) => scale::read(&self.served.converted(object.clone()), &paths),
            ShownForm::Plain(_) => object.clone(),
        }
    }

    /// The kind under which objects are shown in a version.
    pub(super) fn kind<'v>(&self, version: &'v Served) -> GroupVersionKind<'v>
    where
        'a: 'v,
    {
        match self.face {
            ShownForm::Stored => GroupVersionKind {
                group: &version.resource.group,
                version: &version.version,
                kind: &version.resource.kind,
            },
            ShownForm::Scale(_) => SCALE,
            ShownForm::Plain(kind) => kind,
        }
    }

    /// The subresource, or empty.
    pub(super) fn subresource(&self) -> &'a str {
        self.request
            .target
            .subresource
            .as_deref()
            .unwrap_or_default()
    }

    /// The object's name: that of the URL, or of the object if it is new.
    pub(super) fn name<'v>(&'v self, object: Option<&'v Value>) -> &'v str {
        let name = &self.request.target.name;
        match object {
            Some(object) if name.is_empty() => metadata::text(object, "name"),
            _ => name,
        }
    }

    /// The namespace; for a namespace, its own name.
    pub(super) fn namespace<'v>(&'v self, name: &'v str) -> &'v str {
        if self.served.is_namespace() {
            name
        } else {
            &self.request.target.namespace
        }
    }

    /// The options of the request, as their own kind.
    pub(super) fn options(&self) -> Value {
        let kind = match self.operation {
            Operation::Create => "CreateOptions",
            Operation::Update => "UpdateOptions",
            Operation::Delete => return self.delete_options(),
            Operation::Connect => return Value::Null,
        };
        let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
        if self.request.dry_run().unwrap_or_default() {
            options["dryRun"] = json!(["All"]);
        }
        for key in ["fieldManager", "fieldValidation"] {
            if let Some(value) = self.request.parameter(key) {
                options[key] = json!(value);
            }
        }
        options
    }

    fn delete_options(&self) -> Value {
        let mut shown = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"});
        let Ok(options) = DeleteOptions::of(self.request) else {
            return shown;
        };
        if let Some(seconds) = options.grace {
            shown["gracePeriodSeconds"] = json!(seconds);
        }
        for (key, value) in [("uid", options.uid), ("resourceVersion", options.revision)] {
            if let Some(value) = value {
                shown["preconditions"][key] = json!(value);
            }
        }
        if let Some(policy) = options.propagation {
            shown["propagationPolicy"] = json!(match policy {
                Propagation::Orphan => "Orphan",
                Propagation::Background => "Background",
                Propagation::Foreground => "Foreground",
            });
        }
        if options.dry_run {
            shown["dryRun"] = json!(["All"]);
        }
        shown
    }

    /// Whether nothing will be stored.
    pub(super) fn dry_run(&self) -> bool {
        match self.request.verb {
            Verb::Delete | Verb::DeleteCollection => {
                DeleteOptions::of(self.request).is_ok_and(|options| options.dry_run)
            }
            _ => self.request.dry_run().unwrap_or_default(),
        }
    }
}

/// The name of a version of a resource.
pub(super) fn place(served: &Served) -> GroupVersionResource<'_> {
    GroupVersionResource {
        group: &served.resource.group,
        version: &served.version,
        plural: &served.resource.plural,
    }
}
