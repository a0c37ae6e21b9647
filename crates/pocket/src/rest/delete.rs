//! Delete: preconditions, grace periods, finalizers and propagation to dependents.

mod options;

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Machine, ObjectForm, Reply, Request, Served, broken, metadata, reply::finish, request::path,
};
use crate::{
    environment::rfc3339,
    status::{ApiError, Result},
    store::{self, Expect, Object, Put},
};

pub(crate) use options::{DeleteOptions, Propagation};

/// The finalizer that keeps an object until its dependents were orphaned.
pub(crate) const ORPHAN: &str = "orphan";
/// The finalizer that keeps an object until its blocking dependents are removed.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

const MAX_ATTEMPTS: usize = 16;

/// The outcome that a delete is heading for.
enum DeletePlan {
    /// Nothing keeps the object; this is its last state.
    Goes(Value),
    /// The object waits in this state.
    Waits(Value),
}

/// The request for a delete, with its warnings; `None` for the server's own deletes, which go
/// through no admission.
type DeleteRequest<'a> = Option<(&'a Request, &'a mut Vec<String>)>;

/// The result of a delete.
pub(crate) enum DeleteOutcome {
    /// The object was removed; this was its last state.
    Gone(Arc<Object>),
    /// The object waits for its grace period or for finalizers.
    Waiting(Arc<Object>),
}

impl DeleteOutcome {
    pub(crate) fn object(&self) -> &Arc<Object> {
        match self {
            Self::Gone(object) | Self::Waiting(object) => object,
        }
    }
}

impl Machine {
    pub(super) async fn delete(&self, request: &Request, served: &Arc<Served>) -> Result<Reply> {
        let options = DeleteOptions::of(request)?;
        let target = &request.target;
        let mut warnings = Vec::new();
        warnings.extend(options.warning(served));
        let mut asked = Some((request, &mut warnings));
        let deleted = self
            .remove_for(
                &mut asked,
                served,
                &target.namespace,
                &target.name,
                &options,
            )
            .await?;
        let waits = matches!(deleted, DeleteOutcome::Waiting(_));
        let reply = if served.traits().delete_returns_object || waits {
            // 202 for a client that wants the dependents removed, since they are not yet.
            let code = if waits && options.spares_nothing {
                StatusCode::ACCEPTED
            } else {
                StatusCode::OK
            };
            self.reply(request, served, code, deleted.object())?
        } else {
            let body = success(served, &target.name, deleted.object());
            Reply::value(StatusCode::OK, &body)
        };
        Ok(reply.with_warnings(warnings))
    }

    pub(super) async fn delete_collection(
        &self,
        request: &Request,
        served: &Arc<Served>,
    ) -> Result<Reply> {
        // The selectors are validated before the delete options.
        super::selection::Selection::of(request, served)?;
        let options = DeleteOptions::of(request)?;
        let listed = self.select(request, served).await?;
        let mut warnings = Vec::new();
        for object in &listed.objects {
            let metadata = object.metadata();
            let mut asked = Some((request, &mut warnings));
            match self
                .remove_for(
                    &mut asked,
                    served,
                    &metadata.namespace,
                    &metadata.name,
                    &options,
                )
                .await
            {
                // A concurrent delete removed it, which is what was wanted.
                Err(error) if error.code == StatusCode::NOT_FOUND => {}
                deleted => drop(deleted?),
            }
        }
        let mut request = request.clone();
        request.presentation.shown = ObjectForm::Whole;
        let body = self.render(&request, served, listed)?;
        Ok(finish(&request, StatusCode::OK, body)?.with_warnings(warnings))
    }

