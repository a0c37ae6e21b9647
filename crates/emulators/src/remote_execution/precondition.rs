//! The answer to a client that has to upload blobs first.

use prost::Message;
use tonic::{Code, Status};

use super::messages::{AnyMessage, BlobDigest, PreconditionFailure, RpcStatus, Violation};

const DETAIL: &str = "google.rpc.PreconditionFailure";

/// Says which blobs have to be uploaded before an action can be executed.
pub(super) fn missing<'a>(digests: impl IntoIterator<Item = &'a BlobDigest>) -> Status {
    let violations = digests.into_iter().map(|digest| Violation {
        r#type: "MISSING".to_owned(),
        subject: format!("blobs/{}/{}", digest.hash, digest.size_bytes),
        description: String::new(),
    });
    let failure = PreconditionFailure {
        violations: violations.collect(),
    };
    let message = format!(
        "{} blobs of the action are missing",
        failure.violations.len()
    );
    let status = RpcStatus {
        code: Code::FailedPrecondition.into(),
        message: message.clone(),
        details: vec![AnyMessage::pack(DETAIL, &failure)],
    };
    Status::with_details(
        Code::FailedPrecondition,
        message,
        status.encode_to_vec().into(),
    )
}

/// The violations that a status names.
pub fn violations(status: &Status) -> Vec<Violation> {
    let status = RpcStatus::decode(status.details()).unwrap_or_default();
    let failures = status.details.iter();
    let failures = failures.filter_map(|it| it.unpack::<PreconditionFailure>(DETAIL));
    failures.flat_map(|it| it.violations).collect()
}
