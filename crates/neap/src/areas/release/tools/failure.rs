//! Failures of the commands about payloads.

use std::error::Error;

use neap_release::{
    oci::{client, reference::InvalidRef},
    payload_image::{builder, layer_files, reader, verify},
};

use crate::exit::{Exit, Failure, chain};

/// The failure that an error of the tools is. What the registry said decides the code and the remedy.
pub(super) fn failed(what: &str, error: &(dyn Error + 'static)) -> Failure {
    failed_with_remedy(what, error, "correct what the message names")
}

/// The same for a command that writes a tag.
pub(super) fn not_pushed(what: &str, error: &(dyn Error + 'static)) -> Failure {
    let remedy = "correct what the message names; nothing was changed under the tag";
    failed_with_remedy(what, error, remedy)
}

fn failed_with_remedy(what: &str, error: &(dyn Error + 'static), remedy: &str) -> Failure {
    let why = chain(error);
    if let Some(registry) = registry_error(error) {
        return from_registry(what, &why, registry);
    }
    Failure::new("NT-RELEASE-0105", Exit::Refused, what, &why).remedy(remedy)
}

/// The error of a registry among the causes.
fn registry_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a client::Error> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = own(error) {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// The error of a registry that `error` is, or stands for: an error that shows another one as itself is not
/// followed by it in the list of causes.
fn own<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a client::Error> {
    if let Some(found) = error.downcast_ref::<Box<client::Error>>() {
        return Some(found);
    }
    if let Some(
        reader::Error::Registry(found) | reader::Error::Layer(layer_files::Error::Registry(found)),
    ) = error.downcast_ref()
    {
        return Some(found);
    }
    if let Some(builder::Error::Registry(found)) = error.downcast_ref() {
        return Some(found);
    }
    if let Some(layer_files::Error::Registry(found)) = error.downcast_ref() {
        return Some(found);
    }
    if let Some(verify::Error::Registry(found)) = error.downcast_ref() {
        return Some(found);
    }
    error.downcast_ref()
}

fn from_registry(what: &str, why: &str, error: &client::Error) -> Failure {
    let (code, exit, remedy) = match error {
        client::Error::Unauthorized { .. } | client::Error::Denied { .. } => (
            "NT-RELEASE-0102",
            Exit::NotAllowed,
            "log in to the registry with podman or docker, or name a file with --registry-config",
        ),
        client::Error::NotFound { .. } => (
            "NT-RELEASE-0103",
            Exit::NotFound,
            "check the name, the tag and the digest",
        ),
        client::Error::Call { .. } => (
            "NT-RELEASE-0104",
            Exit::Unreachable,
            "try again later; for a registry without a trusted certificate, use --certificate-authority or --insecure",
        ),
        _ => (
            "NT-RELEASE-0105",
            Exit::Refused,
            "push the image again; what the registry has is not what it says",
        ),
    };
    Failure::new(code, exit, what, why).remedy(remedy)
}

/// A name that is none.
pub(super) fn name(error: &InvalidRef) -> Failure {
    Failure::new(
        "NT-RELEASE-0101",
        Exit::Usage,
        "cannot read the name of an image",
        &chain(error),
    )
    .remedy("write REGISTRY/REPOSITORY:TAG, or REGISTRY/REPOSITORY@sha256:DIGEST")
}

/// A flag or an argument.
pub(super) fn usage(what: &str, why: &str, remedy: &str) -> Failure {
    Failure::new("NT-RELEASE-0101", Exit::Usage, what, why).remedy(remedy)
}

/// A file that cannot be written or read.
pub(super) fn file(what: &str, error: &std::io::Error) -> Failure {
    Failure::new("NT-RELEASE-0107", Exit::Failed, what, &error.to_string())
        .remedy("check the path, the permissions and the free space")
}
