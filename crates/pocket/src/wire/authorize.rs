//! Authorization of a request, before its resource is looked up: a user who may not access a
//! resource gets the same refusal whether it is served or not.

use std::borrow::Cow;

use http::{Method, Request as HttpRequest};

use super::{Service, impersonate::Impersonation, route::meant};
use crate::{
    access::{AccessTarget, Attributes, Authorizer, Requester},
    rest::{User, is_yes},
    selector::FieldSelector,
    status::{ApiError, Result},
};

impl Service {
    /// The user that a request acts as: the caller, or the user they may impersonate. Refuses what
    /// that user may not do.
    pub(super) fn permit<B>(&self, caller: User, request: &HttpRequest<B>) -> Result<User> {
        let impersonation = Impersonation::read(request.headers())?;
        if impersonation.is_none() && caller.who().is_master() {
            return Ok(caller);
        }
        let path = meant(request.uri().path());
        let asked = RequestAttributes::read(request.method(), &path, request.uri().query());
        let access = &self.machine().access;
        let user = match impersonation {
            Some(impersonation) => impersonation.assume(access, caller.who(), &asked)?,
            None => caller,
        };
        let attributes = asked.by(user.who());
        permitted(access, &attributes)?;
        check_stream(access, &attributes)?;
        Ok(user)
    }
}

/// Running a command in a pod requires `create`, whatever method opens the stream.
fn check_stream(access: &Authorizer, attributes: &Attributes<'_>) -> Result<()> {
    let AccessTarget::Resource {
        group: "",
        resource: "pods",
        subresource: "exec" | "attach" | "portforward",
        name,
        ..
    } = attributes.what
    else {
        return Ok(());
    };
    let create = Attributes {
        verb: "create",
        ..*attributes
    };
    let decision = access.decide(&create);
    if decision.allowed {
        return Ok(());
    }
    Err(ApiError::forbidden("", "pods", name, &decision.reason))
}

/// 403 unless it is allowed.
pub(super) fn permitted(access: &Authorizer, attributes: &Attributes<'_>) -> Result<()> {
    if access.allows(attributes) {
        return Ok(());
    }
    Err(attributes.forbidden(&access.decide(attributes).reason))
}

/// A request as RBAC sees it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestAttributes<'a> {
    pub(super) verb: Cow<'static, str>,
    what: AccessTarget<'a>,
    /// The single object that a field selector leaves of a collection.
    only: Option<String>,
}

impl<'a> RequestAttributes<'a> {
    /// Parses a method, an unescaped path and a query.
    pub(super) fn read(method: &Method, path: &'a str, query: Option<&str>) -> Self {
        let plain = || Self {
            verb: method.as_str().to_ascii_lowercase().into(),
            what: AccessTarget::Path(path),
            only: None,
        };
        let mut parts = path.trim_matches('/').split('/');
        let group = match (parts.next(), path.trim_matches('/').split('/').count()) {
            (Some("api"), 3..) => "",
            (Some("apis"), 4..) => parts.next().unwrap_or_default(),
            _ => return plain(),
        };
        // Rules apply to all versions.
        parts.next();
        let mut parts = parts.peekable();
        let verb = match parts.peek() {
            Some(&"watch") => parts.next().map(|_| "watch"),
            Some(&"proxy") => parts.next().map(|_| "proxy"),
            _ => None,
        };
        let parts: Vec<&str> = parts.collect();
        let asked = Self {
            verb: verb.unwrap_or_else(|| verb_of(method)).into(),
            what: what(group, &parts),
            only: None,
        };
        asked.of_collection(query)
    }

    /// Without a name, the request is for a collection.
    fn of_collection(mut self, query: Option<&str>) -> Self {
        if !matches!(self.what, AccessTarget::Resource { name: "", .. }) {
            return self;
        }
        match &*self.verb {
            "get" => {
                let query = query.unwrap_or_default();
                let pairs = || form_urlencoded::parse(query.as_bytes());
                // Of a repeated parameter the first counts, as where the request is handled.
                let first = |name: &str| pairs().find(|(key, _)| key == name);
                let watches = first("watch").is_some_and(|(_, value)| is_yes(&value));
                self.verb = if watches { "watch" } else { "list" }.into();
                let selector = first("fieldSelector");
                let selector = selector.and_then(|(_, text)| FieldSelector::parse(&text).ok());
                self.only = selector.and_then(|s| s.exact_name().map(str::to_owned));
            }
            "delete" => self.verb = "deletecollection".into(),
            _ => {}
        }
        self
    }

    /// The attributes of the request for a user.
    pub(super) fn by<'b>(&'b self, who: Requester<'b>) -> Attributes<'b> {
        let mut what = self.what;
        if let (AccessTarget::Resource { name, .. }, Some(only)) = (&mut what, &self.only) {
            *name = only;
        }
        Attributes {
            who,
            verb: &self.verb,
            what,
        }
    }
}

/// The resource in the rest of a path, after group and version.
fn what<'a>(group: &'a str, parts: &[&'a str]) -> AccessTarget<'a> {
    let (namespace, parts) = match parts {
        // Subresources of a namespace look like resources inside it.
        ["namespaces", namespace, "status" | "finalize", ..] | ["namespaces", namespace] => {
            (*namespace, parts)
        }
        ["namespaces", namespace, inside @ ..] => (*namespace, inside),
        _ => ("", parts),
    };
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    AccessTarget::Resource {
        group,
        resource: part(0),
        subresource: part(2),
        name: part(1),
        namespace,
    }
}

fn verb_of(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" | "HEAD" => "get",
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
