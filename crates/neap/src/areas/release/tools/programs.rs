//! `extract --command` and `--tools`.

use std::{collections::BTreeMap, env, fs, io::Write, os::unix::fs::PermissionsExt};

use neap_release::{
    oci::{client::RegistryClient, digest::sha256},
    payload_image::{
        info as document,
        reader::Payload,
        text::{self, Columns},
        tools::{
            self, archive, checksums,
            table::{Systems, TOOLS, Tool, select},
        },
    },
};

use super::{
    ExtractOptions,
    failure::{failed, file, usage},
    output,
};
use crate::{exit::Failure, inspect::print};

pub(super) async fn extract(
    options: &ExtractOptions,
    client: &RegistryClient,
    payload: &Payload,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let systems = systems(options)?;
    let architecture = &payload.config.architecture;
    let wanted = select(options.command.as_deref(), &systems, architecture);
    if wanted.is_empty() {
        return Err(unknown(options));
    }
    let folder = &options.to;
    fs::create_dir_all(folder)
        .map_err(|error| file(&format!("cannot write into {}", folder.display()), &error))?;
    if let (Some(_), [tool]) = (&options.command, &wanted[..]) {
        let program = tools::extract(client, payload, tool).await;
        let program = program.map_err(|error| failed("cannot extract the program", &error))?;
        warn(&program.warnings);
        let path = folder.join(tool.file_name());
        output::whole(&path, &program.content)?;
        let mode = fs::Permissions::from_mode(0o755);
        return fs::set_permissions(&path, mode)
            .map_err(|error| file(&format!("cannot write {}", path.display()), &error))
            .and_then(|()| print::text(out, &path.display().to_string()));
    }
    archives(options, client, payload, &wanted, out).await
}

/// Writes the archives, and the list of their checksums last.
async fn archives(
    options: &ExtractOptions,
    client: &RegistryClient,
    payload: &Payload,
    wanted: &[Tool],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut sums = BTreeMap::new();
    let info = document::info(payload, None);
    let description = text::describe(payload, &info, Columns::PullSpec);
    let description = format!(
        "Client tools for the release {}\n\n{description}",
        payload.contents.name()
    );
    for tool in wanted {
        let program = match tools::extract(client, payload, tool).await {
            Ok(program) => program,
            Err(error @ tools::Error::NoImage { .. }) if wanted.len() > 1 => {
                tracing::warn!("left out: {error}");
                continue;
            }
            Err(error @ tools::Error::NoFile { .. }) if tool.optional => {
                tracing::warn!("left out: {error}");
                continue;
            }
            Err(error) => return Err(failed("cannot extract the programs", &error)),
        };
        warn(&program.warnings);
        let name = tool.archive_name(payload.contents.name());
        let path = options.to.join(&name);
        let readme = format!(
            "# {}\n\nThe program {} of the release {}.\n",
            tool.file_name(),
            tool.file_name(),
            payload.contents.name()
        );
        let packed = archive::pack(tool, &program, &readme)
            .map_err(|error| file(&format!("cannot pack {name}"), &error))?;
        output::whole(&path, &packed)?;
        print::text(out, &path.display().to_string())?;
        sums.insert(name, sha256(&packed));
    }
    if sums.is_empty() {
        let why = "the payload has none of the images that carry programs";
        return Err(usage(
            "cannot extract the programs",
            why,
            "name another payload",
        ));
    }
    output::whole(&options.to.join("release.txt"), description.as_bytes())?;
    sums.insert("release.txt".to_owned(), sha256(description.as_bytes()));
    output::whole(
        &options.to.join("sha256sum.txt"),
        checksums(&sums).as_bytes(),
    )
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("{warning}");
    }
}

fn systems(options: &ExtractOptions) -> Result<Systems, Failure> {
    let own = || {
        let arch = match env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        format!("{}/{arch}", env::consts::OS)
    };
    let text = options.command_os.clone().unwrap_or_else(own);
    Systems::parse(&text).ok_or_else(|| {
        let why = format!("{text:?} is no system that payloads have programs for");
        let remedy = "write linux, mac, windows, one of them with /ARCH, or *";
        usage("cannot use --command-os", &why, remedy)
    })
}

fn unknown(options: &ExtractOptions) -> Failure {
    let command = options.command.as_deref().unwrap_or("programs");
    let mut known: Vec<_> = TOOLS.iter().map(|tool| tool.command).collect();
    known.sort_unstable();
    known.dedup();
    let why = format!("payloads have no {command} for this system");
    let remedy = format!(
        "choose another system with --command-os, or one of {}",
        known.join(", ")
    );
    usage("cannot extract the program", &why, &remedy)
}
