//! `info --changelog`, `info --bugs` and `extract --git`: what the sources of payloads say.

use std::{io::Write, path::Path};

use neap_release::{
    oci::client::RegistryClient,
    payload_image::{
        bugs, changelog, go_json,
        labels::{COMMIT_ID, SOURCE_LOCATION},
        reader::Payload,
        source::{self, Source},
        text::{aligned, row},
        working_copies::WorkingCopies,
    },
};

use super::{
    InfoFormat, InfoOptions,
    failure::{failed, usage},
    output,
};
use crate::{
    exit::{Exit, Failure, chain},
    inspect::print,
};

/// The refusal of a comparison with nothing to compare with.
pub(super) fn one_payload() -> Failure {
    usage(
        "cannot show what changed",
        "there is only one payload",
        "name the older payload first, and then the newer",
    )
}

/// Prints the changelog of two payloads, or the bugs that it names.
pub(super) async fn changes(
    options: &InfoOptions,
    client: &RegistryClient,
    from: &Payload,
    to: &Payload,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let what = "cannot show what changed";
    let folder = options.changelog.as_ref().or(options.bugs.as_ref());
    let copies = copies(folder.ok_or_else(one_payload)?)?;
    let found = changelog::changelog(from, to, &copies);
    let (changelog, mut problems) = found.map_err(|error| {
        usage(
            what,
            &error.to_string(),
            "name two payloads that are different",
        )
    })?;
    if options.changelog.is_some() {
        match options.output {
            InfoFormat::Json => {
                let text = changelog.to_json().map_err(|error| failed(what, &error))?;
                output::raw(out, text.as_bytes())?;
            }
            InfoFormat::Text => print::text(out, &changelog.to_markdown())?,
            _ => return Err(bad_format("--changelog", "text or json")),
        }
        return report(&problems);
    }
    let mut bugs = changelog.bugs();
    if !options.skip_bug_check && options.output != InfoFormat::Name {
        let errors = bugs::look_up(client.http(), &mut bugs).await;
        problems.extend(errors.iter().map(|error| chain(error)));
    }
    match options.output {
        _ if bugs.is_empty() => {}
        InfoFormat::Name => bugs.iter().try_for_each(|bug| print::line(out, &bug.id))?,
        InfoFormat::Json => {
            let text = go_json::to_string(&bugs).map_err(|error| failed(what, &error))?;
            print::raw(out, &text)?;
        }
        InfoFormat::Text => {
            let mut rows = vec![row(&["ID", "STATUS", "PRIORITY", "SUMMARY"])];
            let cells = bugs
                .iter()
                .map(|bug| row(&[&bug.id, &bug.status, &bug.priority, &bug.summary]));
            rows.extend(cells);
            print::text(out, &aligned(&rows, ""))?;
        }
        _ => return Err(bad_format("--bugs", "text, name or json")),
    }
    report(&problems)
}

/// Checks out the sources of all images, or only verifies that their commits exist.
pub(super) fn check_out(
    folder: &Path,
    verify_only: bool,
    payload: &Payload,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let copies = copies(folder)?;
    let mut problems = Vec::new();
    let mut wanted: Vec<(Source, String)> = Vec::new();
    for tag in &payload.contents.references.spec.tags {
        let (location, commit) = (tag.annotation(SOURCE_LOCATION), tag.annotation(COMMIT_ID));
        if location.is_empty() && commit.is_empty() {
            tracing::warn!("{} does not name its source", tag.name);
            continue;
        }
        let known = Source::parse(location).map_err(|error| error.to_string());
        let id = source::commit(commit).map_err(|error| error.to_string());
        match (known, id) {
            (Ok(known), Ok(commit)) => wanted.push((known, commit.to_owned())),
            (Err(error), _) | (_, Err(error)) => problems.push(format!("{}: {error}", tag.name)),
        }
    }
    wanted.sort();
    wanted.dedup();
    for (known, commit) in &wanted {
        let done = if verify_only {
            copies.verify(known, commit)
        } else {
            copies.check_out(known, commit)
        };
        match done {
            Ok(path) => print::text(out, &format!("{commit} {}", path.display()))?,
            Err(error) => problems.push(format!("{}: {}", known.location(), chain(&error))),
        }
    }
    report(&problems)
}

fn copies(folder: &Path) -> Result<WorkingCopies, Failure> {
    WorkingCopies::open(folder)
        .map_err(|error| failed("cannot use the folder of the sources", &error))
}

fn bad_format(flag: &str, formats: &str) -> Failure {
    let why = format!("{flag} is not printed in this format");
    usage("cannot print", &why, &format!("use -o {formats}"))
}

/// What was left out, after everything that was found is printed.
fn report(problems: &[String]) -> Result<(), Failure> {
    if problems.is_empty() {
        return Ok(());
    }
    let what = format!("{} parts are left out", problems.len());
    Err(
        Failure::new("NT-RELEASE-0111", Exit::Failed, &what, &problems.join("; "))
            .remedy("correct what the message names, or fetch the repository into the folder"),
    )
}
