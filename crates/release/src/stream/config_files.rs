//! Files that may change while a controller runs: the job configuration of Prow and the global qualifiers.
//!
//! They are looked at again from time to time: files that a ConfigMap or a checkout provides are replaced, and a
//! watch of a replaced file sees nothing. They are read only if one differs, on a thread that may block: the job
//! configuration of a large installation has thousands of files. A file that cannot be used leaves what was loaded
//! before.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use neap_kit::{clock::Clock, manager::Component};
use tokio::task::spawn_blocking;

use super::prow_config::{ProwConfig, SharedProwConfig};
use crate::{config::ReleaseQualifiers, payload::controller::SharedQualifiers};

/// The time between two reads.
const INTERVAL: Duration = Duration::from_secs(30);
/// The deepest folder that is looked into.
const MAX_DEPTH: usize = 16;

/// Where the files are.
#[derive(Debug, Clone, Default)]
pub struct ConfigFiles {
    /// Files and folders with the job configuration of Prow.
    pub jobs: Vec<PathBuf>,
    /// The file with the global qualifiers. A missing file is no qualifiers.
    pub qualifiers: Option<PathBuf>,
}

/// The files cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigFilesError(String);

impl ConfigFiles {
    /// Reads the job configuration.
    pub fn prow(&self) -> Result<ProwConfig, ConfigFilesError> {
        let mut texts = Vec::new();
        for path in &self.jobs {
            let failed = |error| ConfigFilesError(format!("{}: {error}", path.display()));
            let mut files = Vec::new();
            files_below(path, 0, &mut files).map_err(failed)?;
            for file in files {
                let text = fs::read_to_string(&file).map_err(failed)?;
                texts.push((file.display().to_string(), text));
            }
        }
        let files = texts
            .iter()
            .map(|(file, text)| (file.as_str(), text.as_str()));
        ProwConfig::parse(files).map_err(|error| ConfigFilesError(error.to_string()))
    }

    /// The versions of all files. A folder that cannot be read has none.
    fn versions(&self) -> Vec<FileVersion> {
        let mut files = Vec::new();
        for path in &self.jobs {
            if files_below(path, 0, &mut files).is_err() {
                files.push(path.clone());
            }
        }
        let all = files.into_iter().chain(self.qualifiers.clone());
        all.map(FileVersion::of).collect()
    }

    /// Reads the qualifiers.
    pub fn qualifiers(&self) -> Result<ReleaseQualifiers, ConfigFilesError> {
        let Some(path) = &self.qualifiers else {
            return Ok(ReleaseQualifiers::default());
        };
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(ConfigFilesError(format!("{}: {error}", path.display()))),
        };
        let parsed = ReleaseQualifiers::parse(&text);
        parsed.map_err(|error| ConfigFilesError(format!("{}: {error}", path.display())))
    }
}

/// What tells two versions of a file apart without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileVersion {
    path: PathBuf,
    /// Device and inode, size, and the times of the last changes of the content and of the inode.
    numbers: [i128; 5],
}

impl FileVersion {
    fn of(path: PathBuf) -> Self {
        let numbers = fs::metadata(&path).map_or([-1; 5], |found| {
            let time =
                |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
            [
                i128::from(found.dev()),
                i128::from(found.ino()),
                i128::from(found.size()),
                time(found.mtime(), found.mtime_nsec()),
                time(found.ctime(), found.ctime_nsec()),
            ]
        });
        Self { path, numbers }
    }
}

/// What was loaded from files that differ.
#[derive(Debug)]
struct Loaded {
    prow: Result<ProwConfig, ConfigFilesError>,
    qualifiers: Result<ReleaseQualifiers, ConfigFilesError>,
}

/// Loads the files if they differ from those of the last time.
#[derive(Debug)]
struct Loader {
    files: ConfigFiles,
    last: Option<Vec<FileVersion>>,
}

impl Loader {
    fn load_if_changed(&mut self) -> Option<Loaded> {
        // Taken before the files are read: a change in between is seen the next time.
        let versions = self.files.versions();
        if self.last.as_ref() == Some(&versions) {
            return None;
        }
        self.last = Some(versions);
        Some(Loaded {
            prow: self.files.prow(),
            qualifiers: self.files.qualifiers(),
        })
    }
}

