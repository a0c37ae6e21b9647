//! Merge patches of a few fields in objects that other controllers or users own.

use kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams};
use serde_json::{Value, json};

use super::{Error, ResourceKind, Writer, writer::addresses};
use crate::key::Key;

impl Writer {
    /// Merges `change` into the object that was read as `seen`, or into a subresource such as `scale`.
    /// If `seen` has a resource version, the write is refused when the object has changed since: set
    /// it if the decision depends on the object's state, and leave it out otherwise.
    pub async fn merge(
        &self,
        kind: &ResourceKind,
        seen: &ObjectMeta,
        subresource: Option<&str>,
        mut change: Value,
    ) -> Result<DynamicObject, Error> {
        let name = seen.name.as_deref().unwrap_or_default();
        let key = Key::new(seen.namespace.as_deref().unwrap_or_default(), name);
        if change.get("metadata").is_none() {
            change["metadata"] = json!({});
        }
        for (field, value) in [
            ("uid", &seen.uid),
            ("resourceVersion", &seen.resource_version),
        ] {
            if let Some(value) = value {
                change["metadata"][field] = value.clone().into();
            }
        }
        let (api, patch) = (self.api(kind, &key), Patch::Merge(&change));
        let parameters = PatchParams {
            field_manager: Some(self.manager().to_owned()),
            ..PatchParams::default()
        };
        let write = self.write("merge", kind, &key, subresource);
        let call = async {
            match subresource {
                Some(subresource) => {
                    api.patch_subresource(subresource, name, &parameters, &patch)
                        .await
                }
                None => api.patch(name, &parameters, &patch).await,
            }
        };
        let written = self.perform(write, call).await?;
        self.await_written(&addresses::<DynamicObject>(&kind.resource, &key), &written);
        Ok(written)
    }
}
