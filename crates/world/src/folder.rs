//! Folders of this machine.

use std::{fs, io, path::Path};

/// Removes a folder and everything in it; that it is not there is just as good.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_needs_no_removal_and_what_is_no_folder_is_refused() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a");
        remove(&folder).unwrap();
        fs::create_dir_all(folder.join("b")).unwrap();
        remove(&folder).unwrap();
        assert!(!folder.exists());
        fs::write(&folder, "").unwrap();
        remove(&folder).unwrap_err();
    }
}
