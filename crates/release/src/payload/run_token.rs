//! Proof that a ProwJob, a ReleasePayload or a Job was created by this controller.
//!
//! Every user who may create ProwJobs can give one the labels and the name of a run. So each run has a token: a
//! code over the uid of its payload and its own name, made with a key that only the controllers of
//! releases can read. A ProwJob with a wrong token, or none, does not count. The same holds for the Jobs of a
//! release: every user who may create Jobs there could say that one has created an image.

use aws_lc_rs::hmac;
use k8s_openapi::api::{batch::v1::Job, core::v1::Container};
use serde_json::json;

use crate::{
    api::{ReleasePayload, annotations},
    names::hex,
};

/// The key of tokens.
#[derive(Clone)]
pub struct RunKey {
    id: String,
    key: hmac::Key,
}

/// The fewest bytes that a key may have.
pub const MIN_KEY_BYTES: usize = 32;

impl RunKey {
    /// The key with this secret; none if it is too short.
    pub fn new(secret: &[u8]) -> Option<Self> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let id = hmac::sign(&key, b"id");
        (secret.len() >= MIN_KEY_BYTES).then(|| Self {
            id: hex(&id.as_ref()[..8]),
            key,
        })
    }

    /// What stands for a key that there is none of. It has no id, and nothing may be signed with it.
    pub fn missing() -> Self {
        Self {
            id: String::new(),
            key: hmac::Key::new(hmac::HMAC_SHA256, &[]),
        }
    }

    /// Whether there is no key.
    pub fn is_missing(&self) -> bool {
        self.id.is_empty()
    }

    /// A name for the key, which says nothing about its secret.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The token of the run `name` of the verification job `job` of a payload.
    pub fn token(&self, payload_uid: &str, job: &str, name: &str) -> String {
        hex(hmac::sign(&self.key, &Self::content(payload_uid, job, name)).as_ref())
    }

    /// Whether this is the token of that run.
    pub fn verify(&self, payload_uid: &str, job: &str, name: &str, token: &str) -> bool {
        let Some(token) = unhex(token) else {
            return false;
        };
        hmac::verify(&self.key, &Self::content(payload_uid, job, name), &token).is_ok()
    }

    /// The token that a payload has as its annotation: a code over what does not change of it.
    pub fn payload_token(&self, payload: &ReleasePayload) -> String {
        hex(hmac::sign(&self.key, &Self::payload_content(payload)).as_ref())
    }

    /// Whether the payload has its token, made with this key.
    pub fn proves(&self, payload: &ReleasePayload) -> bool {
        let all = payload.metadata.annotations.as_ref();
        let annotation = |name: &str| all.and_then(|all| all.get(name));
        let token = annotation(annotations::PAYLOAD_TOKEN).and_then(|token| unhex(token));
        annotation(annotations::RUN_KEY) == Some(&self.id)
            && token.is_some_and(|token| {
                hmac::verify(&self.key, &Self::payload_content(payload), &token).is_ok()
            })
    }

    /// Gives a Job its token. What the Job runs must not change after that.
    pub fn sign(&self, job: &mut Job) {
        let token = hex(hmac::sign(&self.key, &Self::job_content(job)).as_ref());
        let all = job.metadata.annotations.get_or_insert_default();
        all.insert(annotations::RUN_KEY.to_owned(), self.id.clone());
        all.insert(annotations::JOB_TOKEN.to_owned(), token);
    }

    /// Whether the Job has its token, made with this key.
    pub fn signed(&self, job: &Job) -> bool {
        let all = job.metadata.annotations.as_ref();
        let annotation = |name: &str| all.and_then(|all| all.get(name));
        let token = annotation(annotations::JOB_TOKEN).and_then(|token| unhex(token));
        annotation(annotations::RUN_KEY) == Some(&self.id)
            && token.is_some_and(|token| {
                hmac::verify(&self.key, &Self::job_content(job), &token).is_ok()
            })
    }

    /// What a Job is for and what it runs. Not its images: clusters replace them with those of their own registry.
    fn job_content(job: &Job) -> Vec<u8> {
        let all = job.metadata.annotations.as_ref();
        let annotation = |name: &str| all.and_then(|all| all.get(name));
        let pod = job.spec.as_ref().and_then(|it| it.template.spec.as_ref());
        let commands = |containers: &[Container]| -> Vec<_> {
            let commands = containers.iter();
            commands
                .map(|it| json!([it.name, it.command, it.args]))
                .collect()
        };
        let first = pod.and_then(|pod| pod.init_containers.as_deref());
        let content = json!([
            job.metadata.namespace,
            job.metadata.name,
            annotation(annotations::TARGET),
            annotation(annotations::RELEASE_TAG),
            commands(first.unwrap_or_default()),
            commands(pod.map(|pod| pod.containers.as_slice()).unwrap_or_default()),
        ]);
        format!("a job\n{content}").into_bytes()
    }

    /// Fields that every version of the definition keeps as they were written.
    fn payload_content(payload: &ReleasePayload) -> Vec<u8> {
        let spec = &payload.spec;
        let jobs = spec.payload_verification_config.blocking_jobs.iter();
        let jobs: Vec<_> = jobs
            .map(|job| (&job.name, &job.job_name, job.max_retries))
            .collect();
        let content = json!([
            payload.metadata.namespace,
            payload.metadata.name,
            spec.payload_coordinates,
            spec.payload_creation_config,
            jobs,
        ]);
        // The content of a run begins with a uid, which has no space.
        format!("a payload\n{content}").into_bytes()
    }

    fn content(payload_uid: &str, job: &str, name: &str) -> Vec<u8> {
        // None of the three can contain the separator.
        format!("{payload_uid}\n{job}\n{name}").into_bytes()
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok())
        .collect()
}

