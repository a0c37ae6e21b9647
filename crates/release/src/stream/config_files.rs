//! Files that may change while a controller runs: the job configuration of Prow and the global qualifiers.
//!
//! They are read again from time to time: files that a ConfigMap or a checkout provides are replaced, and a
//! watch of a replaced file sees nothing. A file that cannot be used leaves what was loaded before.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use neap_kit::{clock::Clock, manager::Component};

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
            collect(path, 0, &mut texts)
                .map_err(|error| ConfigFilesError(format!("{}: {error}", path.display())))?;
        }
        let files = texts
            .iter()
            .map(|(file, text)| (file.as_str(), text.as_str()));
        ProwConfig::parse(files).map_err(|error| ConfigFilesError(error.to_string()))
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

/// The component that reads the files again.
pub fn component(
    clock: Clock,
    files: ConfigFiles,
    prow: SharedProwConfig,
    qualifiers: SharedQualifiers,
) -> Component {
    Component::new("release-config-files", move |stop| async move {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(INTERVAL) => {}
            }
            match files.prow() {
                Ok(config) => {
                    if prow.replace(config) {
                        tracing::info!("the job configuration has changed");
                    }
                }
                Err(error) => tracing::warn!(%error, "the job configuration stays as it was"),
            }
            match files.qualifiers() {
                Ok(loaded) => {
                    if qualifiers.replace(loaded) {
                        tracing::info!("the qualifiers have changed");
                    }
                }
                Err(error) => tracing::warn!(%error, "the qualifiers stay as they were"),
            }
        }
    })
}

fn collect(path: &Path, depth: usize, texts: &mut Vec<(String, String)>) -> io::Result<()> {
    if !path.is_dir() {
        texts.push((path.display().to_string(), fs::read_to_string(path)?));
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
            collect(&path, depth + 1, texts)?;
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
}
