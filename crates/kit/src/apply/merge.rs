//! Changes of a few fields in objects that are somebody else's.

use kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams};
use serde_json::{Value, json};

use super::{Error, Hand, Kind, hand::noted};
use crate::key::Key;

impl Hand {
    /// Merges `change` into the very object that was `seen`, or into a part of it such as `scale`. If
    /// what was seen has a version, only while it is still that one: whoever decides by what is there
    /// gives it, whoever would decide the same in any case leaves it out.
    pub async fn merge(
        &self,
        kind: &Kind,
        seen: &ObjectMeta,
        part: Option<&str>,
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
        let write = self.write("merge", kind, &key, part);
        let call = async {
            match part {
                Some(part) => api.patch_subresource(part, name, &parameters, &patch).await,
                None => api.patch(name, &parameters, &patch).await,
            }
        };
        let written = self.perform(write, call).await?;
        noted(kind, &key, &written);
        Ok(written)
    }
}
