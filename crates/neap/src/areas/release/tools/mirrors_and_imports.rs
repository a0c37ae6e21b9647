//! `reimport` and `mirror-cleanup`: one pass, or one every interval.

use std::io::Write;

use neap_kit::{apply::Writer, clock::Clock, lease::Leadership};
use neap_release::{
    mirror_cleanup::{
        self, CleanupReport, MirrorCleaner,
        sources::{self, CleanupSources},
    },
    oci::credentials::Credentials,
    reimport::{self, ReimportReport, Reimporter},
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
        once: options.once,
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
        match reimporter.pass(&cluster.client).await {
            Ok(report) => print_requests(&report, options.dry_run, out)?,
            Err(error) if options.once => return Err(unreadable(&error)),
            Err(error) => tracing::warn!("a pass was not made: {}", chain(&error)),
        }
        if options.once {
            return Ok(());
        }
        clock.sleep(options.interval).await;
    }
}

fn print_requests(
    report: &ReimportReport,
    dry_run: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    for asked in &report.asked {
        print::line(out, &asked.to_string())?;
    }
    for problem in &report.problems {
        print::line(out, &format!("! {problem}"))?;
    }
    let verb = if dry_run {
        "would be asked for"
    } else {
        "asked for"
    };
    let (failed, asked, waiting) = (report.failed, report.asked.len(), report.waiting());
    let waiting = match waiting {
        0 => String::new(),
        waiting => format!(", {waiting} wait for a later pass"),
    };
    let left_out = match report.left_out {
        0 => String::new(),
        count => format!("; {count} failed of other streams, which are left out"),
    };
    print::text(
        out,
        &format!(
            "{failed} imports failed of streams that releases are made from, {asked} {verb}{waiting}{left_out}"
        ),
    )
}

pub(super) async fn clean_up(options: &CleanupOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let cluster = Cluster::connect(&options.cluster, None).await?;
    let sources = CleanupSources {
        namespaces: options.namespaces.clone(),
        credentials_namespace: options.credentials_namespace.clone(),
        credentials_secret: options.credentials_secret.clone(),
    };
    let mut cleaner = MirrorCleaner::new(mirror_cleanup::CleanupOptions {
        minimum_age: options.minimum_age,
        interval: options.interval,
        per_pass: options.limit,
        looked_at: options.look_limit,
        dry_run: options.dry_run,
    });
    let registry = options.registry.client_with(Credentials::none())?;
    loop {
        match cleaner.pass(&cluster.client, &sources, &registry).await {
            Ok(report) => print_deletions(&report, options.dry_run, out)?,
            Err(error) if options.once => return Err(not_gathered(&cluster, &error)),
            Err(error) => tracing::warn!("a pass was not made: {}", chain(&error)),
        }
        if options.once {
            return Ok(());
        }
        registry.clock().sleep(options.interval).await;
    }
}

fn print_deletions(
    report: &CleanupReport,
    dry_run: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let verb = if dry_run { "would delete" } else { "deleted" };
    for image in &report.deleted {
        print::line(out, &format!("{verb} {image}"))?;
    }
    for problem in &report.problems {
        print::line(out, &format!("! {problem}"))?;
    }
    for registry in &report.left_alone {
        print::line(out, &format!("! {registry} failed and is left alone"))?;
    }
    let more = if report.limited {
        "; a limit of the pass was reached"
    } else {
        ""
    };
    let (deleted, kept) = (report.deleted.len(), report.kept);
    print::text(
        out,
        &format!("{verb} {deleted}, kept {kept} that are young{more}"),
    )
}

fn is_missing(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.is_not_found())
}

/// What the cluster does not have, or does not let the user read.
fn not_gathered(cluster: &Cluster, error: &sources::Error) -> Failure {
    match error {
        sources::Error::Streams { namespace, source } => {
            cluster.failed(&format!("the image streams of {namespace}"), source)
        }
        sources::Error::Secret { name, source } if is_missing(source) => Failure::new(
            "NT-RELEASE-0108",
            Exit::NotFound,
            "cannot use the credentials of the mirrors",
            &format!("there is no Secret {name}"),
        )
        .remedy("name the Secret with --credentials-namespace and --credentials-secret"),
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

fn unreadable(error: &reimport::Error) -> Failure {
    Failure::new(
        "NT-CLI-0006",
        Exit::Failed,
        "cannot ask for imports",
        &chain(error),
    )
    .remedy("check the namespaces and the rights of the user")
}
