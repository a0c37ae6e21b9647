//! The StorageClass of volumes that are folders of this machine. Pure.

use std::sync::Arc;

use k8s_openapi::{api::storage::v1::StorageClass, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::ResourceExt;

use super::PROVISIONER;

const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
const STANDARD: &str = "standard";

/// The class that is created if users have created none.
pub(super) fn standard_class() -> StorageClass {
    StorageClass {
        metadata: ObjectMeta {
            name: Some(STANDARD.to_owned()),
            annotations: Some([(IS_DEFAULT.to_owned(), "true".to_owned())].into()),
            ..ObjectMeta::default()
        },
        provisioner: PROVISIONER.to_owned(),
        reclaim_policy: Some("Delete".to_owned()),
        volume_binding_mode: Some("Immediate".to_owned()),
        // A folder has no fixed size.
        allow_volume_expansion: Some(true),
        ..StorageClass::default()
    }
}

/// The class of claims that name none: the newest that is marked as default, so that marking
/// another one takes effect.
pub(super) fn default_class(classes: &[Arc<StorageClass>]) -> Option<&StorageClass> {
    let marked = classes
        .iter()
        .filter(|class| class.annotations().get(IS_DEFAULT).map(String::as_str) == Some("true"));
    let newest = marked.max_by_key(|class| {
        let made = class.metadata.creation_timestamp.as_ref();
        (made.map(|time| time.0), std::cmp::Reverse(class.name_any()))
    });
    newest.map(|class| &**class)
}

/// Whether claims of this class are bound only when a pod uses them.
pub(super) fn waits_for_consumer(class: &StorageClass) -> bool {
    class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
}
