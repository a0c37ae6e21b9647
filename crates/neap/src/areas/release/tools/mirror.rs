//! `mirror`: to a registry, through a folder, or into an ImageStream.

mod folder;
mod image_stream;

use std::io::Write;

use neap_release::{
    oci::{image_folder::ImageFolder, transfer::Progress},
    payload_image::{
        mirror::{self, Failure as NotCopied, Instructions, Mirror, Target},
        reader::{self, Payload},
    },
};

use super::{
    MirrorOptions, Policy,
    failure::{failed, usage},
    output, progress,
    registry::{image, platforms},
};
use crate::{
    exit::{Exit, Failure, chain},
    inspect::print,
};

pub(super) async fn run(options: &MirrorOptions, out: &mut dyn Write) -> Result<(), Failure> {
    if let Some(name) = &options.to_image_stream {
        return image_stream::run(options, name, out).await;
    }
    if let Some(path) = &options.from_dir {
        return folder::import(options, &ImageFolder::new(path), out).await;
    }
    let payload = read(options).await?;
    if let Some(path) = &options.to_dir {
        return folder::export(options, &payload, path, out).await;
    }
    let plan = plan(options, &payload, options.to.as_deref().unwrap_or_default())?;
    if options.dry_run {
        return show(&plan, out);
    }
    let client = options.registry.client()?;
    let progress = Progress::default();
    let running = mirror::run(&client, &plan, &progress);
    let failures = progress::show("copy", options.registry.quiet, &progress, running).await;
    check(&failures)?;
    report(&plan, &progress, out)?;
    instructions(options, &plan, out)
}

/// The payload, from its registry.
async fn read(options: &MirrorOptions) -> Result<Payload, Failure> {
    let client = options.registry.client()?;
    let source = image(options.image.as_deref().unwrap_or_default())?;
    let payload = reader::read(&client, &source, &platforms(None)?).await;
    payload.map_err(|error| failed("cannot read the payload", &error))
}

/// What is copied where.
fn plan(options: &MirrorOptions, payload: &Payload, to: &str) -> Result<Mirror, Failure> {
    let refused = |error: mirror::Error| {
        let remedy = "name a repository such as mirror.example/ocp/release with --to";
        usage("cannot mirror the payload", &chain(&error), remedy)
    };
    let target = Target::parse(to).map_err(refused)?;
    let wanted = mirror::MirrorOptions {
        release_image: options.to_release_image.as_deref().map(image).transpose()?,
        skip_release_image: options.skip_release_image,
        keep_manifest_list: options.keep_manifest_list,
    };
    mirror::plan(payload, &target, &wanted).map_err(refused)
}

fn show(plan: &Mirror, out: &mut dyn Write) -> Result<(), Failure> {
    let mut copies = plan.images.iter().chain(&plan.payload);
    copies.try_for_each(|it| print::line(out, &format!("{} {}", it.source, it.target)))
}

fn check(failures: &[NotCopied]) -> Result<(), Failure> {
    let Some(first) = failures.first() else {
        return Ok(());
    };
    let names: Vec<_> = failures.iter().map(|it| it.component.as_str()).collect();
    let why = format!("{}: {}", names.join(", "), chain(&first.error));
    let what = format!("{} images were not copied", failures.len());
    Err(Failure::new("NT-RELEASE-0106", Exit::Failed, &what, &why)
        .remedy("run the command again: it continues where it ended"))
}

fn report(plan: &Mirror, progress: &Progress, out: &mut dyn Write) -> Result<(), Failure> {
    let done = progress.snapshot();
    let images = plan.images.len();
    print::text(
        out,
        &format!(
            "{images} images: {} blobs copied, {} mounted, {} were there",
            done.copied, done.mounted, done.present
        ),
    )?;
    if let Some(payload) = &plan.payload {
        print::text(out, &format!("Update image: {}", payload.target))?;
    }
    Ok(())
}

fn instructions(
    options: &MirrorOptions,
    plan: &Mirror,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let kind = match options.print_mirror_instructions {
        Policy::Icsp => Instructions::Icsp,
        Policy::Idms => Instructions::Idms,
        Policy::None => Instructions::None,
    };
    let text = mirror::instructions(plan, kind);
    let is_from_folder = |it: &&mirror::ImageCopy| it.source.registry().is_empty();
    if let Some(payload) = plan.payload.as_ref().filter(is_from_folder)
        && kind != Instructions::None
    {
        let source = payload.source.name();
        let note = format!(
            "\nThe folder does not say from which registry {source} came. Where clusters name the payload by that \
             registry, add it as a source to their policy."
        );
        print::text(out, &note)?;
    }
    if text.is_empty() {
        return Ok(());
    }
    print::text(out, "\nClusters use the mirror with:\n")?;
    output::raw(out, text.as_bytes())
}
