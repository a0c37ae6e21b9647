//! What only the image of a release says: its name, and the releases before it.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::Arc,
    time::Duration,
};

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
    known: Arc<Mutex<Answers>>,
}

/// The answers, and the images in the order in which they were asked for first.
#[derive(Debug, Default)]
struct Answers {
    by_image: HashMap<Image, Answer>,
    order: VecDeque<Image>,
}

impl Answers {
    /// Remembers an answer. The oldest one makes place for it.
    fn insert(&mut self, image: Image, answer: Answer) {
        if self.by_image.insert(image.clone(), answer).is_some() {
            return;
        }
        self.order.push_back(image);
        if self.order.len() > MAX_KNOWN
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_image.remove(&oldest);
        }
    }
}

/// What is known of an image.
#[derive(Debug)]
pub struct KnownImage {
    /// What it says, or why it could not be read; none if it was not asked for yet.
    pub answer: Option<Result<Arc<ReleaseInfo>, String>>,
    /// It is to be read, for the first time or again.
    pub is_due: bool,
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
        let known = self.known(clock, namespace, pull_spec);
        if let Some(answer) = known.answer.filter(|_| !known.is_due) {
            return answer;
        }
        let image = (namespace.to_owned(), pull_spec.to_owned());
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
        self.known.lock().insert(image, answer);
        read
    }

    /// What is known of the image, without asking for it.
    pub fn known(&self, clock: Clock, namespace: &str, pull_spec: &str) -> KnownImage {
        let image = (namespace.to_owned(), pull_spec.to_owned());
        match self.known.lock().by_image.get(&image) {
            None => KnownImage {
                answer: None,
                is_due: true,
            },
            Some(Answer::Read(info)) => KnownImage {
                answer: Some(Ok(info.clone())),
                is_due: false,
            },
            Some(Answer::Failed { at, why }) => KnownImage {
                answer: Some(Err(why.clone())),
                is_due: clock.uptime() >= *at + READ_RETRY,
            },
        }
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

    /// A registry that answers at once, and counts.
    #[derive(Debug, Default)]
    struct Quick(Mutex<usize>);

    impl ReleaseReader for Quick {
        fn read<'a>(
            &'a self,
            _: &'a str,
            _: &'a str,
        ) -> BoxFuture<'a, Result<ReleaseInfo, String>> {
            *self.0.lock() += 1;
            async { Ok(ReleaseInfo::default()) }.boxed()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn of_more_images_than_are_remembered_only_the_oldest_are_read_again() {
        let quick = Arc::new(Quick::default());
        let reader = CachedReader::new(quick.clone());
        let clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
        let name = |number: usize| format!("reg.example/release@sha256:{number}");
        for number in 0..=MAX_KNOWN {
            reader.read(clock, "ocp", &name(number)).await.unwrap();
        }
        for number in 1..=MAX_KNOWN {
            reader.read(clock, "ocp", &name(number)).await.unwrap();
        }
        assert_eq!(*quick.0.lock(), MAX_KNOWN + 1);
        reader.read(clock, "ocp", &name(0)).await.unwrap();
        assert_eq!(*quick.0.lock(), MAX_KNOWN + 2);
    }
}
