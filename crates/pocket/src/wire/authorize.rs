//! Whether a request may be answered, decided before anybody looks whether there is anything to
//! answer: what is not served is refused to those who may not ask for it, as if it were.

use std::borrow::Cow;

use http::{Method, Request as HttpRequest};

use super::{Service, impersonate::Impersonation, route::meant};
use crate::{
    access::{Access, Attributes, What, Who},
    rest::{User, is_yes},
    selector::FieldSelector,
    status::{ApiError, Result},
};

impl Service {
    /// In whose name a request is answered: the caller's, or whom they may stand in for. Refuses
    /// what that user may not do.
    pub(super) fn permit<B>(&self, caller: User, request: &HttpRequest<B>) -> Result<User> {
        let impersonation = Impersonation::read(request.headers())?;
        if impersonation.is_none() && caller.who().is_master() {
            return Ok(caller);
        }
        let path = meant(request.uri().path());
        let asked = Asked::read(request.method(), &path, request.uri().query());
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

/// Whoever runs something in a pod changes it, by whatever method a stream is opened.
fn check_stream(access: &Access, attributes: &Attributes<'_>) -> Result<()> {
    let What::Resource {
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

/// 403 unless it may be done.
pub(super) fn permitted(access: &Access, attributes: &Attributes<'_>) -> Result<()> {
    if access.allows(attributes) {
        return Ok(());
    }
    Err(attributes.forbidden(&access.decide(attributes).reason))
}

/// What a request asks for, as roles see it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked<'a> {
    pub(super) verb: Cow<'static, str>,
    what: What<'a>,
    /// The one object that a selector leaves of a collection.
    only: Option<String>,
}

impl<'a> Asked<'a> {
    /// Reads a method, a path without escapes and a query.
    pub(super) fn read(method: &Method, path: &'a str, query: Option<&str>) -> Self {
        let plain = || Self {
            verb: method.as_str().to_ascii_lowercase().into(),
            what: What::Path(path),
            only: None,
        };
        let mut parts = path.trim_matches('/').split('/');
        let group = match (parts.next(), path.trim_matches('/').split('/').count()) {
            (Some("api"), 3..) => "",
            (Some("apis"), 4..) => parts.next().unwrap_or_default(),
            _ => return plain(),
        };
        // Roles are about all versions.
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

    /// Without a name, a collection is meant.
    fn of_collection(mut self, query: Option<&str>) -> Self {
        if !matches!(self.what, What::Resource { name: "", .. }) {
            return self;
        }
        match &*self.verb {
            "get" => {
                let query = query.unwrap_or_default();
                let pairs = || form_urlencoded::parse(query.as_bytes());
                // Of a parameter that comes twice, the first counts, as where it is answered.
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

    /// The same, asked by somebody.
    pub(super) fn by<'b>(&'b self, who: Who<'b>) -> Attributes<'b> {
        let mut what = self.what;
        if let (What::Resource { name, .. }, Some(only)) = (&mut what, &self.only) {
            *name = only;
        }
        Attributes {
            who,
            verb: &self.verb,
            what,
        }
    }
}

/// What the rest of a path, after group and version, is about.
fn what<'a>(group: &'a str, parts: &[&'a str]) -> What<'a> {
    let (namespace, parts) = match parts {
        // Subresources of a namespace look like resources inside it.
        ["namespaces", namespace, "status" | "finalize", ..] | ["namespaces", namespace] => {
            (*namespace, parts)
        }
        ["namespaces", namespace, inside @ ..] => (*namespace, inside),
        _ => ("", parts),
    };
    let part = |at: usize| parts.get(at).copied().unwrap_or_default();
    What::Resource {
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
