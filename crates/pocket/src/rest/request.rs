//! A request as the machine sees it: user, verb, target, options, body.

use super::{Payload, Presentation};
use crate::{
    access::{AccessTarget, Attributes},
    identity::User,
    schema::conform::FieldValidation,
    status::{ApiError, Problems, Result},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// One object.
    Get,
    /// A collection.
    List,
    /// Changes of a collection.
    Watch,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// DELETE of an object.
    Delete,
    /// DELETE of a collection.
    DeleteCollection,
}

impl Verb {
    /// The verb's name in discovery.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// The target of a URL. Absent parts are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Target {
    /// API group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Plural resource name.
    pub plural: String,
    /// Namespace.
    pub namespace: String,
    /// Object name.
    pub name: String,
    pub subresource: Option<String>,
}

impl Target {
    /// The object's path within its resource.
    pub fn path(&self) -> String {
        path(&self.namespace, &self.name)
    }
}

/// Whether a flag of a query is set: any value but a false one.
pub(crate) fn is_yes(text: &str) -> bool {
    text != "0" && !text.eq_ignore_ascii_case("false")
}

/// `namespace/name`, or `name` for cluster-scoped objects.
pub(crate) fn path(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        name.into()
    } else {
        format!("{namespace}/{name}")
    }
}

/// A request whose method, URL and headers are valid.
#[derive(Debug, Clone)]
pub struct Request {
    pub verb: Verb,
    pub target: Target,
    /// Decoded query parameters in order.
    pub query: Vec<(String, String)>,
    /// The body, if there was one that could be read.
    pub body: Option<Payload>,
    /// The body's media type without parameters, in lower case; empty when absent.
    pub content_type: String,
    /// The requested form of the reply.
    pub presentation: Presentation,
    /// The `User-Agent` header.
    pub user_agent: String,
    pub user: User,
}

impl Request {
    /// The request as authorization sees it, possibly with another verb.
    pub(crate) fn attributes<'a>(&'a self, verb: &'a str) -> Attributes<'a> {
        let target = &self.target;
        // The namespace of a namespace is itself, so that a role inside of it can grant access to
        // it.
        let itself = target.group.is_empty() && target.plural == "namespaces";
        let namespace = if itself {
            &target.name
        } else {
            &target.namespace
        };
        Attributes {
            who: self.user.who(),
            verb,
            what: AccessTarget::Resource {
                group: &target.group,
                resource: &target.plural,
                subresource: target.subresource.as_deref().unwrap_or_default(),
                name: &target.name,
                namespace,
            },
        }
    }

    /// A request for a connection; only user and target are known.
    pub(crate) fn connect(target: Target, user: User) -> Self {
        Self {
            verb: Verb::Get,
            target,
            query: Vec::new(),
            body: None,
            content_type: String::new(),
            presentation: Presentation::default(),
            user_agent: String::new(),
            user,
        }
    }

    /// The first value of a query parameter, if present and not empty.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// Whether a query parameter is present.
    pub fn names(&self, name: &str) -> bool {
        self.query.iter().any(|(key, _)| key == name)
    }

    /// A boolean query parameter; present without a value counts as true.
    pub fn flag(&self, name: &str) -> bool {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.is_some_and(|(_, value)| is_yes(value))
    }

    /// A number from the query.
    pub fn number(&self, name: &str) -> Result<Option<i64>> {
        let Some(text) = self.parameter(name) else {
            return Ok(None);
        };
        let number = text
            .parse()
            .map_err(|_| ApiError::bad_request(not_a_number("ParseInt", text)))?;
        Ok(Some(number))
    }

