//! The definition behind a watch: a watch of a custom resource ends when its definition is removed
//! or changes how objects are shown.

use std::sync::Arc;

use tokio::sync::watch as wake;

use crate::{
    crd,
    rest::{
        Served,
        registry::{Registry, SchemaSource},
    },
};

/// The resource that a watch started on, and whether it is still served.
pub(super) struct WatchedDefinition {
    registry: Arc<Registry>,
    served: Arc<Served>,
    changes: wake::Receiver<u64>,
}

impl WatchedDefinition {
    pub(super) fn new(registry: Arc<Registry>, served: Arc<Served>) -> Self {
        let mut changes = registry.changes();
        // Between finding the resource and this line the definition may have changed.
        changes.mark_changed();
        Self {
            registry,
            served,
            changes,
        }
    }

    /// Whether the definition was removed or shows objects differently now.
    pub(super) fn is_over(&mut self) -> bool {
        if !self.served.is_custom() || !self.changes.has_changed().unwrap_or(false) {
            return false;
        }
        self.changes.borrow_and_update();
        let resource = &self.served.resource;
        let now = self
            .registry
            .lookup(&resource.group, &self.served.version, &resource.plural);
        now.is_none_or(|now| {
            !Arc::ptr_eq(&now, &self.served) && !shows_the_same(&now, &self.served)
        })
    }

    /// Resolves when [`Self::is_over`] may have changed; never for a built-in kind.
    pub(super) async fn changed(&mut self) {
        if self.served.is_custom() {
            // The sender lives as long as the registry, which is held here.
            let _ = self.changes.changed().await;
            self.changes.mark_changed();
        } else {
            std::future::pending::<()>().await;
        }
    }
}

/// Whether a rewritten definition shows objects as before. One that only gets a label, or is
/// deleted and waits for its objects to be removed, does: their removal must still be sent.
fn shows_the_same(one: &Served, other: &Served) -> bool {
    let (
        SchemaSource::Custom {
            definition: a,
            version: i,
            ..
        },
        SchemaSource::Custom {
            definition: b,
            version: j,
            ..
        },
    ) = (&one.shape, &other.shape)
    else {
        return false;
    };
    let same = |a: &crd::DefinitionVersion, b: &crd::DefinitionVersion| {
        a.open_api == b.open_api
            && a.printer_columns == b.printer_columns
            && a.selectable_fields == b.selectable_fields
    };
    a.names == b.names
        && a.scope == b.scope
        && a.preserve_unknown_fields == b.preserve_unknown_fields
        && one.resource.storage == other.resource.storage
        && same(&a.versions[*i], &b.versions[*j])
}
