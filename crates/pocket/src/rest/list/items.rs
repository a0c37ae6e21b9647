//! The body of a list: its head, its items, some at a time, and its end.
//!
//! A large list is never rendered as a whole: memory holds the objects, which the store shares, and
//! the chunk that is being sent.

use std::{sync::Arc, vec};

use bytes::{BufMut, Bytes, BytesMut};
use futures::{Stream, stream};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::ListPage;
use crate::{
    rest::{
        Machine, ObjectForm, Request, Served,
        bulk::Bulk,
        reply::{include_object, partial},
    },
    status::Result,
    store::Object,
    table::{Include, Printer},
};

/// Approximate bytes of a chunk, which fits into one TLS record.
const CHUNK_BYTES: usize = 15 << 10;

/// The form of items.
enum ItemForm {
    Whole,
    Metadata,
    Table {
        printer: Printer,
        include: Include,
        now: Timestamp,
    },
}

/// The part that is still to be sent.
pub(in crate::rest) struct Items {
    bulk: Bulk,
    served: Arc<Served>,
    form: ItemForm,
    /// `None` once it was sent.
    head: Option<Bytes>,
    objects: vec::IntoIter<Arc<Object>>,
    /// The text after the last item.
    end: &'static str,
    ended: bool,
}

impl Items {
    pub(super) fn new(
        machine: &Machine,
        request: &Request,
        served: &Arc<Served>,
        listed: ListPage,
    ) -> Result<Self> {
        let form = match request.presentation.shown {
            ObjectForm::Whole => ItemForm::Whole,
            ObjectForm::Metadata => ItemForm::Metadata,
            ObjectForm::Table => ItemForm::Table {
                printer: served.printer(),
                include: include_object(request)?,
                now: machine.environment.clock.now(),
            },
        };
        let always = served.is_custom() && matches!(form, ItemForm::Whole);
        let metadata = listed.metadata(always);
        let (head, end) = match form {
            // An empty list of these has null items.
            ItemForm::Metadata if listed.objects.is_empty() => {
                (head(&form, served, metadata), "null}")
            }
            // So has an empty table of these rows.
            ItemForm::Table { .. } if listed.objects.is_empty() && is_of_roles(served) => {
                (head(&form, served, metadata), "null}")
            }
            _ => (head(&form, served, metadata) + "[", "]}"),
        };
        Ok(Self {
            bulk: machine.bulk.clone(),
            head: Some(head.into()),
            end,
            served: served.clone(),
            form,
            objects: listed.objects.into_iter(),
            ended: false,
        })
    }

    /// The whole body.
    pub(super) fn whole(mut self) -> Bytes {
        let left = self.objects.as_slice().iter();
        let size: usize = left.map(|object| object.json().len() + 1).sum();
        let mut body = BytesMut::with_capacity(size + 256);
        self.fill(&mut body, usize::MAX);
        body.freeze()
    }

    /// The body in chunks.
    pub(super) fn into_stream(self) -> impl Stream<Item = Bytes> + Send + 'static {
        stream::unfold(self, |mut items| async move {
            if items.ended {
                return None;
            }
            let mut chunk = BytesMut::with_capacity(CHUNK_BYTES + 1024);
            {
                let bulk = items.bulk.clone();
                let _turn = bulk.turn(usize::MAX).await;
                items.fill(&mut chunk, CHUNK_BYTES);
            }
            Some((chunk.freeze(), items))
        })
    }

    /// Renders until `out` has `enough` bytes, or to the end.
    fn fill(&mut self, out: &mut BytesMut, enough: usize) {
        let mut first = false;
        if let Some(head) = self.head.take() {
            out.put_slice(&head);
            first = true;
        }
        while out.len() < enough {
            let Some(object) = self.objects.next() else {
                out.put_slice(self.end.as_bytes());
                self.ended = true;
                return;
            };
            if !std::mem::take(&mut first) {
                out.put_u8(b',');
            }
            self.put(&object, out);
        }
    }

    fn put(&self, object: &Object, out: &mut BytesMut) {
        let value = match &self.form {
            ItemForm::Whole => return self.served.put_item(object, out),
            ItemForm::Metadata => partial(&self.served.value(object), "PartialObjectMetadata"),
            ItemForm::Table {
                printer,
                include,
                now,
            } => printer.row(&self.served.value(object), *now, *include),
        };
        out.put_slice(value.to_string().as_bytes());
    }
}

fn is_of_roles(served: &Served) -> bool {
    matches!(served.resource.plural.as_str(), "roles" | "clusterroles")
        && served.resource.group == "rbac.authorization.k8s.io"
}

/// Everything up to the field with the items.
fn head(form: &ItemForm, served: &Served, metadata: Value) -> String {
    let (list, items) = match form {
        ItemForm::Whole => (
            json!({
                "kind": served.resource.list_kind,
                "apiVersion": served.api_version,
                "metadata": metadata,
            }),
            "items",
        ),
        ItemForm::Metadata => (
            json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
            }),
            "items",
        ),
        ItemForm::Table { printer, .. } => (printer.frame(metadata, true), "rows"),
    };
    let mut text = list.to_string();
    // The closing brace comes after the items.
    text.pop();
    format!("{text},\"{items}\":")
}
