//! The image table as the node uses it: fixed, or a file that is read again when it changes.

use std::{path::Path, sync::Arc};

use neap_kit::{
    clock::Clock,
    manager::Component,
    reload::{InvalidConfiguration, Reloaded},
};

use super::Images;

/// The image table of a node. Cheap to clone.
#[derive(Debug, Clone)]
pub struct ImageTable(Source);

#[derive(Debug, Clone)]
enum Source {
    Fixed(Arc<Images>),
    File(Reloaded<Images>),
}

impl From<Images> for ImageTable {
    fn from(images: Images) -> Self {
        Self(Source::Fixed(Arc::new(images)))
    }
}

impl ImageTable {
    /// The images of a file, followed by `builtin`, and the component that reads the file again. Containers
    /// that run are not affected by a change; those that start later are.
    pub fn file(
        path: &Path,
        builtin: Images,
        clock: Clock,
    ) -> Result<(Self, Component), InvalidConfiguration> {
        let parse = move |text: &str| {
            let table = builtin.clone().preceded_by(text);
            table.map_err(|error| error.to_string())
        };
        let (images, component) = Reloaded::file("image-table", path, clock, parse)?;
        Ok((Self(Source::File(images)), component))
    }

    /// The images at this moment.
    pub fn current(&self) -> Arc<Images> {
        match &self.0 {
            Source::Fixed(images) => images.clone(),
            Source::File(images) => images.current(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_changed_file_changes_the_table_and_an_invalid_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("images.toml");
        let entry =
            |name: &str| format!("[[image]]\nname = \"{name}\"\ncommand = [\"/bin/true\"]\n");
        fs::write(&path, entry("first")).unwrap();
        let clock = Clock::system();
        let builtin = Images::builtin(Path::new("/bin/neap"));
        let (table, component) = ImageTable::file(&path, builtin, clock).unwrap();
        let stop = CancellationToken::new();
        let has = |name: &str| table.current().find(name).is_some();
        let script = async {
            assert!(has("first") && has("busybox") && !has("second"));
            fs::write(&path, entry("second")).unwrap();
            clock.sleep(Duration::from_secs(20)).await;
            assert!(has("second") && has("busybox") && !has("first"));
            fs::write(&path, "[[image]]\nnam = 1\n").unwrap();
            clock.sleep(Duration::from_secs(20)).await;
            assert!(has("second"), "the last valid table stays");
            stop.cancel();
        };
        tokio::join!(component.run(stop.clone()), script);
    }
}
