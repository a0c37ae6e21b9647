//! From a body to an object that may be stored: right kind, namespace and name, known fields only.

use serde_json::{Value, json};

use super::{Request, Served, Verb, metadata, request::option_error};
use crate::{
    schema::conform::{FieldValidation, unreadable_patch},
    status::{ApiError, Problems, Result},
};

/// A decoded body.
#[derive(Debug, Clone, Default)]
pub struct Payload {
    pub value: Value,
    /// Paths of fields that occurred twice; the last one counts.
    pub duplicates: Vec<String>,
    /// Why a patch could not be decoded. Reported only when the object exists.
    pub problem: Option<String>,
}

/// The origin of an object, which decides how it is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The client sent it.
    Body,
    /// A patch made it from the stored object.
    Patch,
}

impl Request {
    /// The body; a write without one is refused.
    pub(crate) fn payload(&self) -> Result<Payload> {
        let body = self.body.clone();
        let payload = body.ok_or_else(|| ApiError::bad_request("the request has no body"))?;
        match payload.problem {
            Some(why) => Err(ApiError::bad_request(why)),
            None => Ok(payload),
        }
    }

    /// How unknown and duplicate fields are treated.
    pub(crate) fn field_validation(&self) -> Result<FieldValidation> {
        let word = self.parameter("fieldValidation");
        FieldValidation::parse(word).ok_or_else(|| {
            let mut problems = Problems::new();
            let supported = &FieldValidation::SUPPORTED;
            problems.not_supported("fieldValidation", word.unwrap_or_default(), supported);
            option_error(self.verb.name(), &problems)
        })
    }
}

/// Checks that `value` is an object of this kind for this URL and normalizes it. Texts for
/// `Warning` headers are added to `warnings`.
pub(super) fn shape(
    request: &Request,
    served: &Served,
    payload: Payload,
    origin: Origin,
    warnings: &mut Vec<String>,
) -> Result<Value> {
    let Payload {
        mut value,
        duplicates,
        ..
    } = payload;
    // The version of a custom object is checked after its metadata was read, and its kind with its
    // other errors.
    let late = served.is_custom() && origin == Origin::Body && value.is_object();
    if !late {
        check_kind(served, &mut value)?;
    }
    let foreign = late && served.is_foreign(&value);
    let mode = request.field_validation()?;
    warnings.extend(match origin {
        Origin::Body => {
            let given = called(served, &value);
            let unknown = served
                .conform(&mut value)
                .map_err(|error| renamed(served, &given, error))?;
            let (kind, api_version) = (&served.resource.kind, &served.api_version);
            mode.check(&unknown, &duplicates, kind, api_version)?
        }
        Origin::Patch => {
            let strategic = request.content_type.contains("strategic");
            let unknown = if strategic {
                let merged = served.conform_merged(&mut value);
                merged.map_err(|why| unreadable_patch(&why))?
            } else {
                served.conform_patched(&mut value)?
            };
            mode.check_patch(&unknown, &duplicates)?
        }
    });
    if foreign {
        check_version(served, &value)?;
    } else if late {
        check_kind(served, &mut value)?;
    }
    check_place(request, served, &mut value)?;
    Ok(value)
}

/// Kind and version in a body.
fn called(served: &Served, value: &Value) -> String {
    let kind = value["kind"].as_str().unwrap_or(&served.resource.kind);
    let version = value["apiVersion"].as_str().unwrap_or(&served.api_version);
    let version = version.rsplit('/').next().unwrap_or_default();
    format!("{kind} in version {version:?} cannot")
}

/// An error of a body with another kind names that kind.
fn renamed(served: &Served, given: &str, mut error: ApiError) -> ApiError {
    let kind = &served.resource.kind;
    let expected = format!("{kind} in version {:?} cannot", served.version);
    if let Some(rest) = error.message.strip_prefix(&expected) {
        error.message = format!("{given}{rest}");
    }
    error
}

/// The version of a custom object must be present and match the URL.
fn check_version(served: &Served, value: &Value) -> Result<()> {
    let given = value["apiVersion"].as_str().unwrap_or_default();
    if given == served.api_version {
        return Ok(());
    }
    Err(ApiError::bad_request(format!(
        "the API version in the data ({given}) does not match the expected API version ({})",
        served.api_version
    )))
}

/// `apiVersion` and `kind` must match the URL; absent ones are filled in.
fn check_kind(served: &Served, value: &mut Value) -> Result<()> {
    let Some(object) = value.as_object_mut() else {
        return Err(ApiError::bad_request("the body must be an object"));
    };
    let given = |field: &str| {
        object
            .get(field)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let api_version = given("apiVersion").unwrap_or(&served.api_version);
    let expected = (
        served.resource.group.as_str(),
        served.resource.kind.as_str(),
    );
    if api_version != served.api_version && !served.is_custom() {
        let kind = given("kind").unwrap_or(&served.resource.kind);
        return Err(unhandled(expected, kind, api_version));
    }
    if api_version != served.api_version {
        return check_version(served, value);
    }
    let kind = given("kind").unwrap_or(&served.resource.kind);
    if kind != served.resource.kind {
        if served.is_custom() {
            let mut problems = Problems::new();
            problems.invalid("kind", kind, format!("must be {}", served.resource.kind));
            let (group, kind) = (&served.resource.group, kind.to_owned());
            return Err(ApiError::invalid(
                group,
                &kind,
                metadata::text(value, "name"),
                &problems,
            ));
        }
        return Err(unhandled(expected, kind, &served.api_version));
    }
    object.insert("apiVersion".into(), json!(served.api_version));
    object.insert("kind".into(), json!(served.resource.kind));
    Ok(())
}

/// 400 for a body of an unknown kind.
pub(super) fn unhandled(
    (group_of_expected, expected): (&str, &str),
    kind: &str,
    api_version: &str,
) -> ApiError {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    let (group, _) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    // A known kind is converted, which fails.
    let why = if crate::schema::of_kind(group, version, kind).is_some() {
        let package = match group_of_expected.split('.').next() {
            None | Some("" | "events") => "core",
            Some(first) => first,
        };
        format!("converting ({version}.{kind}) to ({package}.{expected}): unknown conversion")
    } else {
        unregistered(kind, api_version)
    };
    ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {expected}: {why}"
    ))
}

/// The error for an unknown kind.
pub(super) fn unregistered(kind: &str, api_version: &str) -> String {
    format!(
        "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\""
    )
}

/// Namespace and name of the body must match the URL.
pub(super) fn check_place(request: &Request, served: &Served, value: &mut Value) -> Result<()> {
    let target = &request.target;
    if !served.resource.namespaced && value["metadata"].is_object() {
        metadata::of(value).remove("namespace");
    }
    let namespace = metadata::text(value, "namespace");
    if served.resource.namespaced && !namespace.is_empty() && namespace != target.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let name = metadata::text(value, "name");
    if !target.name.is_empty() && name != target.name {
        if name.is_empty() && matches!(request.verb, Verb::Patch | Verb::Update) {
            return Err(nameless(&target.name));
        }
        if name.is_empty() {
            metadata::of(value).insert("name".into(), json!(target.name));
            return Ok(());
        }
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    Ok(())
}

/// 400 for an object without a name.
pub(super) fn nameless(name: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the name of the object ({name} based on URL) was undeterminable: name must be provided"
    ))
}