/// The component that looks at the files again.
pub fn component(
    clock: Clock,
    files: ConfigFiles,
    prow: SharedProwConfig,
    qualifiers: SharedQualifiers,
) -> Component {
    Component::new("release-config-files", move |stop| async move {
        let mut loader = Loader { files, last: None };
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(INTERVAL) => {}
            }
            let loading = spawn_blocking(move || (loader.load_if_changed(), loader));
            let Ok((loaded, again)) = loading.await else {
                return tracing::error!("the files of the configuration are not read any more");
            };
            loader = again;
            if let Some(loaded) = loaded {
                use_loaded(loaded, &prow, &qualifiers);
            }
        }
    })
}

fn use_loaded(loaded: Loaded, prow: &SharedProwConfig, qualifiers: &SharedQualifiers) {
    match loaded.prow {
        Ok(config) => {
            if prow.replace(config) {
                tracing::info!("the job configuration has changed");
            }
        }
        Err(error) => tracing::warn!(%error, "the job configuration stays as it was"),
    }
    match loaded.qualifiers {
        Ok(loaded) => {
            if qualifiers.replace(loaded) {
                tracing::info!("the qualifiers have changed");
            }
        }
        Err(error) => tracing::warn!(%error, "the qualifiers stay as they were"),
    }
}

/// The files that are read below a path, in the order of their names.
fn files_below(path: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        found.push(path.to_owned());
        return Ok(());
    }
    let mut entries: Vec<_> = fs::read_dir(path)?.collect::<io::Result<_>>()?;
    entries.sort_by_key(fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let is_yaml = path
            .extension()
            .is_some_and(|it| it == "yaml" || it == "yml");
        if (path.is_dir() && depth < MAX_DEPTH) || (path.is_file() && is_yaml) {
            files_below(&path, depth + 1, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_read_and_a_missing_file_of_qualifiers_is_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("org")).unwrap();
        let jobs = "periodics:\n- {name: a, cluster: build01}\n";
        fs::write(folder.path().join("org/jobs.yaml"), jobs).unwrap();
        fs::write(folder.path().join("notes.txt"), "{").unwrap();
        let files = ConfigFiles {
            jobs: vec![folder.path().to_owned()],
            qualifiers: Some(folder.path().join("missing.yaml")),
        };
        assert_eq!(files.prow().unwrap().periodics.len(), 1);
        assert_eq!(files.qualifiers().unwrap(), ReleaseQualifiers::default());
        fs::write(folder.path().join("org/more.yaml"), jobs).unwrap();
        let error = files.prow().unwrap_err().to_string();
        assert!(error.contains("defined before"), "{error}");
    }

    #[test]
    fn files_are_read_again_only_if_one_differs() {
        let folder = tempfile::tempdir().unwrap();
        let jobs = folder.path().join("jobs.yaml");
        let qualifiers = folder.path().join("qualifiers.yaml");
        fs::write(&jobs, "periodics:\n- {name: a, cluster: build01}\n").unwrap();
        let files = ConfigFiles {
            jobs: vec![folder.path().to_owned()],
            qualifiers: Some(qualifiers.clone()),
        };
        let mut loader = Loader { files, last: None };
        let loads = |loader: &mut Loader| loader.load_if_changed().is_some();
        assert!(loads(&mut loader) && !loads(&mut loader));
        // Of the same size, in place of the other, as a checkout does it.
        let other = folder.path().join("other");
        fs::write(&other, "periodics:\n- {name: b, cluster: build01}\n").unwrap();
        fs::rename(&other, &jobs).unwrap();
        let loaded = loader.load_if_changed().unwrap().prow.unwrap();
        assert!(loaded.periodics.contains_key("b"));
        assert!(!loads(&mut loader));
        fs::write(&qualifiers, "qualifiers: {}\n").unwrap();
        assert!(loads(&mut loader) && !loads(&mut loader));
        fs::write(&jobs, "{").unwrap();
        assert!(loader.load_if_changed().unwrap().prow.is_err());
        assert!(!loads(&mut loader), "it is told once");
    }
}
