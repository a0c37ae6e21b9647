//! Configuration that is read again when it changes: a mounted file, or a key of a ConfigMap.
//!
//! A new text is parsed first. If it is not valid, the last valid configuration stays in use, and the problem
//! is logged and reported by [`Reloaded::problem`]. A mounted ConfigMap or Secret is replaced by a new link, and
//! not written in place, so a reader sees the old text or the new one.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::RwLock;
use tokio::sync::watch;

use crate::{
    clock::Clock,
    key::Key,
    manager::Component,
    watch::{Cache, Change},
};

/// How often a mounted file is read: the kubelet itself takes up to a minute to replace it.
const READ_INTERVAL: Duration = Duration::from_secs(5);
/// Files are configuration, and not data.
const MAX_FILE_SIZE: u64 = 4 << 20;

/// Turns a text into a configuration; the error is shown to the user.
type Parse<T> = Box<dyn Fn(&str) -> Result<T, String> + Send + Sync>;

/// The configuration as it was last valid. Cheap to clone.
pub struct Reloaded<T> {
    shared: Arc<SharedConfiguration<T>>,
}

struct SharedConfiguration<T> {
    /// What it is read from, for messages.
    source: String,
    parse: Parse<T>,
    state: RwLock<ConfigurationState<T>>,
    versions: watch::Sender<u64>,
}

struct ConfigurationState<T> {
    text: String,
    current: Arc<T>,
    problem: Option<String>,
}

/// Why there is no configuration at the start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct InvalidConfiguration {
    /// The file or the ConfigMap.
    pub origin: String,
    /// What is wrong with it.
    pub problem: String,
}

impl<T> Clone for Reloaded<T> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T: Send + Sync + 'static> Reloaded<T> {
    /// The configuration in `text`, which must be valid. [`Self::offer`] replaces it.
    pub fn new(
        origin: impl Into<String>,
        text: &str,
        parse: impl Fn(&str) -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Self, InvalidConfiguration> {
        let source = origin.into();
        let current = parse(text).map_err(|problem| InvalidConfiguration {
            origin: source.clone(),
            problem,
        })?;
        let state = ConfigurationState {
            text: text.to_owned(),
            current: Arc::new(current),
            problem: None,
        };
        Ok(Self {
            shared: Arc::new(SharedConfiguration {
                source,
                parse: Box::new(parse),
                state: RwLock::new(state),
                versions: watch::Sender::new(0),
            }),
        })
    }

    /// The configuration of a file, and the component that reads it again. The file must exist and be valid
    /// at the start.
    pub fn file(
        name: &'static str,
        path: impl Into<PathBuf>,
        clock: Clock,
        parse: impl Fn(&str) -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<(Self, Component), InvalidConfiguration> {
        let path = path.into();
        let origin = path.display().to_string();
        let text = read(&path).map_err(|problem| InvalidConfiguration {
            origin: origin.clone(),
            problem,
        })?;
        let configuration = Self::new(origin, &text, parse)?;
        let reloaded = configuration.clone();
        let component = Component::new(name, move |stop| async move {
            let reading = async {
                loop {
                    clock.sleep(READ_INTERVAL).await;
                    match read(&path) {
                        Ok(text) => reloaded.offer(&text),
                        Err(problem) => reloaded.reject(problem),
                    }
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = reading => {}
            }
        });
        Ok((configuration, component))
    }

    /// Follows a key of a ConfigMap in `maps`: whenever the object changes, its text is offered. A ConfigMap
    /// or a key that is missing is a problem, and the last valid configuration stays.
    pub fn follow(&self, maps: &Cache<ConfigMap>, key: Key, entry: impl Into<String>) {
        let (configuration, entry) = (self.clone(), entry.into());
        maps.subscribe(move |change| {
            if change.key() != key {
                return;
            }
            let text = match change {
                Change::Deleted(_) => None,
                Change::Added(map) | Change::Modified { new: map, .. } => {
                    map.data.as_ref().and_then(|data| data.get(&entry))
                }
            };
            match text {
                Some(text) => configuration.offer(text),
                None => configuration.reject(format!("there is no {entry} in ConfigMap {key}")),
            }
        });
    }

    /// Takes the configuration in `text` if it is valid and another one.
    pub fn offer(&self, text: &str) {
        if self.shared.state.read().text == text {
            self.shared.state.write().problem = None;
            return;
        }
        match (self.shared.parse)(text) {
            Ok(configuration) => {
                {
                    let mut state = self.shared.state.write();
                    text.clone_into(&mut state.text);
                    state.current = Arc::new(configuration);
                    state.problem = None;
                }
                tracing::info!(
                    source = self.shared.source,
                    "the configuration was read again"
                );
                self.shared.versions.send_modify(|version| *version += 1);
            }
            Err(problem) => self.reject(problem),
        }
    }

    /// Keeps the last valid configuration, and reports what is wrong with the new one.
    fn reject(&self, problem: String) {
        let mut state = self.shared.state.write();
        if state.problem.as_ref() != Some(&problem) {
            let source = &self.shared.source;
            tracing::warn!(source, problem, "the last valid configuration stays in use");
            state.problem = Some(problem);
        }
    }

    /// The configuration.
    pub fn current(&self) -> Arc<T> {
        self.shared.state.read().current.clone()
    }

    /// What is wrong with the text that was last read; none if it is in use.
    pub fn problem(&self) -> Option<String> {
        let problem = self.shared.state.read().problem.clone()?;
        Some(format!("{}: {problem}", self.shared.source))
    }

    /// A receiver that is notified of every new configuration.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.shared.versions.subscribe()
    }
}

fn read(path: &Path) -> Result<String, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if size.len() > MAX_FILE_SIZE {
        return Err(format!("it has more than {MAX_FILE_SIZE} bytes"));
    }
    std::fs::read_to_string(path).map_err(|error| error.to_string())
}

impl<T> fmt::Debug for Reloaded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloaded")
            .field("source", &self.shared.source)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tokio_util::sync::CancellationToken;

    use super::*;

    fn number(text: &str) -> Result<u32, String> {
        text.trim().parse().map_err(|_| "not a number".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_file_is_read_again_and_an_invalid_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limit");
        fs::write(&path, "3").unwrap();
        let clock = Clock::system();
        let (limit, component) = Reloaded::file("limit", &path, clock, number).unwrap();
        let mut versions = limit.subscribe();
        let stop = CancellationToken::new();
        let script = async {
            assert_eq!(*limit.current(), 3);
            fs::write(&path, "4").unwrap();
            versions.changed().await.unwrap();
            assert_eq!(*limit.current(), 4);
            fs::write(&path, "many").unwrap();
            clock.sleep(2 * READ_INTERVAL).await;
            assert_eq!(*limit.current(), 4, "the last valid one stays");
            assert!(limit.problem().unwrap().ends_with("limit: not a number"));
            fs::remove_file(&path).unwrap();
            clock.sleep(2 * READ_INTERVAL).await;
            assert!(limit.problem().is_some() && *limit.current() == 4);
            fs::write(&path, "4").unwrap();
            clock.sleep(2 * READ_INTERVAL).await;
            assert_eq!(limit.problem(), None, "the text that is in use is back");
            stop.cancel();
        };
        tokio::join!(component.run(stop.clone()), script);
    }

    #[test]
    fn a_configuration_that_is_invalid_at_the_start_is_refused_with_its_origin() {
        let refused = Reloaded::new("ConfigMap shop/limits", "x", number).unwrap_err();
        assert_eq!(refused.to_string(), "ConfigMap shop/limits: not a number");
    }
}
