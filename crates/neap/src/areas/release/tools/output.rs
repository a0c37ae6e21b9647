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
        // Names come from payloads, which others have made.
        if !is_plain(&file.name) {
            let why = format!("{:?} is no name of a file in it", file.name);
            return Err(failed(&std::io::Error::other(why)));
        }
        whole(&folder.join(&file.name), &file.content)?;
    }
    Ok(())
}

/// Whether a name is that of a file in a folder, and leads nowhere else.
fn is_plain(name: &str) -> bool {
    let mut parts = Path::new(name).components();
    let first = parts.next();
    first == Some(std::path::Component::Normal(name.as_ref())) && parts.next().is_none()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_written_outside_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a");
        let file = |name: &str| OutputFile {
            name: name.to_owned(),
            content: b"x".to_vec(),
        };
        for wrong in ["../pwned", "/pwned", "b/c", "..", "."] {
            assert!(files(&inner, &[file(wrong)]).is_err(), "{wrong}");
        }
        files(&inner, &[file("0000_50_web_a.yaml")]).unwrap();
        assert!(inner.join("0000_50_web_a.yaml").is_file());
        assert!(!folder.path().join("pwned").exists());
    }
}
