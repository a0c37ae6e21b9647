//! The objects that a list or watch selects.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;

use super::{Machine, Request, Served, list::ListPage};
use crate::{
    selector::{FieldSelector, LabelSelector},
    status::Result,
    store::{KeyRange, Object},
};

/// The selectors of a request, with the namespace and name of its URL.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    namespace: Option<String>,
    name: Option<String>,
    labels: Option<LabelSelector>,
    fields: Option<FieldSelector>,
}

impl Selection {
    pub(crate) fn of(request: &Request, served: &Served) -> Result<Self> {
        let labels = request
            .parameter("labelSelector")
            .map(LabelSelector::parse)
            .transpose()?;
        let fields = request
            .parameter("fieldSelector")
            .map(FieldSelector::parse)
            .transpose()?;
        if let Some(fields) = &fields {
            fields
                .check(|path| served.has_field_label(path))
                .map_err(|error| served.unknown_field_label(fields, error))?;
        }
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Ok(Self {
            namespace: some(&request.target.namespace),
            name: some(&request.target.name),
            labels: labels.filter(|selector| !selector.is_everything()),
            fields: fields.filter(|selector| !selector.is_everything()),
        })
    }

    /// Refuses invalid selectors.
    pub(crate) fn check_form(request: &Request) -> Result<()> {
        if let Some(text) = request.parameter("labelSelector") {
            LabelSelector::parse(text)?;
        }
        if let Some(text) = request.parameter("fieldSelector") {
            FieldSelector::parse(text)?;
        }
        Ok(())
    }

    /// Whether no selector narrows the collection.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_none() && self.fields.is_none() && self.name.is_none()
    }

    /// Whether a name is selected where names are unique.
    pub(crate) fn is_one(&self, served: &Served) -> bool {
        let place = self.namespace.is_some() || !served.resource.namespaced;
        let name = self.fields.as_ref().and_then(FieldSelector::exact_name);
        place && (self.name.is_some() || name.is_some())
    }

    pub(crate) fn matches(&self, served: &Served, object: &Object) -> bool {
        let metadata = object.metadata();
        let is = |wanted: &Option<String>, actual: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == actual)
        };
        if !is(&self.namespace, &metadata.namespace) || !is(&self.name, &metadata.name) {
            return false;
        }
        if self
            .labels
            .as_ref()
            .is_some_and(|labels| !labels.matches(&metadata.labels))
        {
            return false;
        }
        self.fields
            .as_ref()
            .is_none_or(|fields| matches_fields(fields, served, object))
    }
}

/// Whether the fields match. Names are known without parsing; everything else needs the object.
fn matches_fields(fields: &FieldSelector, served: &Served, object: &Object) -> bool {
    let metadata = object.metadata();
    let mut parsed: Option<Value> = None;
    fields.matches(|path| match path {
        "metadata.name" => Cow::Borrowed(&*metadata.name),
        "metadata.namespace" => Cow::Borrowed(&*metadata.namespace),
        _ => {
            let value = parsed.get_or_insert_with(|| served.value(object));
            Cow::Owned(served.field(value, path))
        }
    })
}

impl Machine {
    /// Everything selected, as the initial events of a watch: one snapshot, no pages.
    pub(crate) async fn snapshot(
        &self,
        request: &Request,
        served: &Served,
        selection: &Selection,
    ) -> Result<ListPage> {
        if let Some(revision) = request.revision("watch")? {
            self.not_older_than(revision).await?;
        }
        let range = KeyRange::of(&request.target.namespace);
        let bucket = &served.resource.bucket;
        let _turn = self.bulk.turn(self.view.store().count(bucket)).await;
        let page = self.view.page(bucket, range, None).await?;
        let page = page.map_err(|error| super::broken(&error))?;
        let objects: Vec<Arc<Object>> = page
            .objects
            .into_iter()
            .map(|(_, object)| object)
            .filter(|object| selection.matches(served, object))
            .collect();
        Ok(ListPage {
            revision: page.revision,
            objects,
            next: None,
            remaining: None,
        })
    }
}
