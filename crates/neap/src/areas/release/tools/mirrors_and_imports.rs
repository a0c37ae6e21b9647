//! `reimport` and `mirror-cleanup`: one pass, or one every interval.

use std::{io::Write, time::Duration};

use neap_kit::{apply::Writer, clock::Clock, lease::Leadership};
use neap_release::{
    mirror_cleanup::{self, scope, sources},
    reimport::{self, Reimporter},
};

use super::{CleanupOptions, ReimportOptions};
use crate::{
    exit::{Exit, Failure, chain},
    inspect::{cluster::Cluster, print},
};

/// The field manager of requests for imports.
const MANAGER: &str = "neap-release-reimport";

pub(super) async fn reimport(
    options: &ReimportOptions,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let cluster = Cluster::connect(&options.cluster, None).await?;
    let clock = Clock::system();
    let settings = reimport::ReimportOptions {
        namespaces: options.namespaces.clone(),
        interval: options.interval,
        per_pass: options.limit,
        dry_run: options.dry_run,
        ..reimport::ReimportOptions::default()
    };
    let writer = Writer::new(
        cluster.client.clone(),
        MANAGER,
        Leadership::without_election(clock),
        clock,
    );
    let mut reimporter = Reimporter::new(writer, clock, settings);
    loop {
        let report = match reimporter.pass(&cluster.client).await {
            Ok(report) => report,
            Err(error) if options.once => return Err(unreadable(&error)),
            Err(error) => {
                tracing::warn!("a pass was not made: {}", chain(&error));
                wait(clock, options.interval).await;
                continue;
            }
        };
        for asked in &report.asked {
            print::line(out, &asked.to_string())?;
        }
        for problem in &report.problems {
            print::line(out, &format!("! {problem}"))?;
        }
        let verb = if options.dry_run {
            "would be asked for"
        } else {
            "asked for"
        };
        print::text(
            out,
            &format!(
                "{} imports failed, {} {verb}",
                report.failed,
                report.asked.len()
            ),
        )?;
        if options.once {
            return Ok(());
        }
        wait(clock, options.interval).await;
    }
}

pub(super) async fn clean_up(options: &CleanupOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let cluster = Cluster::connect(&options.cluster, None).await?;
    let settings = mirror_cleanup::CleanupOptions {
        minimum_age: options.minimum_age,
        per_pass: options.limit,
        dry_run: options.dry_run,
    };
    let (namespace, name) = (&options.credentials_namespace, &options.credentials_secret);
    let credentials = sources::credentials(&cluster.client, namespace, name).await;
    let credentials = credentials.map_err(|error| not_gathered(&cluster, &error))?;
    let client = options.registry.client_with(credentials)?;
    loop {
        let streams = match sources::streams(&cluster.client, &options.namespaces).await {
            Ok(streams) => streams,
            Err(error) if options.once => return Err(not_gathered(&cluster, &error)),
            Err(error) => {
                tracing::warn!("a pass was not made: {}", chain(&error));
                wait(Clock::system(), options.interval).await;
                continue;
            }
        };
        let report = mirror_cleanup::pass(&client, &scope(&streams), &settings).await;
        let verb = if options.dry_run {
            "would delete"
        } else {
            "deleted"
        };
        for image in &report.deleted {
            print::line(out, &format!("{verb} {image}"))?;
        }
        for problem in &report.problems {
            print::line(out, &format!("! {problem}"))?;
        }
        let more = if report.limited {
            "; the limit of the pass was reached"
        } else {
            ""
        };
        print::text(
            out,
            &format!(
                "{verb} {}, kept {} that are young{more}",
                report.deleted.len(),
                report.kept
            ),
        )?;
        if options.once {
            return Ok(());
        }
        wait(Clock::system(), options.interval).await;
    }
}

/// What the cluster does not have, or does not let the user read.
fn not_gathered(cluster: &Cluster, error: &sources::Error) -> Failure {
    match error {
        sources::Error::Streams { namespace, source } => {
            cluster.failed(&format!("the image streams of {namespace}"), source)
        }
        sources::Error::Secret { name, source } => {
            cluster.failed(&format!("secret {name}"), source)
        }
        other => Failure::new(
            "NT-RELEASE-0108",
            Exit::Usage,
            "cannot use the credentials of the mirrors",
            &chain(other),
        )
        .remedy("put the content of a docker config.json under the key config.json"),
    }
}

async fn wait(clock: Clock, interval: Duration) {
    clock.sleep(interval).await;
}

fn unreadable(error: &reimport::Error) -> Failure {
    Failure::new(
        "NT-CLI-0006",
        Exit::Failed,
        "cannot ask for imports",
        &chain(error),
    )
    .remedy("check the namespaces and the rights of the user")
}
