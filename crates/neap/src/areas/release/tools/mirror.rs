//! `mirror`.

use std::io::Write;

use neap_release::{
    oci::transfer::Progress,
    payload_image::{
        mirror::{self, Instructions, Target},
        reader,
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
    let client = options.registry.client()?;
    let source = image(&options.image)?;
    let payload = reader::read(&client, &source, &platforms(None)?).await;
    let payload = payload.map_err(|error| failed("cannot read the payload", &error))?;
    let refused = |error: mirror::Error| {
        let remedy = "name a repository such as mirror.example/ocp/release";
        usage("cannot mirror the payload", &chain(&error), remedy)
    };
    let target = Target::parse(&options.to).map_err(refused)?;
    let wanted = mirror::MirrorOptions {
        release_image: options.to_release_image.as_deref().map(image).transpose()?,
        skip_release_image: options.skip_release_image,
        keep_manifest_list: options.keep_manifest_list,
    };
    let plan = mirror::plan(&payload, &target, &wanted).map_err(refused)?;
    if options.dry_run {
        let mut copies = plan.images.iter().chain(&plan.payload);
        return copies.try_for_each(|it| print::text(out, &format!("{} {}", it.source, it.target)));
    }
    let progress = Progress::default();
    let running = mirror::run(&client, &plan, &progress);
    let failures = progress::show("copy", options.registry.quiet, &progress, running).await;
    if let Some(first) = failures.first() {
        let names: Vec<_> = failures.iter().map(|it| it.component.as_str()).collect();
        let why = format!("{}: {}", names.join(", "), chain(&first.error));
        let what = format!("{} images were not copied", failures.len());
        return Err(Failure::new("NT-RELEASE-0106", Exit::Failed, &what, &why)
            .remedy("run the command again: it continues where it ended"));
    }
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
    let kind = match options.print_mirror_instructions {
        Policy::Icsp => Instructions::Icsp,
        Policy::Idms => Instructions::Idms,
        Policy::None => Instructions::None,
    };
    let text = mirror::instructions(&plan, kind);
    if text.is_empty() {
        return Ok(());
    }
    print::text(out, "\nClusters use the mirror with:\n")?;
    output::raw(out, text.as_bytes())
}
