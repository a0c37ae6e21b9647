//! `info`, `extract`, `diff` and `verify`.

use std::{collections::BTreeMap, io::Write};

use neap_release::{
    oci::{client::RegistryClient, platform::PlatformFilter},
    payload_image::{
        difference::difference,
        extract::{self, Extracted},
        info::{self as document, ImageInfo},
        reader::{self, Payload},
        text::{self, Columns},
        verify::images,
    },
};

use super::{
    DiffOptions, ExtractOptions, InfoFormat, InfoOptions, VerifyOptions,
    failure::failed,
    output, programs,
    registry::{image, platforms},
    signature, sources,
};
use crate::{
    exit::{Exit, Failure, chain},
    inspect::print,
};

/// How many wrong images a verification names.
const SHOWN_IMAGES: usize = 20;

pub(super) async fn info(options: &InfoOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let client = options.registry.client()?;
    let platforms = platforms(options.filter_by_os.as_deref())?;
    let payload = read(&client, &options.images[0], &platforms).await?;
    if let Some(second) = options.images.get(1) {
        let other = read(&client, second, &platforms).await?;
        if options.changelog.is_some() || options.bugs.is_some() {
            return sources::changes(options, &client, &payload, &other, out).await;
        }
        let json = options.output == InfoFormat::Json;
        return show_difference(&payload, &other, options.commits, json, out);
    }
    if options.changelog.is_some() || options.bugs.is_some() {
        return Err(sources::one_payload());
    }
    if let Some(name) = &options.image_for {
        let tag = payload.contents.references.tag(name);
        let spec = tag
            .and_then(|tag| tag.pull_spec())
            .ok_or_else(|| no_component(&payload, name))?;
        return print::line(out, spec);
    }
    if options.contents {
        return output::raw(out, text::contents(&payload).as_bytes());
    }
    let read = if options.size || options.include_images {
        Some(read_images(&client, &payload, &platforms).await?)
    } else {
        None
    };
    let info = document::info(&payload, read);
    let mut tags = payload.contents.references.spec.tags.iter();
    match options.output {
        InfoFormat::Json => {
            let text = info
                .to_json()
                .map_err(|error| failed("cannot print the payload", &error))?;
            output::raw(out, text.as_bytes())
        }
        InfoFormat::Name => tags.try_for_each(|tag| print::line(out, &tag.name)),
        InfoFormat::Digest => tags.try_for_each(|tag| print::line(out, &text::digest_of(tag))),
        InfoFormat::Pullspec => {
            tags.try_for_each(|tag| print::line(out, tag.pull_spec().unwrap_or_default()))
        }
        InfoFormat::Text => {
            let columns = match () {
                () if options.commits => Columns::Commit,
                () if options.commit_urls => Columns::CommitUrl,
                () if options.pullspecs => Columns::PullSpec,
                () if options.size => Columns::Size,
                () => Columns::Digest,
            };
            print::text(out, &text::describe(&payload, &info, columns))
        }
    }
}

pub(super) async fn extract(options: &ExtractOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let client = options.registry.client()?;
    let platforms = platforms(options.filter_by_os.as_deref())?;
    let payload = read(&client, &options.image, &platforms).await?;
    if options.tools || options.command.is_some() {
        return programs::extract(options, &client, &payload, out).await;
    }
    if let Some(folder) = &options.git {
        return sources::check_out(folder, options.output.is_some(), &payload, out);
    }
    let contents = &payload.contents;
    let what = "cannot extract files";
    if let Some(name) = &options.file {
        let content = extract::one(contents, name).map_err(|error| {
            Failure::new("NT-RELEASE-0103", Exit::NotFound, what, &chain(&error))
                .remedy("list the files with neap release info --contents")
        })?;
        return output::raw(out, &content);
    }
    let found: Result<Extracted, _> = if options.credentials_requests {
        extract::credentials_requests(contents, options.cloud.as_deref())
    } else {
        extract::all(contents)
    };
    let found = found.map_err(|error| failed(what, &error))?;
    output::files(&options.to, &found.files)?;
    print::text(
        out,
        &format!("{} files in {}", found.files.len(), options.to.display()),
    )?;
    for problem in &found.problems {
        print::line(out, &format!("! not valid: {problem}"))?;
    }
    Ok(())
}

