//! Components that are being deleted while workers still need them.
//!
//! An action that has begun needs its scheduler until it has ended, the storage for its outputs, and the
//! frontend for its client. So these are kept until the pools that go with them are gone, and until the
//! workers of pools that stay are drained. The bounds of the drains bound this too.

use super::{Member, scheduler_restart};
use crate::farm::{Component, ComponentKind};

/// What workers are about to lose.
pub(super) struct Leaving {
    /// The scheduler that is going to be restarted.
    restart: Option<String>,
    /// The schedulers that are being deleted.
    schedulers: Vec<String>,
    /// Whether the storage is being deleted.
    storage: bool,
}

impl Leaving {
    pub(super) fn of(members: &[Member<'_>]) -> Self {
        let schedulers = of_kind(members, ComponentKind::Scheduler);
        let schedulers = schedulers.filter(|it| it.is_deleting());
        let storages = of_kind(members, ComponentKind::Storage);
        let storage = storages.min_by(|one, other| one.seniority().cmp(&other.seniority()));
        Self {
            restart: scheduler_restart(members),
            schedulers: schedulers.map(|it| it.name().to_owned()).collect(),
            storage: storage.is_some_and(Component::is_deleting),
        }
    }

    /// Whether a pool with this scheduler loses something for good.
    pub(super) fn is_deleted(&self, scheduler: Option<&str>) -> bool {
        let mut schedulers = self.schedulers.iter();
        self.storage || schedulers.any(|it| Some(&**it) == scheduler)
    }

    /// Whether a pool with this scheduler loses it for a while.
    pub(super) fn is_restarted(&self, scheduler: Option<&str>) -> bool {
        self.restart.is_some() && self.restart.as_deref() == scheduler
    }
}

fn of_kind<'a>(
    members: &'a [Member<'_>],
    kind: ComponentKind,
) -> impl Iterator<Item = &'a Component> {
    let components = members.iter().map(|it| it.component);
    components.filter(move |it| it.kind == kind)
}

/// Finds the pool for which each component that is being deleted is kept. The drains are decided before.
pub(super) fn keep(members: &mut [Member<'_>]) {
    for index in 0..members.len() {
        let component = members[index].component;
        if component.is_deleting() {
            let mut pools = members.iter();
            let pool = pools.find(|pool| needs(pool, component));
            let name = pool
                .map(|pool| format!("{} {}", pool.component.kind.kind(), pool.component.name()));
            members[index].kept_for = name;
        }
    }
}

/// Whether the workers of a pool still need a component.
fn needs(pool: &Member<'_>, component: &Component) -> bool {
    let Some(drain) = &pool.drain else {
        return false;
    };
    let leaves = pool.component.is_deleting();
    let uses = match component.kind {
        ComponentKind::Storage => true,
        ComponentKind::Scheduler => pool.scheduler.as_deref() == Some(component.name()),
        // Actions go on without it, and their clients ask again.
        ComponentKind::Frontend => leaves,
        ComponentKind::Worker | ComponentKind::Browser => false,
    };
    uses && if leaves {
        pool.component.has_finalizer()
    } else {
        !drain.all_released
    }
}
