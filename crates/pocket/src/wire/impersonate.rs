//! Impersonation, as `kubectl --as` requests it.
//!
//! There are two ways to be allowed. The unconstrained one lets the caller do all that the other
//! user may: the verb `impersonate` on the user, and on every requested group, uid and extra. The
//! constrained one also needs permission for each action while impersonating, such as
//! `impersonate-on:user-info:list` on pods. Either is enough; if neither holds, the error explains
//! the constrained one.

mod headers;

use super::authorize::{RequestAttributes, permitted};
use crate::{
    access::{
        ANONYMOUS, AUTHENTICATED, AccessTarget, Attributes, Authorizer, MASTERS, Requester,
        UNAUTHENTICATED,
    },
    kinds::names,
    rest::User,
    status::Result,
};

const AUTHENTICATION: &str = "authentication.k8s.io";

/// The user that a caller wants to impersonate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Impersonation {
    wanted: User,
}

/// The sort of user in constrained impersonation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode<'a> {
    /// A service account without further attributes: namespace and name.
    Account(&'a str, &'a str),
    /// A node without further attributes.
    Node(&'a str),
    /// Any user, with attributes.
    UserInfo,
}

impl Impersonation {
    /// The other user, if `caller` may impersonate them for this request.
    pub(super) fn assume(
        self,
        access: &Authorizer,
        caller: Requester<'_>,
        asked: &RequestAttributes<'_>,
    ) -> Result<User> {
        let narrow = self.mode().map(|mode| {
            self.check_narrow(access, caller, asked, mode)
                .map(|()| mode)
        });
        let is_node = match narrow {
            Some(Ok(mode)) => matches!(mode, Mode::Node(_)),
            Some(Err(refused)) => self
                .check_wide(access, caller)
                .map(|()| false)
                .map_err(|_| refused)?,
            None => self.check_wide(access, caller).map(|()| false)?,
        };
        Ok(self.complete(is_node))
    }

    /// The mode of constrained impersonation; `None` where a service account or node is requested
    /// with further attributes.
    fn mode(&self) -> Option<Mode<'_>> {
        let wanted = &self.wanted;
        let plain = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let mode = match (
            account(&wanted.name),
            wanted.name.strip_prefix("system:node:"),
        ) {
            (Some((namespace, name)), _) => Mode::Account(namespace, name),
            (_, Some(node)) if !node.is_empty() => Mode::Node(node),
            _ => return Some(Mode::UserInfo),
        };
        plain.then_some(mode)
    }

    fn check_narrow(
        &self,
        access: &Authorizer,
        caller: Requester<'_>,
        asked: &RequestAttributes<'_>,
        mode: Mode<'_>,
    ) -> Result<()> {
        let word = mode.word();
        let on = format!("impersonate-on:{word}:{}", asked.verb);
        permitted(
            access,
            &Attributes {
                verb: &on,
                ..asked.by(caller)
            },
        )?;
        let verb = format!("impersonate:{word}");
        let ask = |what| Attributes {
            who: caller,
            verb: &verb,
            what,
        };
        match mode {
            Mode::Account(namespace, name) => {
                let account = detail(AUTHENTICATION, "serviceaccounts", "", name, namespace);
                permitted(access, &ask(account))
            }
            Mode::Node(node) => {
                permitted(access, &ask(detail(AUTHENTICATION, "nodes", "", node, "")))
            }
            Mode::UserInfo => {
                let user = detail(AUTHENTICATION, "users", "", &self.wanted.name, "");
                permitted(access, &ask(user))?;
                self.check_narrow_details(access, &ask)
            }
        }
    }

    fn check_narrow_details<'a>(
        &'a self,
        access: &Authorizer,
        ask: &impl Fn(AccessTarget<'a>) -> Attributes<'a>,
    ) -> Result<()> {
        for group in &self.wanted.groups {
            let attributes = ask(detail(AUTHENTICATION, "groups", "", group, ""));
            if group == MASTERS {
                let why = "impersonating the system:masters group is not allowed";
                return Err(attributes.forbidden(why));
            }
            permitted(access, &attributes)?;
        }
        let mut keys = self.wanted.extra.keys();
        if let Some(key) = keys.find(|key| !is_qualified(key)) {
            let why = format!(
                "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: \"{key}\": must be a domain-prefixed path (such as \"acme.io/foo\")"
            );
            let attributes = ask(detail(AUTHENTICATION, "userextras", "", "", ""));
            return Err(attributes.forbidden(&why));
        }
        self.check_extras_and_uid(access, ask)
    }

    fn check_wide(&self, access: &Authorizer, caller: Requester<'_>) -> Result<()> {
        let ask = |what| Attributes {
            who: caller,
            verb: "impersonate",
            what,
        };
        let name = &self.wanted.name;
        let user = match account(name) {
            Some((namespace, name)) => detail("", "serviceaccounts", "", name, namespace),
            None => detail("", "users", "", name, ""),
        };
        permitted(access, &ask(user))?;
        for group in &self.wanted.groups {
            permitted(access, &ask(detail("", "groups", "", group, "")))?;
        }
        self.check_extras_and_uid(access, &ask)
    }

    fn check_extras_and_uid<'a>(
        &'a self,
        access: &Authorizer,
        ask: &impl Fn(AccessTarget<'a>) -> Attributes<'a>,
    ) -> Result<()> {
        for (key, values) in &self.wanted.extra {
            for value in values {
                let extra = detail(AUTHENTICATION, "userextras", key, value, "");
                permitted(access, &ask(extra))?;
            }
        }
        if self.wanted.uid.is_empty() {
            return Ok(());
        }
        let uid = detail(AUTHENTICATION, "uids", "", &self.wanted.uid, "");
        permitted(access, &ask(uid))
    }

    /// Adds the groups that such a user always has.
    fn complete(self, is_node: bool) -> User {
        let mut user = self.wanted;
        if let Some((namespace, _)) = account(&user.name).filter(|_| user.groups.is_empty()) {
            let own = format!("system:serviceaccounts:{namespace}");
            user.groups = vec!["system:serviceaccounts".into(), own];
        }
        if is_node {
            user.groups.push("system:nodes".into());
        }
        let told = |group: &String| group == AUTHENTICATED || group == UNAUTHENTICATED;
        if !user.groups.iter().any(told) {
            let group = match user.name.as_str() {
                ANONYMOUS => UNAUTHENTICATED,
                _ => AUTHENTICATED,
            };
            user.groups.push(group.into());
        }
        user
    }
}

impl Mode<'_> {
    fn word(self) -> &'static str {
        match self {
            Self::Account(..) => "serviceaccount",
            Self::Node(_) => "arbitrary-node",
            Self::UserInfo => "user-info",
        }
    }
}

fn detail<'a>(
    group: &'a str,
    resource: &'a str,
    subresource: &'a str,
    name: &'a str,
    namespace: &'a str,
) -> AccessTarget<'a> {
    AccessTarget::Resource {
        group,
        resource,
        subresource,
        name,
        namespace,
    }
}

/// Namespace and name of a service account's user name.
fn account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user
        .strip_prefix("system:serviceaccount:")?
        .split_once(':')?;
    (names::label(namespace).is_empty() && names::subdomain(name).is_empty())
        .then_some((namespace, name))
}

/// Whether a key is a domain, a slash and a path.
fn is_qualified(key: &str) -> bool {
    key.split_once('/')
        .is_some_and(|(domain, path)| names::subdomain(domain).is_empty() && !path.is_empty())
}
