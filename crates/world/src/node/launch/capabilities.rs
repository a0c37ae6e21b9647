//! The capabilities of the processes of a launch, and those left to the command.

use std::io;

use rustix::thread::{
    CapabilitySet, capabilities, clear_ambient_capability_set, configure_capability_in_ambient_set,
    remove_capability_from_bounding_set, set_capabilities,
};

use super::{ContainerNamespaces, Error, namespaces::attempt};

/// The capabilities of root in containers: manage its own files, change its user, and listen on any
/// port.
const CONTAINER_CAPABILITIES: [CapabilitySet; 10] = [
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

/// Lets the next process keep the capability to mount, whatever its user: only that one is in the
/// pid namespace, and without this it would lose the capability on exec.
pub(super) fn keep_mount_capability(namespaces: &ContainerNamespaces) -> Result<(), Error> {
    if !namespaces.own_proc {
        return Ok(());
    }
    let kept = capabilities(None).and_then(|mut sets| {
        sets.inheritable |= CapabilitySet::SYS_ADMIN;
        set_capabilities(None, sets)?;
        configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)
    });
    attempt("keep the mount capability", kept.map_err(io::Error::from))
}

/// Drops the capability again: the command must not have it unless it is root inside.
pub(super) fn drop_mount_capability() {
    // No error if it was never set.
    let _ = clear_ambient_capability_set();
}

/// Reduces root of the machine to the usual capabilities of containers, irrevocably.
pub(super) fn drop_capabilities() -> Result<(), Error> {
    let kept: CapabilitySet = CONTAINER_CAPABILITIES.into_iter().collect();
    let given_up = capabilities(None).and_then(|mut sets| {
        // Only those that root has now; it cannot gain others.
        for right in sets.permitted.difference(kept).iter() {
            remove_capability_from_bounding_set(right)?;
        }
        sets.permitted &= kept;
        sets.effective &= kept;
        sets.inheritable = CapabilitySet::empty();
        set_capabilities(None, sets)
    });
    attempt("drop capabilities", given_up.map_err(io::Error::from))
}
