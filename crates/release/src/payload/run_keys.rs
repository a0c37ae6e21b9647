//! The keys of run tokens, in a Secret of the release namespace.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::{
    ByteString,
    api::{batch::v1::Job, core::v1::Secret},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use neap_kit::{
    apply::{Error, Writer},
    clock::{Clock, Uptime},
    key::Key,
};
use parking_lot::Mutex;

use super::run_token::{MIN_KEY_BYTES, RunKey};
use crate::api::{ReleasePayload, annotations};

/// The Secret with the keys.
pub const SECRET: &str = "neap-release-run-keys";
/// The key that a new Secret has.
const FIRST: &str = "key-1";
/// The time between two reads of the Secret for the newest key, and between two searches for one that it lacks.
pub const REREAD: Duration = Duration::from_secs(15);
/// How many keys that the Secret lacks are remembered.
const MAX_MISSED: usize = 64;

/// Where the randomness of a new key comes from.
pub type Entropy = fn() -> Option<[u8; 32]>;

/// Randomness of the operating system.
pub fn system_entropy() -> Option<[u8; 32]> {
    let mut secret = [0; 32];
    aws_lc_rs::rand::fill(&mut secret).ok()?;
    Some(secret)
}

/// The keys, read once and kept. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RunKeys {
    writer: Writer,
    clock: Clock,
    secret: Key,
    entropy: Entropy,
    known: Arc<Mutex<BTreeMap<String, RunKey>>>,
    /// The newest key, or none if there is no usable one, and when the Secret was read for it.
    last: Arc<Mutex<Option<NewestKey>>>,
    /// When the Secret was read for keys that it lacks.
    missed: Arc<Mutex<BTreeMap<String, Uptime>>>,
    /// The newest key, in place of that of the Secret.
    stand_in: Option<RunKey>,
}

/// The newest key of the Secret when it was read.
type NewestKey = (Uptime, Option<RunKey>);

impl RunKeys {
    /// The keys in `namespace`.
    pub fn new(writer: Writer, clock: Clock, namespace: &str, entropy: Entropy) -> Self {
        Self {
            writer,
            clock,
            secret: Key::new(namespace, SECRET),
            entropy,
            known: Arc::default(),
            last: Arc::default(),
            missed: Arc::default(),
            stand_in: None,
        }
    }

    /// Keys for a decision that is only shown: new runs get tokens of a key that no controller has, and nothing
    /// is written.
    pub fn stand_in(writer: Writer, clock: Clock, namespace: &str) -> Self {
        Self {
            stand_in: RunKey::new(&[0; MIN_KEY_BYTES]),
            ..Self::new(writer, clock, namespace, || None)
        }
    }

    /// The Secret with the keys.
    pub fn secret(&self) -> &Key {
        &self.secret
    }

    /// The key with this id, if the Secret has it. A key that it lacks is searched for again after [`REREAD`].
    pub async fn find(&self, id: &str) -> Result<Option<RunKey>, Error> {
        let known = self.known.lock().get(id).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let now = self.clock.uptime();
        let missed = self.missed.lock().get(id).copied();
        if missed.is_some_and(|at| now < at + REREAD) {
            return Ok(None);
        }
        let secret = self.writer.find::<Secret>(&self.secret).await?;
        let keys = self.read(secret.as_ref());
        let found = keys.into_iter().find(|key| key.id() == id);
        if found.is_none() {
            let mut missed = self.missed.lock();
            missed.retain(|_, at| now < *at + REREAD);
            if missed.len() < MAX_MISSED {
                missed.insert(id.to_owned(), now);
            }
        }
        Ok(found)
    }

    /// Whether the release controller created this payload. A decision that is only shown takes every token as good.
    pub async fn prove(&self, payload: &ReleasePayload) -> Result<bool, Error> {
        let all = payload.metadata.annotations.as_ref();
        let annotation = |name: &str| all.and_then(|all| all.get(name));
        let (Some(id), Some(_)) = (
            annotation(annotations::RUN_KEY),
            annotation(annotations::PAYLOAD_TOKEN),
        ) else {
            return Ok(false);
        };
        if self.stand_in.is_some() {
            return Ok(true);
        }
        let key = self.find(id).await?;
        Ok(key.is_some_and(|key| key.proves(payload)))
    }

    /// Whether the release controller created this Job, with the same exception.
    pub async fn prove_job(&self, job: &Job) -> Result<bool, Error> {
        if self.stand_in.is_some() {
            return Ok(true);
        }
        let all = job.metadata.annotations.as_ref();
        let Some(id) = all.and_then(|all| all.get(annotations::RUN_KEY)) else {
            return Ok(false);
        };
        let key = self.find(id).await?;
        Ok(key.is_some_and(|key| key.signed(job)))
    }

    /// The newest key: the last by its name in the Secret, which is created if there is none. None if the Secret has
    /// no usable key. It is read at most once in [`REREAD`], however many streams ask.
    pub async fn newest(&self) -> Result<Option<RunKey>, Error> {
        if self.stand_in.is_some() {
            return Ok(self.stand_in.clone());
        }
        let now = self.clock.uptime();
        if let Some((at, key)) = &*self.last.lock()
            && now < *at + REREAD
        {
            return Ok(key.clone());
        }
        let secret = match self.writer.find::<Secret>(&self.secret).await? {
            Some(secret) => Some(secret),
            None => self.create().await?,
        };
        let newest = self.read(secret.as_ref()).pop();
        *self.last.lock() = Some((now, newest.clone()));
        Ok(newest)
    }

    async fn create(&self) -> Result<Option<Secret>, Error> {
        let Some(key) = (self.entropy)() else {
            return Ok(None);
        };
        let secret = Secret {
            metadata: ObjectMeta {
                name: Some(self.secret.name().to_owned()),
                namespace: Some(self.secret.namespace().to_owned()),
                ..ObjectMeta::default()
            },
            data: Some([(FIRST.to_owned(), ByteString(key.to_vec()))].into()),
            type_: Some("Opaque".to_owned()),
            ..Secret::default()
        };
        match self.writer.create(&secret).await? {
            Some(created) => Ok(Some(created)),
            // Another controller was faster.
            None => self.writer.find(&self.secret).await,
        }
    }

    fn read(&self, secret: Option<&Secret>) -> Vec<RunKey> {
        let data = secret.and_then(|secret| secret.data.as_ref());
        let keys = data.into_iter().flatten();
        let keys: Vec<_> = keys
            .filter_map(|(_, value)| RunKey::new(&value.0))
            .collect();
        let mut known = self.known.lock();
        known.extend(keys.iter().map(|key| (key.id().to_owned(), key.clone())));
        keys
    }
}
