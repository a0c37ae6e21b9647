//! The signature of a payload.

use std::io::Write;

use neap_release::{
    oci::client::RegistryClient,
    payload_image::{
        reader::Payload,
        signature::{
            judge,
            trust::{self, TrustConfig},
        },
    },
};

use super::{VerifyOptions, assemble::read_file, failure::usage};
use crate::{
    exit::{Exit, Failure, chain},
    inspect::print,
};

/// Prints whether the payload is signed, and fails if it must be and is not.
pub(super) async fn verify(
    options: &VerifyOptions,
    client: &RegistryClient,
    payload: &Payload,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let is_required = options.require_signature || options.verification_config.is_some();
    let Some(trust) = trusted(options, payload)? else {
        let why = "the payload brings no verification configuration";
        return unsigned(is_required, why, out);
    };
    // Signatures of a list are about the list, and not about one of its images.
    let outer = payload.list.as_ref().unwrap_or(&payload.manifest);
    let digest = &outer.digest;
    let (found, problems) = trust::signatures(client.http(), &trust, digest).await;
    let verification = judge(&trust, &found, &problems, digest, client.clock().now());
    if !verification.is_verified() {
        return unsigned(is_required, &verification.problems().join("; "), out);
    }
    for ring in &verification.rings {
        if let Ok((place, claims)) = &ring.result {
            let line = format!(
                "signature  {digest} as {} by {}, in {place}",
                claims.reference, ring.ring
            );
            print::line(out, &line)?;
        }
    }
    if options.verification_config.is_none() {
        print::text(
            out,
            "! the keys are the payload's own: name those that you trust with --verification-config",
        )?;
    }
    Ok(())
}

fn trusted(options: &VerifyOptions, payload: &Payload) -> Result<Option<TrustConfig>, Failure> {
    let refused = |error: trust::Error| {
        let remedy = "give it a ConfigMap with verifier-public-key-* and store-*";
        usage(
            "cannot use the verification configuration",
            &chain(&error),
            remedy,
        )
    };
    match &options.verification_config {
        Some(path) => {
            let text = read_file(path)?;
            let trust = TrustConfig::read(text.as_bytes());
            trust.map(Some).map_err(refused)
        }
        None => TrustConfig::of_payload(&payload.contents).map_err(refused),
    }
}

fn unsigned(is_required: bool, why: &str, out: &mut dyn Write) -> Result<(), Failure> {
    if !is_required {
        return print::line(out, &format!("signature  none that counts: {why}"));
    }
    let what = "the payload is not signed by the keys that are trusted";
    Err(Failure::new("NT-RELEASE-0106", Exit::Refused, what, why)
        .remedy("check the keys and the stores, or use a payload that is signed"))
}
