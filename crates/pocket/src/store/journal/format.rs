//! The `FORMAT` file: the version of a data folder's layout, and the migrations from older ones.
//!
//! It is written last when a folder is created, so a folder without it was never used.

use std::sync::Arc;

use super::{
    Disk, Error,
    frame::is_blank,
    header::FILE_HEADER,
    layout::{self, FORMAT, Layout, NEW_FORMAT},
    log::Log,
};

/// The version written by this program.
const CURRENT: u32 = 1;
const LABEL: &str = "pocket data format ";

/// Rewrites a folder from the version it is listed under to the next one. It may be interrupted
/// anywhere, so it must leave the old files usable until the new ones are durable.
type Migration = fn(&Arc<dyn Disk>) -> Result<(), Error>;

/// The steps from older versions, by the version they start from.
const MIGRATIONS: &[(u32, Migration)] = &[];

/// Initializes an unused folder, migrates an older one, refuses an unknown format.
pub(super) fn ensure(disk: &Arc<dyn Disk>, step: u32) -> Result<(), Error> {
    let layout = Layout::of(&**disk)?;
    if layout.format {
        return upgrade(disk, MIGRATIONS, CURRENT);
    }
    refuse_used(&**disk, &layout)?;
    Log::create(disk, 0, step)?;
    write(&**disk, CURRENT)
}

/// What [`ensure`] would refuse; whether the folder was used. Changes nothing.
pub(super) fn verify(disk: &dyn Disk) -> Result<bool, Error> {
    let layout = Layout::of(disk)?;
    if !layout.format {
        return refuse_used(disk, &layout).map(|()| false);
    }
    let found = read(disk)?;
    let known = found == CURRENT || MIGRATIONS.iter().any(|(from, _)| *from == found);
    if known {
        return Ok(true);
    }
    Err(Error::Format {
        path: disk.path(FORMAT),
        found,
        supported: CURRENT,
    })
}

fn refuse_used(disk: &dyn Disk, layout: &Layout) -> Result<(), Error> {
    let mut used = !layout.snapshots.is_empty() || layout.logs.iter().any(|base| *base != 0);
    if !used && !layout.logs.is_empty() {
        let name = layout::log(0);
        let log = disk.read(&name).map_err(Error::io(disk, "read", &name))?;
        used = !is_blank(log.get(FILE_HEADER..).unwrap_or_default());
    }
    if used {
        return Err(Error::Missing {
            path: disk.path(FORMAT),
            reason: "the folder holds logs or snapshots, and their format is unknown",
        });
    }
    Ok(())
}

fn upgrade(
    disk: &Arc<dyn Disk>,
    migrations: &[(u32, Migration)],
    supported: u32,
) -> Result<(), Error> {
    let mut version = read(&**disk)?;
    while version != supported {
        let step = migrations.iter().find(|(from, _)| *from == version);
        let Some((_, migrate)) = step.filter(|_| version < supported) else {
            return Err(Error::Format {
                path: disk.path(FORMAT),
                found: version,
                supported,
            });
        };
        tracing::info!(folder = %disk.path("").display(), from = version, "migrating the data folder");
        migrate(disk)?;
        version += 1;
        write(&**disk, version)?;
    }
    Ok(())
}

fn read(disk: &dyn Disk) -> Result<u32, Error> {
    let bytes = disk.read(FORMAT).map_err(Error::io(disk, "read", FORMAT))?;
    std::str::from_utf8(&bytes)
        .ok()
        .and_then(|text| text.strip_prefix(LABEL)?.trim_end().parse().ok())
        .ok_or_else(|| Error::NotAFormat {
            path: disk.path(FORMAT),
        })
}

fn write(disk: &dyn Disk, version: u32) -> Result<(), Error> {
    let text = format!("{LABEL}{version}\n");
    let mut file = disk
        .create(NEW_FORMAT)
        .map_err(Error::io(disk, "create", NEW_FORMAT))?;
    file.write_at(0, text.as_bytes())
        .map_err(Error::io(disk, "write", NEW_FORMAT))?;
    file.sync().map_err(Error::io(disk, "sync", NEW_FORMAT))?;
    disk.rename(NEW_FORMAT, FORMAT)
        .map_err(Error::io(disk, "rename", NEW_FORMAT))?;
    disk.sync_folder().map_err(Error::io(disk, "sync", ""))
}

#[cfg(test)]
mod tests;