impl std::fmt::Debug for RunKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunKey")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_good_for_one_run_of_one_payload_under_one_key() {
        let key = RunKey::new(&[7; 32]).unwrap();
        let token = key.token("uid", "aws", "tag-aws");
        assert!(key.verify("uid", "aws", "tag-aws", &token));
        for (uid, job, name) in [
            ("other", "aws", "tag-aws"),
            ("uid", "gcp", "tag-aws"),
            ("uid", "aws", "tag-aws-1"),
        ] {
            assert!(!key.verify(uid, job, name, &token));
        }
        assert!(!key.verify("uid", "aws", "tag-aws", ""));
        assert!(!key.verify("uid", "aws", "tag-aws", "zz"));
        let other = RunKey::new(&[8; 32]).unwrap();
        assert!(!other.verify("uid", "aws", "tag-aws", &token));
        assert_ne!(key.id(), other.id());
        assert!(RunKey::new(&[7; 31]).is_none());
    }

    #[test]
    fn a_job_is_proved_by_a_token_for_what_it_runs() {
        let job = |tag: &str, command: &str, image: &str| -> Job {
            let containers = json!([{"name": "build", "image": image, "command": [command]}]);
            serde_json::from_value(json!({
                "metadata": {"name": "job", "namespace": "ci", "annotations": {
                    annotations::TARGET: "ocp/release", annotations::RELEASE_TAG: tag,
                }},
                "spec": {"template": {"spec": {"containers": containers}}},
            }))
            .unwrap()
        };
        let key = RunKey::new(&[7; 32]).unwrap();
        let mut own = job("4.21.0", "assemble", "x");
        assert!(!key.signed(&own), "it has none");
        key.sign(&mut own);
        assert!(key.signed(&own));
        assert!(!RunKey::new(&[8; 32]).unwrap().signed(&own));
        let with_token_of_own = |mut other: Job| {
            let tokens = own.metadata.annotations.clone().unwrap();
            let all = other.metadata.annotations.get_or_insert_default();
            for name in [annotations::RUN_KEY, annotations::JOB_TOKEN] {
                all.insert(name.to_owned(), tokens[name].clone());
            }
            other
        };
        let mirrored = job("4.21.0", "assemble", "mirror.example/x");
        assert!(key.signed(&with_token_of_own(mirrored)));
        for other in [job("4.21.1", "assemble", "x"), job("4.21.0", "true", "x")] {
            assert!(!key.signed(&with_token_of_own(other)));
        }
    }

    #[test]
    fn a_payload_is_proved_by_a_token_of_its_own() {
        let key = RunKey::new(&[7; 32]).unwrap();
        let mut payload = crate::payload::samples::payload(&json!({}));
        assert!(!key.proves(&payload), "it has none");
        let token = key.payload_token(&payload);
        let all = payload.metadata.annotations.get_or_insert_default();
        all.insert(annotations::RUN_KEY.to_owned(), key.id().to_owned());
        all.insert(annotations::PAYLOAD_TOKEN.to_owned(), token);
        assert!(key.proves(&payload));
        assert!(!RunKey::new(&[8; 32]).unwrap().proves(&payload));
        // A decision comes later; everything else is as it was.
        payload.spec.payload_override.decision = "Accepted".to_owned();
        assert!(key.proves(&payload));
        let mut copy = payload.clone();
        copy.metadata.name = Some("another".to_owned());
        assert!(!key.proves(&copy));
        let mut elsewhere = payload;
        let creation = &mut elsewhere.spec.payload_creation_config;
        creation.release_creation_coordinates.namespace = "tenant".to_owned();
        assert!(!key.proves(&elsewhere));
    }
}