    /// Deletes one object in the server's own name, now or as soon as its finalizers are removed.
    /// No webhook is called: the delete follows from another one for which they were.
    pub(crate) async fn remove(
        &self,
        served: &Arc<Served>,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<DeleteOutcome> {
        self.remove_for(&mut None, served, namespace, name, options)
            .await
    }

    /// Deletes one object for a request, if there is one, with its warnings.
    async fn remove_for(
        &self,
        asked: &mut DeleteRequest<'_>,
        served: &Arc<Served>,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<DeleteOutcome> {
        let place = path(namespace, name);
        let mut marked: Option<Arc<Object>> = None;
        for _ in 0..MAX_ATTEMPTS {
            let head = self.head(served, &place);
            if let Some(head) = &head {
                self.settled(head.revision).await?;
            }
            let live = head.and_then(|head| head.object);
            // A controller removed it as soon as it was marked: that completed this delete.
            if let Some(ended) = marked.take_if(|ended| !is_same(ended, live.as_deref())) {
                return Ok(DeleteOutcome::Gone(ended));
            }
            let live = live.ok_or_else(|| served.not_found(name))?;
            let tried = self.try_remove(asked, &mut marked, served, &place, &live, options);
            if let Some(deleted) = tried.await? {
                return Ok(deleted);
            }
        }
        Err(served.stale(name))
    }

    /// `None` if a concurrent write was first; the state that was marked by then is `marked`.
    async fn try_remove(
        &self,
        asked: &mut DeleteRequest<'_>,
        marked: &mut Option<Arc<Object>>,
        served: &Arc<Served>,
        place: &str,
        live: &Arc<Object>,
        options: &DeleteOptions,
    ) -> Result<Option<DeleteOutcome>> {
        let old = live.value();
        options.check(served, &old, live.revision())?;
        served.may_delete(&old)?;
        if let Some((request, warnings)) = asked {
            self.confirm_delete(request, served, &old, warnings).await?;
        }
        let fate = self.fate(served, &old, options);
        if options.dry_run {
            return Ok(Some(match fate {
                DeletePlan::Goes(last) => DeleteOutcome::Gone(pretended(&last, live)),
                DeletePlan::Waits(new) => DeleteOutcome::Waiting(pretended(&new, live)),
            }));
        }
        match fate {
            DeletePlan::Goes(last) => {
                // An object with a grace period is shown as terminating before it is removed.
                if served.traits().grace.is_none() || last == old {
                    return self.take_away(served, place, live, &last).await;
                }
                *marked = self.mark(served, place, live, &last).await?;
                match marked {
                    Some(live) => self.take_away(served, place, live, &last).await,
                    None => Ok(None),
                }
            }
            DeletePlan::Waits(new) if new == old && live.hidden() == 0 => {
                Ok(Some(DeleteOutcome::Waiting(live.clone())))
            }
            DeletePlan::Waits(new) => Ok(self
                .put(served, place, live, &new)
                .await?
                .map(DeleteOutcome::Waiting)),
        }
    }

    /// Marks an object as terminating. `None` if a concurrent write was first.
    async fn mark(
        &self,
        served: &Served,
        place: &str,
        live: &Object,
        last: &Value,
    ) -> Result<Option<Arc<Object>>> {
        let now = self.environment.clock.now();
        let expect = Expect::Revision(live.revision());
        let put = Put::Object(last);
        let bucket = &served.resource.bucket;
        match self.view.write(bucket, place, expect, put, now).await? {
            Ok(object) => Ok(Some(object)),
            Err(store::Error::Conflict) => Ok(None),
            Err(error) => Err(broken(&error)),
        }
    }

    /// Removes an object that nothing keeps. `None` if a concurrent write was first.
    async fn take_away(
        &self,
        served: &Served,
        place: &str,
        live: &Object,
        last: &Value,
    ) -> Result<Option<DeleteOutcome>> {
        let now = self.environment.clock.now();
        let expect = Expect::Revision(live.revision());
        match self
            .view
            .write(&served.resource.bucket, place, expect, Put::Gone(last), now)
            .await?
        {
            Ok(object) => Ok(Some(DeleteOutcome::Gone(object))),
            Err(store::Error::Conflict) => Ok(None),
            Err(error) => Err(broken(&error)),
        }
    }

    fn fate(&self, served: &Served, old: &Value, options: &DeleteOptions) -> DeletePlan {
        let pending = old["metadata"]["deletionGracePeriodSeconds"].as_i64();
        let graceful = served.traits().grace.is_some() && metadata::is_deleting(old);
        if let Some(pending) = pending.filter(|seconds| *seconds > 0 && graceful) {
            return shortened(served, old, options, pending);
        }
        let mut new = old.clone();
        served.begin_removal(&mut new, &self.environment.timestamp());
        options.set_finalizers(served, &mut new);
        let grace = served.traits().grace.map(|grace| grace(old, options.grace));
        let stays = grace > Some(0) || is_kept(served, &new);
        // An object with a grace period gets a deletion timestamp, even when the period is zero.
        if !metadata::is_deleting(old) && (stays || grace.is_some()) {
            self.set_deadline(served, &mut new, grace.unwrap_or(0));
            served.without_grace(&mut new, old);
        }
        if stays {
            DeletePlan::Waits(new)
        } else {
            DeletePlan::Goes(new)
        }
    }

    fn set_deadline(&self, served: &Served, value: &mut Value, grace: i64) {
        let now = self.environment.clock.now();
        let until = now
            .saturating_add(jiff::SignedDuration::from_secs(grace))
            .unwrap_or(now);
        let fields = metadata::of(value);
        fields.insert("deletionTimestamp".into(), json!(rfc3339(until)));
        // A namespace is removed when it is empty, and not after a time.
        if !served.is_namespace() {
            fields.insert("deletionGracePeriodSeconds".into(), json!(grace));
        }
        metadata::count_removal(value);
    }
}

/// A repeated delete of an object in its grace period: it may only shorten the time, counted from
/// the first delete.
fn shortened(served: &Served, old: &Value, options: &DeleteOptions, pending: i64) -> DeletePlan {
    let mut new = old.clone();
    let Some(grace) = options.grace.filter(|grace| *grace < pending) else {
        return DeletePlan::Waits(new);
    };
    let until = metadata::text(old, "deletionTimestamp").parse::<jiff::Timestamp>();
    let earlier = jiff::SignedDuration::from_secs(pending - grace);
    if let Some(until) = until.ok().and_then(|until| until.checked_sub(earlier).ok()) {
        metadata::of(&mut new).insert("deletionTimestamp".into(), json!(rfc3339(until)));
    }
    metadata::of(&mut new).insert("deletionGracePeriodSeconds".into(), json!(grace));
    options.set_finalizers(served, &mut new);
    if grace > 0 || is_kept(served, &new) {
        DeletePlan::Waits(new)
    } else {
        DeletePlan::Goes(new)
    }
}

fn is_kept(served: &Served, value: &Value) -> bool {
    !metadata::finalizers(value).is_empty() || !served.nothing_left(value)
}

fn pretended(value: &Value, live: &Object) -> Arc<Object> {
    Arc::new(Object::pretended(value, live.revision()))
}

fn success(served: &Served, name: &str, object: &Object) -> Value {
    let mut details = json!({
        "name": name,
        "kind": served.resource.plural,
        "uid": &*object.metadata().uid,
    });
    if !served.resource.group.is_empty() {
        details["group"] = json!(served.resource.group);
    }
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}

/// The refusal of a delete whose preconditions do not hold. Unlike other conflicts it names the
/// kind and not the resource.
pub(super) fn precondition(served: &Served, name: &str, why: &str) -> ApiError {
    let resource = &served.resource;
    ApiError::conflict(&resource.group, &resource.kind, name, why)
}

/// Whether an object still exists, and is not another under its name.
fn is_same(object: &Object, live: Option<&Object>) -> bool {
    live.is_some_and(|live| live.metadata().uid == object.metadata().uid)
}