pub(super) async fn diff(options: &DiffOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let client = options.registry.client()?;
    let platforms = platforms(None)?;
    let from = read(&client, &options.from, &platforms).await?;
    let to = read(&client, &options.to, &platforms).await?;
    show_difference(&from, &to, options.commits, options.json, out)
}

pub(super) async fn verify(options: &VerifyOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let client = options.registry.client()?;
    let platforms = platforms(options.filter_by_os.as_deref())?;
    let payload = read(&client, &options.image, &platforms).await?;
    let metadata = &payload.contents.references.metadata;
    let created = metadata
        .creation_timestamp
        .map(|time| time.to_string())
        .unwrap_or_default();
    let mut problems = Vec::new();
    for image in images(&client, &payload, &platforms).await {
        match image.result {
            Ok(found) => print::line(
                out,
                &format!("{} {created} {}", found.digest, payload.contents.name()),
            )?,
            Err(error) => problems.push(format!("{}: {}", image.component, chain(&error))),
        }
    }
    if problems.is_empty() {
        return signature::verify(options, &client, &payload, out).await;
    }
    let what = format!(
        "{} of the payload's images are not what they should be",
        problems.len()
    );
    let why = if let [only] = &problems[..] {
        only.clone()
    } else {
        let lines = wrong_images(&problems);
        lines.iter().try_for_each(|text| print::line(out, text))?;
        "each of them is named above".to_owned()
    };
    Err(Failure::new("NT-RELEASE-0106", Exit::Failed, &what, &why)
        .remedy("push the images again, or make the payload of others"))
}

/// One line for each wrong image, and one for those that are not shown.
fn wrong_images(problems: &[String]) -> Vec<String> {
    let shown = problems.iter().take(SHOWN_IMAGES);
    let mut lines: Vec<_> = shown.map(|problem| format!("! {problem}")).collect();
    if let Some(more @ 1..) = problems.len().checked_sub(SHOWN_IMAGES) {
        lines.push(format!("! and {more} more"));
    }
    lines
}

async fn read(
    client: &RegistryClient,
    text: &str,
    platforms: &[PlatformFilter],
) -> Result<Payload, Failure> {
    let image = image(text)?;
    let payload = reader::read(client, &image, platforms).await;
    payload.map_err(|error| failed("cannot read the payload", &error))
}

async fn read_images(
    client: &RegistryClient,
    payload: &Payload,
    platforms: &[PlatformFilter],
) -> Result<BTreeMap<String, ImageInfo>, Failure> {
    let mut found = BTreeMap::new();
    for image in images(client, payload, platforms).await {
        let read = image.result.map_err(|error| {
            failed(
                &format!("cannot read the image of {}", image.component),
                &error,
            )
        })?;
        found.insert(image.component, read);
    }
    Ok(found)
}

fn show_difference(
    from: &Payload,
    to: &Payload,
    commits: bool,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let found = difference(from, to);
    if !json {
        return print::text(out, &found.to_text(commits));
    }
    let text = found
        .to_json()
        .map_err(|error| failed("cannot print the difference", &error))?;
    output::raw(out, text.as_bytes())
}

fn no_component(payload: &Payload, name: &str) -> Failure {
    let tags = payload.contents.references.spec.tags.iter();
    let known: Vec<_> = tags.map(|tag| tag.name.as_str()).collect();
    let why = format!(
        "the payload {} has no component {name:?}",
        payload.contents.name()
    );
    Failure::new(
        "NT-RELEASE-0103",
        Exit::NotFound,
        "cannot find the image",
        &why,
    )
    .remedy(format!("choose one of {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_wrong_images_twenty_are_shown() {
        let problems: Vec<_> = (0..2000).map(|number| format!("c{number}: gone")).collect();
        let lines = wrong_images(&problems);
        assert_eq!(lines.len(), SHOWN_IMAGES + 1);
        assert_eq!(lines[0], "! c0: gone");
        assert_eq!(lines[SHOWN_IMAGES], "! and 1980 more");
        assert_eq!(wrong_images(&problems[..2]).len(), 2);
    }
}
