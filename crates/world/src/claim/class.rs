//! The class of volumes that are folders of this machine. Pure.

use std::sync::Arc;

use k8s_openapi::{api::storage::v1::StorageClass, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::ResourceExt;

use super::PROVISIONER;

const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
const USUAL: &str = "standard";

/// The class that is there if people made none.
pub(super) fn usual() -> StorageClass {
    StorageClass {
        metadata: ObjectMeta {
            name: Some(USUAL.to_owned()),
            annotations: Some([(DEFAULT.to_owned(), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        provisioner: PROVISIONER.to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some("Immediate".to_owned()),
        // A folder has no size of its own.
        allow_volume_expansion: Some(true),
        ..StorageClass::default()
    }
}

/// The class of claims that name none: the newest that is marked, so that marking another has an
/// effect.
pub(super) fn default_of(classes: &[Arc<StorageClass>]) -> Option<&StorageClass> {
    let marked = classes
        .iter()
        .filter(|class| class.annotations().get(DEFAULT).map(String::as_str) == Some("true"));
    let newest = marked.max_by_key(|class| {
        let made = class.metadata.creation_timestamp.as_ref();
        (made.map(|time| time.0), std::cmp::Reverse(class.name_any()))
    });
    newest.map(|class| &**class)
}

/// Whether claims of this class are bound only when a pod needs them.
pub(super) fn waits(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}
