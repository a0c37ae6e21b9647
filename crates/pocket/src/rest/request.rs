//! A request as the machine sees it: who, what, which options, which body.

use super::{Payload, Presentation};
use crate::{
    access::{Attributes, What},
    identity::User,
    schema::conform::FieldValidation,
    status::{ApiError, Problems, Result},
};

/// What is done to a resource.
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

/// What a URL points at. Absent parts are empty.
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
    /// Subresource.
    pub subresource: Option<String>,
}

impl Target {
    /// The object's place within its resource.
    pub fn path(&self) -> String {
        path(&self.namespace, &self.name)
    }
}

/// Whether a flag of a query is set: by anything but a no.
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

/// A request whose method, URL and headers were understood.
#[derive(Debug, Clone)]
pub struct Request {
    /// What is done.
    pub verb: Verb,
    /// To what.
    pub target: Target,
    /// Decoded query parameters in order.
    pub query: Vec<(String, String)>,
    /// The body, if there was one that could be read.
    pub body: Option<Payload>,
    /// The body's media type without parameters, in lower case; empty when absent.
    pub content_type: String,
    /// The form the client wants back.
    pub presentation: Presentation,
    /// The `User-Agent` header.
    pub user_agent: String,
    /// Who asks.
    pub user: User,
}

impl Request {
    /// What the request asks for, as roles see it, with another verb perhaps.
    pub(crate) fn attributes<'a>(&'a self, verb: &'a str) -> Attributes<'a> {
        let target = &self.target;
        // A namespace is asked about in itself, so that a role inside of it can grant it.
        let itself = target.group.is_empty() && target.plural == "namespaces";
        let namespace = if itself {
            &target.name
        } else {
            &target.namespace
        };
        Attributes {
            who: self.user.who(),
            verb,
            what: What::Resource {
                group: &target.group,
                resource: &target.plural,
                subresource: target.subresource.as_deref().unwrap_or_default(),
                name: &target.name,
                namespace,
            },
        }
    }

    /// A request for a connection, of which only who asks for what is known.
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

    /// Whether a query parameter is there at all.
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

    /// The same request, of which nothing is stored.
    pub(super) fn rehearsal(&self) -> Self {
        let mut rehearsal = self.clone();
        rehearsal.query.push(("dryRun".into(), "All".into()));
        rehearsal
    }

    /// Whether nothing may be stored. Any other word than `All` is refused.
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

    /// What is wrong with `dryRun`.
    fn dry_problems(&self) -> Problems {
        let mut problems = Problems::new();
        let asked = self.query.iter().filter(|(key, _)| key == "dryRun");
        let words: Vec<&str> = asked.map(|(_, word)| word.as_str()).collect();
        if words.iter().any(|word| !matches!(*word, "All" | "")) {
            problems.not_supported("dryRun", serde_json::json!(words), &["All"]);
        }
        problems
    }

    /// Checks the options of a create, an update or a patch, all of them at once.
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

    /// Who the changed fields are booked to: `fieldManager`, else the program's name.
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
        if manager.len() > MANAGER_LENGTH {
            problems.too_long("fieldManager", MANAGER_LENGTH);
        }
        if let Some((at, found)) = manager.char_indices().find(|(_, c)| c.is_control()) {
            let code = u32::from(found);
            let detail = format!("invalid character U+{code:04X} (at position {at})");
            problems.invalid("fieldManager", manager, detail);
        }
    }

    /// The program's name as its user agent begins, cut to what a manager's name may have.
    fn program(&self) -> &str {
        let agent = self.user_agent.split('/').next().unwrap_or_default();
        match &agent[..agent.floor_char_boundary(MANAGER_LENGTH)] {
            "" => "unknown",
            agent => agent,
        }
    }
}

const MANAGER_LENGTH: usize = 128;

/// The language of a patch that says what to have.
pub(crate) const APPLY_YAML: &str = "application/apply-patch+yaml";

/// What the reference says of a text that should have been a number.
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

/// The refusal of a request whose options are wrong.
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
