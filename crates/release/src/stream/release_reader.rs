//! What only the image of a release says: its name, and the releases before it.

use std::{collections::HashMap, fmt, sync::Arc};

use futures::future::BoxFuture;
use parking_lot::Mutex;

/// What the image of a release says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReleaseInfo {
    /// The label `io.openshift.release`.
    pub name: String,
    /// The releases that may be upgraded to it.
    pub previous: Vec<String>,
}

/// Reads the image of a release from its registry.
pub trait ReleaseReader: Send + Sync + fmt::Debug {
    /// What the image says. The pull spec has a digest.
    fn read<'a>(&'a self, pull_spec: &'a str) -> BoxFuture<'a, Result<ReleaseInfo, String>>;
}

/// A reader that asks for each image once: what has a digest does not change.
#[derive(Debug, Clone)]
pub struct CachedReader {
    reader: Arc<dyn ReleaseReader>,
    known: Arc<Mutex<HashMap<String, Arc<ReleaseInfo>>>>,
}

/// How many images are remembered.
const MAX_KNOWN: usize = 4096;

impl CachedReader {
    /// Reads with `reader`.
    pub fn new(reader: Arc<dyn ReleaseReader>) -> Self {
        Self {
            reader,
            known: Arc::default(),
        }
    }

    /// What the image says.
    pub async fn read(&self, pull_spec: &str) -> Result<Arc<ReleaseInfo>, String> {
        let known = self.known.lock().get(pull_spec).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let info = Arc::new(self.reader.read(pull_spec).await?);
        let mut known = self.known.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(pull_spec.to_owned(), info.clone());
        Ok(info)
    }
}
