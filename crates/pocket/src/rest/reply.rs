//! Replies, and the forms in which objects are shown.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use futures::stream::BoxStream;
use http::StatusCode;
use serde_json::{Value, json};

use super::{Machine, Request, Served, Verb};
use crate::{
    status::{ApiError, Problems, Result},
    store::Object,
    table::Include,
};

/// The form of objects in a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectForm {
    /// As they are.
    #[default]
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
    /// `Table`.
    Table,
}

/// The form that the client requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Presentation {
    pub shown: ObjectForm,
    /// In YAML rather than JSON.
    pub yaml: bool,
}

pub enum ReplyBody {
    /// All at once.
    Full(Bytes),
    /// In parts, because it is large. It is complete only with its last part.
    Parts(BoxStream<'static, Bytes>),
    /// A watch or a log, without a defined end.
    Stream(BoxStream<'static, Bytes>),
}

/// A successful reply.
#[derive(Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: StatusCode,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Texts for `Warning` headers.
    pub warnings: Vec<String>,
    pub body: ReplyBody,
}

/// The content type of JSON replies.
pub(crate) const JSON: &str = "application/json";
/// The content type of YAML replies.
pub(crate) const YAML: &str = "application/yaml";

impl Reply {
    /// A JSON reply.
    pub fn json(status: StatusCode, body: impl Into<Bytes>) -> Self {
        Self {
            status,
            content_type: JSON,
            warnings: Vec::new(),
            body: ReplyBody::Full(body.into()),
        }
    }

    /// A JSON reply with this value.
    pub fn value(status: StatusCode, value: &Value) -> Self {
        Self::json(status, value.to_string())
    }

    /// The same reply with warnings before those it has.
    #[must_use]
    pub fn warned_first(mut self, mut warnings: Vec<String>) -> Self {
        warnings.append(&mut self.warnings);
        self.warnings = warnings;
        self
    }

    /// The same reply with `Warning` headers.
    #[must_use]
    pub fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings.extend(warnings);
        self
    }
}

impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full(bytes) => write!(f, "Full({} bytes)", bytes.len()),
            Self::Parts(_) => f.write_str("Parts"),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl Machine {
    /// Replies with one object in the requested form.
    pub(crate) fn reply(
        &self,
        request: &Request,
        served: &Served,
        status: StatusCode,
        object: &Arc<Object>,
    ) -> Result<Reply> {
        let body = match request.presentation.shown {
            ObjectForm::Whole if is_whole(request, object) => served.shown_whole(object),
            ObjectForm::Whole => served.shown(object),
            ObjectForm::Metadata => partial(&served.value(object), "PartialObjectMetadata")
                .to_string()
                .into(),
            ObjectForm::Table => {
                let value = served.value(object);
                let include = include_object(request)?;
                let revision = object.revision().to_string();
                let table = self.table(
                    served,
                    &[value],
                    include,
                    json!({"resourceVersion": revision}),
                    true,
                );
                table.to_string().into()
            }
        };
        finish(request, status, body)
    }

    /// The rows of `objects`, with this list metadata and perhaps the columns' description.
    pub(crate) fn table(
        &self,
        served: &Served,
        objects: &[Value],
        include: Include,
        metadata: Value,
        with_columns: bool,
    ) -> Value {
        let now = self.environment.clock.now();
        served
            .printer()
            .table(objects, now, include, metadata, with_columns)
    }
}

/// Whether the reply shows the whole object, and neither a subresource nor a delete that waits.
fn is_whole(request: &Request, object: &Object) -> bool {
    let waits = request.verb == Verb::Delete && object.metadata().deletion_timestamp.is_some();
    request.target.subresource.is_none() && !waits
}

/// Converts a JSON body to the requested encoding.
pub(crate) fn finish(request: &Request, status: StatusCode, body: Bytes) -> Result<Reply> {
    let mut reply = Reply::json(status, body);
    if !request.presentation.yaml {
        return Ok(reply);
    }
    if let ReplyBody::Full(bytes) = &reply.body {
        let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let text = yaml(&value).map_err(ApiError::internal)?;
        reply.body = ReplyBody::Full(text.into());
        reply.content_type = YAML;
    }
    Ok(reply)
}

/// A value in YAML, or why it cannot be written so.
pub(crate) fn yaml(value: &Value) -> Result<String, String> {
    serde_saphyr::to_string(value).map_err(|error| error.to_string())
}

/// The object with nothing but its metadata.
pub(crate) fn partial(value: &Value, kind: &str) -> Value {
    json!({
        "kind": kind,
        "apiVersion": "meta.k8s.io/v1",
        "metadata": value["metadata"],
    })
}

/// The `includeObject` parameter of table requests.
pub(crate) fn include_object(request: &Request) -> Result<Include> {
    match request.parameter("includeObject") {
        None | Some("Metadata") => Ok(Include::Metadata),
        Some("Object") => Ok(Include::Object),
        Some("None") => Ok(Include::None),
        Some(other) => {
            let mut problems = Problems::new();
            let detail = "must be 'Metadata', 'Object', 'None', or empty";
            problems.invalid("includeObject", other, detail);
            let message = format!("Unable to convert to Table as requested: {problems}");
            Err(ApiError::bad_request(message))
        }
    }
}
