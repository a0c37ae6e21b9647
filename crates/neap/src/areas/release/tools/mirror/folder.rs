//! Through a folder, to a place where no registry is reached.

use std::{io::Write, path::Path};

use neap_release::{
    oci::{image_folder::ImageFolder, reference::ImageRef, transfer::Progress},
    payload_image::{
        image::{ImageConfig, RELEASE},
        mirror,
        reader::{self, Payload},
    },
};

use super::{
    super::{
        MirrorOptions,
        failure::{failed, usage},
        progress,
        registry::{image, platforms},
    },
    check, instructions, plan, report, show,
};
use crate::{exit::Failure, inspect::print};

/// The repository in a folder, unless the user names another.
const REPOSITORY: &str = "openshift/release";
/// The largest configuration.
const MAX_CONFIG: u64 = 8 << 20;

/// Copies the payload into a folder.
pub(super) async fn export(
    options: &MirrorOptions,
    payload: &Payload,
    path: &Path,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let repository = options.to.as_deref().unwrap_or(REPOSITORY);
    if !image(repository)?.registry().is_empty() {
        return Err(usage(
            "cannot mirror the payload",
            &format!("{repository} names a registry, and --to-dir a folder"),
            "name a repository without a registry with --to, or leave it out",
        ));
    }
    let plan = plan(options, payload, repository)?;
    if options.dry_run {
        return show(&plan, out);
    }
    let client = options.registry.client()?;
    let folder = ImageFolder::new(path);
    let progress = Progress::default();
    let running = mirror::download(&client, &plan, &folder, &progress);
    let failures = progress::show("copy", options.registry.quiet, &progress, running).await;
    check(&failures)?;
    report(&plan, &progress, out)?;
    let next = format!(
        "\nCopy the folder to where the other registry is reached, and run there:\n\n  neap release mirror --from-dir {} --to REGISTRY/REPOSITORY",
        path.display()
    );
    print::text(out, &next)
}

/// Copies a payload from a folder to a registry.
pub(super) async fn import(
    options: &MirrorOptions,
    folder: &ImageFolder,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let Some(to) = &options.to else {
        let why = "--from-dir needs the repository to which the images are copied";
        return Err(usage("cannot mirror the payload", why, "name it with --to"));
    };
    let source = match &options.image {
        Some(text) => image(text)?,
        None => only_payload(folder)?,
    };
    let payload = reader::read_from_folder(folder, &source, &platforms(None)?);
    let payload = payload.map_err(|error| failed("cannot read the payload", &error))?;
    let plan = plan(options, &payload, to)?;
    if options.dry_run {
        return show(&plan, out);
    }
    let client = options.registry.client()?;
    let progress = Progress::default();
    let repository = source.bare();
    let running = mirror::upload(folder, &repository, &client, &plan, &progress);
    let failures = progress::show("push", options.registry.quiet, &progress, running).await;
    check(&failures)?;
    report(&plan, &progress, out)?;
    instructions(options, &plan, out)
}

/// The only payload of a folder: components have no name of a release.
fn only_payload(folder: &ImageFolder) -> Result<ImageRef, Failure> {
    let what = "cannot find the payload in the folder";
    let repository = image(REPOSITORY)?;
    let tags = folder.tags(&repository);
    let tags = tags.map_err(|error| failed(what, &error))?;
    let payloads = tags.iter().filter_map(|tag| {
        let image = repository.with_tag(tag).ok()?;
        let manifest = folder.manifest(&image).ok()?;
        let manifest = match manifest.list().and_then(|list| list.manifests().first()) {
            Some(first) => folder.manifest(&image.at_digest(first.digest())).ok()?,
            None => manifest,
        };
        let config = folder.blob_bytes(&image, manifest.image()?.config(), MAX_CONFIG);
        let config = ImageConfig::read(&config.ok()?).ok()?;
        config.label(RELEASE).map(|_| image)
    });
    let mut payloads: Vec<_> = payloads.collect();
    match payloads.len() {
        1 => Ok(payloads.remove(0)),
        0 => Err(usage(
            what,
            &format!("{REPOSITORY} has no payload there"),
            "name it as REPOSITORY:TAG",
        )),
        _ => {
            let names: Vec<_> = payloads.iter().map(ToString::to_string).collect();
            let why = format!("there are several: {}", names.join(", "));
            Err(usage(what, &why, "name one of them"))
        }
    }
}
