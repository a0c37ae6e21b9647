//! What processes of a launch may do, and what is left of that to the command.

use std::io;

use rustix::thread::{
    CapabilitySet, capabilities, clear_ambient_capability_set, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities,
};

use super::{Error, Rooms, namespaces::tried};

/// What root may do in containers: see to its own files, become somebody else, and listen on any
/// port.
const USUAL: [CapabilitySet; 10] = [
    CapabilitySet::CHOWN,
    CapabilitySet::DAC_OVERRIDE,
    CapabilitySet::FOWNER,
    CapabilitySet::FSETID,
    CapabilitySet::KILL,
    CapabilitySet::NET_BIND_SERVICE,
    CapabilitySet::NET_RAW,
    CapabilitySet::SETGID,
    CapabilitySet::SETUID,
    CapabilitySet::SYS_CHROOT,
];

/// Has the next process keep the right to mount, whoever it is inside: only that one is in the pid
/// namespace, and what it needs for this would be gone when it begins.
pub(super) fn keep_to_mount(rooms: &Rooms) -> Result<(), Error> {
    if !rooms.own_proc {
        return Ok(());
    }
    let kept = capabilities(None).and_then(|mut sets| {
        sets.inheritable |= CapabilitySet::SYS_ADMIN;
        set_capabilities(None, sets)?;
        configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)
    });
    tried("keep the right to mount", kept.map_err(io::Error::from))
}

/// The command is not to have it unless it is root inside.
pub(super) fn give_up_to_mount() {
    // Whoever never had it loses nothing.
    let _ = clear_ambient_capability_set();
}

/// Leaves root of the machine what is usual in containers, for good.
pub(super) fn give_up() -> Result<(), Error> {
    let kept: CapabilitySet = USUAL.into_iter().collect();
    let given_up = capabilities(None).and_then(|mut sets| {
        // Each that root has now; more it cannot get either.
        for right in sets.permitted.difference(kept).iter() {
            remove_capability_from_bounding_set(right)?;
        }
        sets.permitted &= kept;
        sets.effective &= kept;
        sets.inheritable = CapabilitySet::empty();
        set_capabilities(None, sets)
    });
    tried("give up rights", given_up.map_err(io::Error::from))
}
