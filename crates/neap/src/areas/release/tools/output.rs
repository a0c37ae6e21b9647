//! Files and documents that the commands write.

use std::{io::Write, path::Path};

use neap_release::payload_image::extract::OutputFile;

use super::failure;
use crate::exit::Failure;

/// Writes raw bytes to standard output.
pub(super) fn raw(out: &mut dyn Write, content: &[u8]) -> Result<(), Failure> {
    out.write_all(content)
        .map_err(|error| Failure::output(&error))
}

/// Writes files into a folder, which is created. Each appears as a whole.
pub(super) fn files(folder: &Path, files: &[OutputFile]) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| {
        failure::file(&format!("cannot write into {}", folder.display()), error)
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    for file in files {
        whole(&folder.join(&file.name), &file.content)?;
    }
    Ok(())
}

/// Writes a file under another name, and then gives it its own.
pub(super) fn whole(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let failed =
        |error: &std::io::Error| failure::file(&format!("cannot write {}", path.display()), error);
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
    file.write_all(content).map_err(|error| failed(&error))?;
    let stored = file.persist(path).map_err(|error| failed(&error.error))?;
    // Temporary files are private; what was asked for is like any other file.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    stored.set_permissions(mode).map_err(|error| failed(&error))
}
