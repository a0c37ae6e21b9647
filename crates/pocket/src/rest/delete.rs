//! Delete: preconditions, grace, finalizers and what becomes of dependents.

mod options;

use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    Machine, Reply, Request, Served, Shown, broken, metadata, reply::finish, request::path,
};
use crate::{
    environment::rfc3339,
    status::{ApiError, Result},
    store::{self, Expect, Object, Put},
};

pub(crate) use options::{DeleteOptions, Propagation};

/// Keeps an object until its dependents were orphaned.
pub(crate) const ORPHAN: &str = "orphan";
/// Keeps an object until its blocking dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

const ATTEMPTS: usize = 16;

/// What a delete is going to do.
enum Fate {
    /// Nothing keeps the object; this is its last state.
    Goes(Value),
    /// The object waits in this state.
    Waits(Value),
}

/// Who asks for a delete, with room for what they are warned of; the server itself asks nobody.
type Asked<'a> = Option<(&'a Request, &'a mut Vec<String>)>;

/// What a delete did.
pub(crate) enum Deleted {
    /// The object is gone; this was its last state.
    Gone(Arc<Object>),
    /// The object waits for its grace period or for finalizers.
    Waiting(Arc<Object>),
}

impl Deleted {
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
        let waits = matches!(deleted, Deleted::Waiting(_));
        let reply = if served.traits().delete_returns_object || waits {
            // Who asks for its dependents to go is told that they have not yet.
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
        // What is meant is looked at before how it is to go.
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
                // Somebody else removed it meanwhile, which is what was wanted.
                Err(error) if error.code == StatusCode::NOT_FOUND => {}
                deleted => drop(deleted?),
            }
        }
        let mut request = request.clone();
        request.presentation.shown = Shown::Whole;
        let body = self.render(&request, served, listed)?;
        Ok(finish(&request, StatusCode::OK, body)?.with_warnings(warnings))
    }

    /// Deletes one object in the server's own name, now or as soon as everybody has let go of it.
    /// No webhook is asked: what is removed here follows from a delete of which they were.
    pub(crate) async fn remove(
        &self,
        served: &Arc<Served>,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted> {
        self.remove_for(&mut None, served, namespace, name, options)
            .await
    }

    /// Deletes one object for a request, if there is one, with room for what it is warned of.
    async fn remove_for(
        &self,
        asked: &mut Asked<'_>,
        served: &Arc<Served>,
        namespace: &str,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<Deleted> {
        let place = path(namespace, name);
        let mut marked: Option<Arc<Object>> = None;
        for _ in 0..ATTEMPTS {
            let head = self.head(served, &place);
            if let Some(head) = &head {
                self.settled(head.revision).await?;
            }
            let live = head.and_then(|head| head.object);
            // Whoever looks after it removed it as soon as it was seen to go: that was this delete.
            if let Some(ended) = marked.take_if(|ended| !is_same(ended, live.as_deref())) {
                return Ok(Deleted::Gone(ended));
            }
            let live = live.ok_or_else(|| served.not_found(name))?;
            let tried = self.try_remove(asked, &mut marked, served, &place, &live, options);
            if let Some(deleted) = tried.await? {
                return Ok(deleted);
            }
        }
        Err(served.stale(name))
    }

    /// `None` if somebody was faster; what was seen to go by then is `marked`.
    async fn try_remove(
        &self,
        asked: &mut Asked<'_>,
        marked: &mut Option<Arc<Object>>,
        served: &Arc<Served>,
        place: &str,
        live: &Arc<Object>,
        options: &DeleteOptions,
    ) -> Result<Option<Deleted>> {
        let old = live.value();
        options.check(served, &old, live.revision())?;
        served.may_delete(&old)?;
        if let Some((request, warnings)) = asked {
            self.confirm_delete(request, served, &old, warnings).await?;
        }
        let fate = self.fate(served, &old, options);
        if options.dry_run {
            return Ok(Some(match fate {
                Fate::Goes(last) => Deleted::Gone(pretended(&last, live)),
                Fate::Waits(new) => Deleted::Waiting(pretended(&new, live)),
            }));
        }
        match fate {
            Fate::Goes(last) => {
                // Whoever has a grace period is seen to end before it is gone.
                if served.traits().grace.is_none() || last == old {
                    return self.take_away(served, place, live, &last).await;
                }
                *marked = self.mark(served, place, live, &last).await?;
                match marked {
                    Some(live) => self.take_away(served, place, live, &last).await,
                    None => Ok(None),
                }
            }
            Fate::Waits(new) if new == old && live.unseen() == 0 => {
                Ok(Some(Deleted::Waiting(live.clone())))
            }
            Fate::Waits(new) => Ok(self
                .put(served, place, live, &new)
                .await?
                .map(Deleted::Waiting)),
        }
    }

    /// Shows an object as it is about to go. `None` if somebody was faster.
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

    /// Removes an object that nothing keeps. `None` if somebody was faster.
    async fn take_away(
        &self,
        served: &Served,
        place: &str,
        live: &Object,
        last: &Value,
    ) -> Result<Option<Deleted>> {
        let now = self.environment.clock.now();
        let expect = Expect::Revision(live.revision());
        match self
            .view
            .write(&served.resource.bucket, place, expect, Put::Gone(last), now)
            .await?
        {
            Ok(object) => Ok(Some(Deleted::Gone(object))),
            Err(store::Error::Conflict) => Ok(None),
            Err(error) => Err(broken(&error)),
        }
    }

    fn fate(&self, served: &Served, old: &Value, options: &DeleteOptions) -> Fate {
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
        // Whoever has a grace period is told of its end, even when it had no time at all.
        if !metadata::is_deleting(old) && (stays || grace.is_some()) {
            self.set_deadline(served, &mut new, grace.unwrap_or(0));
            served.without_grace(&mut new, old);
        }
        if stays {
            Fate::Waits(new)
        } else {
            Fate::Goes(new)
        }
    }

    fn set_deadline(&self, served: &Served, value: &mut Value, grace: i64) {
        let now = self.environment.clock.now();
        let until = now
            .saturating_add(jiff::SignedDuration::from_secs(grace))
            .unwrap_or(now);
        let fields = metadata::of(value);
        fields.insert("deletionTimestamp".into(), json!(rfc3339(until)));
        // A namespace ends when it is empty, and not after some time.
        if !served.is_namespace() {
            fields.insert("deletionGracePeriodSeconds".into(), json!(grace));
        }
        metadata::count_removal(value);
    }
}

/// What a further delete does to an object in its grace period: it may only have less time,
/// counted from the first delete.
fn shortened(served: &Served, old: &Value, options: &DeleteOptions, pending: i64) -> Fate {
    let mut new = old.clone();
    let Some(grace) = options.grace.filter(|grace| *grace < pending) else {
        return Fate::Waits(new);
    };
    let until = metadata::text(old, "deletionTimestamp").parse::<jiff::Timestamp>();
    let earlier = jiff::SignedDuration::from_secs(pending - grace);
    if let Some(until) = until.ok().and_then(|until| until.checked_sub(earlier).ok()) {
        metadata::of(&mut new).insert("deletionTimestamp".into(), json!(rfc3339(until)));
    }
    metadata::of(&mut new).insert("deletionGracePeriodSeconds".into(), json!(grace));
    options.set_finalizers(served, &mut new);
    if grace > 0 || is_kept(served, &new) {
        Fate::Waits(new)
    } else {
        Fate::Goes(new)
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

/// Whether an object is still there, and not another under its name.
fn is_same(object: &Object, live: Option<&Object>) -> bool {
    live.is_some_and(|live| live.metadata().uid == object.metadata().uid)
}
