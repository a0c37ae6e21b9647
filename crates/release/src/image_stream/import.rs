//! Asks registries what tags stand for.

use neap_kit::why;

use super::{api::ImportMode, decide::TagImport, record::ImportFailure};
use crate::oci::{
    client::{Error, RegistryClient},
    digest::Digest,
    platform::{self, PlatformFilter},
};

/// Asks what the image stands for. If that is what is known already, nothing more is asked; otherwise the
/// manifest is read, so that a digest is never recorded because a registry only named it.
pub async fn import(client: &RegistryClient, wanted: &TagImport) -> Result<Digest, Error> {
    let client = client.insecure(wanted.insecure);
    let image = &wanted.image;
    let found = client.find(image).await?;
    let Some(found) = found else {
        return Err(client.absent(image));
    };
    let known = wanted.known.as_deref() == Some(found.digest.as_ref());
    let is_list = crate::oci::media_type::is_list(&found.media_type);
    if known && (wanted.mode == ImportMode::PreserveOriginal || !is_list) {
        return Ok(found.digest);
    }
    let manifest = client.manifest(&image.at_digest(&found.digest)).await?;
    if wanted.mode == ImportMode::PreserveOriginal || manifest.image().is_some() {
        return Ok(manifest.digest);
    }
    let one = client
        .image_of(image, &manifest, &PlatformFilter::Any)
        .await;
    let one = match one {
        Err(Error::Platform {
            source: platform::Error::Several(_),
            ..
        }) => {
            client
                .image_of(image, &manifest, &PlatformFilter::linux_amd64())
                .await?
        }
        result => result?,
    };
    Ok(one.digest)
}

/// The failure as it is recorded.
pub fn failure(error: &Error) -> ImportFailure {
    ImportFailure {
        reason: error.reason(),
        message: why::chain(error),
        retry_after: error.retry_after(),
        transient: error.is_transient(),
    }
}