    /// The `resourceVersion` parameter; `0` means any and is `None` here.
    pub fn revision(&self, verb: &str) -> Result<Option<u64>> {
        match self.parameter("resourceVersion") {
            None | Some("0") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| {
                let detail = not_a_number("ParseUint", text);
                let what = format!("resourceVersion: Invalid value: {text:?}: {detail}");
                match verb {
                    "get" | "watch" => ApiError::failure(what),
                    _ => ApiError::bad_request(format!("invalid resource version: {what}")),
                }
            }),
        }
    }

    /// The same request as a dry run.
    pub(super) fn as_dry_run(&self) -> Self {
        let mut dry_run = self.clone();
        dry_run.query.push(("dryRun".into(), "All".into()));
        dry_run
    }

    /// Whether this is a dry run. Any other value than `All` is refused.
    pub fn dry_run(&self) -> Result<bool> {
        let mut dry = false;
        for (key, value) in &self.query {
            match (key.as_str(), value.as_str()) {
                ("dryRun", "All") => dry = true,
                ("dryRun", "") => {}
                ("dryRun", _) => return Err(option_error(self.verb.name(), &self.dry_problems())),
                _ => {}
            }
        }
        Ok(dry)
    }

    /// The errors of `dryRun`.
    fn dry_problems(&self) -> Problems {
        let mut problems = Problems::new();
        let asked = self.query.iter().filter(|(key, _)| key == "dryRun");
        let words: Vec<&str> = asked.map(|(_, word)| word.as_str()).collect();
        if words.iter().any(|word| !matches!(*word, "All" | "")) {
            problems.not_supported("dryRun", serde_json::json!(words), &["All"]);
        }
        problems
    }

    /// Validates the options of a create, an update or a patch, all of them at once.
    pub(crate) fn check_options(&self) -> Result<()> {
        if !matches!(self.verb, Verb::Create | Verb::Update | Verb::Patch) {
            return Ok(());
        }
        let mut problems = Problems::new();
        if self.verb == Verb::Patch {
            let applies = self.content_type == APPLY_YAML;
            if !applies && self.parameter("force").is_some() {
                problems.forbidden("force", "may not be specified for non-apply patch");
            }
            if applies && self.parameter("fieldManager").is_none() {
                problems.required("fieldManager", "is required for apply patch");
            }
        }
        self.check_manager(&mut problems);
        self.dry_problems()
            .iter()
            .for_each(|problem| problems.push(problem.clone()));
        let word = self.parameter("fieldValidation");
        if FieldValidation::parse(word).is_none() {
            let supported = &FieldValidation::SUPPORTED;
            problems.not_supported("fieldValidation", word.unwrap_or_default(), supported);
        }
        if problems.is_empty() {
            return Ok(());
        }
        Err(option_error(self.verb.name(), &problems))
    }

    /// The field manager: `fieldManager`, else the client program's name.
    pub fn manager(&self) -> Result<&str> {
        let Some(manager) = self.parameter("fieldManager") else {
            return Ok(self.program());
        };
        let mut problems = Problems::new();
        self.check_manager(&mut problems);
        if problems.is_empty() {
            return Ok(manager);
        }
        Err(option_error(self.verb.name(), &problems))
    }

    fn check_manager(&self, problems: &mut Problems) {
        let manager = self.parameter("fieldManager").unwrap_or_default();
        if manager.len() > MAX_MANAGER_LENGTH {
            problems.too_long("fieldManager", MAX_MANAGER_LENGTH);
        }
        if let Some((at, found)) = manager.char_indices().find(|(_, c)| c.is_control()) {
            let code = u32::from(found);
            let detail = format!("invalid character U+{code:04X} (at position {at})");
            problems.invalid("fieldManager", manager, detail);
        }
    }

    /// The client program's name from the user agent, truncated to the length of a manager's name.
    fn program(&self) -> &str {
        let agent = self.user_agent.split('/').next().unwrap_or_default();
        match &agent[..agent.floor_char_boundary(MAX_MANAGER_LENGTH)] {
            "" => "unknown",
            agent => agent,
        }
    }
}

const MAX_MANAGER_LENGTH: usize = 128;

/// The content type of server-side apply.
pub(crate) const APPLY_YAML: &str = "application/apply-patch+yaml";

/// kube-apiserver's error for a text that should have been a number.
pub(crate) fn not_a_number(function: &str, text: &str) -> String {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let numeric = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let signed = text.starts_with('-') && function == "ParseUint";
    let why = if numeric && !signed {
        "value out of range"
    } else {
        "invalid syntax"
    };
    format!("strconv.{function}: parsing {text:?}: {why}")
}

/// The error for a request with invalid options.
pub(crate) fn option_error(verb: &str, problems: &Problems) -> ApiError {
    let kind = match verb {
        "get" => "GetOptions",
        "list" | "watch" => "ListOptions",
        "patch" => "PatchOptions",
        "update" => "UpdateOptions",
        "delete" | "deletecollection" => "DeleteOptions",
        _ => "CreateOptions",
    };
    ApiError::invalid("meta.k8s.io", kind, "", problems)
}
