//! What only the image of a release says: its name, and the releases before it.

use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use neap_kit::clock::{Clock, Uptime};
use parking_lot::Mutex;

/// What the image of a release says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReleaseInfo {
    /// The label `io.openshift.release`.
    pub name: String,
    /// The releases that may be upgraded to it.
    pub previous: Vec<String>,
    /// Its image with the program `oc`.
    pub cli: Option<String>,
}

/// Reads the image of a release from its registry.
pub trait ReleaseReader: Send + Sync + fmt::Debug {
    /// What the image says, which a stream in `namespace` refers to. The pull spec has a digest.
    fn read<'a>(
        &'a self,
        namespace: &'a str,
        pull_spec: &'a str,
    ) -> BoxFuture<'a, Result<ReleaseInfo, String>>;
}

/// A reader that asks for each image once: what has a digest does not change.
///
/// An image that cannot be read is asked for again after [`READ_RETRY`]. Until then the answer is the failure, so
/// that a registry that does not answer delays no other look at the stream.
#[derive(Debug, Clone)]
pub struct CachedReader {
    reader: Arc<dyn ReleaseReader>,
    known: Arc<Mutex<HashMap<Image, Answer>>>,
}

/// The namespace that refers to an image, whose credentials open it, and its pull spec.
type Image = (String, String);

#[derive(Debug, Clone)]
enum Answer {
    Read(Arc<ReleaseInfo>),
    Failed { at: Uptime, why: String },
}

/// How many images are remembered.
const MAX_KNOWN: usize = 4096;
/// Bounds the read of one image.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// The time after which an image that could not be read is asked for again.
pub const READ_RETRY: Duration = Duration::from_secs(30);

impl CachedReader {
    /// Reads with `reader`.
    pub fn new(reader: Arc<dyn ReleaseReader>) -> Self {
        Self {
            reader,
            known: Arc::default(),
        }
    }

    /// What the image says.
    pub async fn read(
        &self,
        clock: Clock,
        namespace: &str,
        pull_spec: &str,
    ) -> Result<Arc<ReleaseInfo>, String> {
        let image = (namespace.to_owned(), pull_spec.to_owned());
        let known = self.known.lock().get(&image).cloned();
        match known {
            Some(Answer::Read(info)) => return Ok(info),
            Some(Answer::Failed { at, why }) if clock.uptime() < at + READ_RETRY => {
                return Err(why);
            }
            _ => {}
        }
        let reading = self.reader.read(namespace, pull_spec);
        let read = clock.within(READ_TIMEOUT, reading).await;
        let seconds = READ_TIMEOUT.as_secs();
        let read = read.unwrap_or_else(|| Err(format!("no answer in {seconds} seconds")));
        let read = read.map(Arc::new);
        let answer = match &read {
            Ok(info) => Answer::Read(info.clone()),
            Err(why) => Answer::Failed {
                at: clock.uptime(),
                why: why.clone(),
            },
        };
        let mut known = self.known.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(image, answer);
        read
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// A registry that does not answer at first, then refuses, then answers.
    #[derive(Debug, Default)]
    struct Slow(Mutex<usize>);

    impl ReleaseReader for Slow {
        fn read<'a>(
            &'a self,
            _: &'a str,
            pull_spec: &'a str,
        ) -> BoxFuture<'a, Result<ReleaseInfo, String>> {
            let mut calls = self.0.lock();
            *calls += 1;
            let call = *calls;
            async move {
                match call {
                    1 => std::future::pending().await,
                    2 => Err("refused".to_owned()),
                    _ => Ok(ReleaseInfo {
                        name: pull_spec.to_owned(),
                        ..ReleaseInfo::default()
                    }),
                }
            }
            .boxed()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_registry_that_does_not_answer_delays_one_look_and_is_asked_again_later() {
        let slow = Arc::new(Slow::default());
        let reader = CachedReader::new(slow.clone());
        let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
        let read = || reader.read(clock, "ocp", "reg.example/release@sha256:1");
        let begun = clock.uptime();
        assert_eq!(read().await.unwrap_err(), "no answer in 10 seconds");
        assert_eq!(clock.uptime(), begun + READ_TIMEOUT);
        assert_eq!(read().await.unwrap_err(), "no answer in 10 seconds");
        assert_eq!(clock.uptime(), begun + READ_TIMEOUT, "it was not asked");
        clock.sleep(READ_RETRY).await;
        assert_eq!(read().await.unwrap_err(), "refused");
        clock.sleep(READ_RETRY).await;
        let name = "reg.example/release@sha256:1";
        assert_eq!(read().await.unwrap().name, name);
        assert_eq!(read().await.unwrap().name, name);
        assert_eq!(*slow.0.lock(), 3, "what was read is not read again");
    }
}
