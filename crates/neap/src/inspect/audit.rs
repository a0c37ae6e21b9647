//! `neap audit verify`: whether the audit log is unchanged since it was written.

use std::{
    fmt,
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use neap_kit::{
    audit::{AnchorOptions, ChainFault, ChainHead, Error, audit_exists, verify_file},
    clock::Clock,
    why::Coded,
};
use serde::Serialize;

use super::{cluster::Cluster, print};
use crate::{
    cli::AuditVerifyOptions,
    exit::{Exit, Failure, chain},
    symbols::Symbols,
};

/// Delay before a log with an incomplete end is read again: a server may be writing the record.
const RETRY_DELAY: Duration = Duration::from_millis(100);
/// Reads of a log with an incomplete end before the fault counts.
const MAX_ATTEMPTS: u32 = 5;

/// Why no cluster is asked for the anchor.
pub(super) const NOT_CONFIGURED: &str = "no cluster is configured";

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuditVerification {
    file: PathBuf,
    records: u64,
    /// Index of the record that the anchor in the cluster holds.
    anchored: Option<u64>,
    /// Why the log was not compared with an anchor.
    #[serde(skip_serializing_if = "Option::is_none")]
    unanchored: Option<String>,
}

impl fmt::Display for AuditVerification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records, none changed; ", self.records)?;
        match (&self.anchored, &self.unanchored) {
            (Some(0), _) => write!(f, "no record is anchored yet"),
            (Some(record), _) => {
                write!(f, "the anchor matches record {record}")?;
                match self.records.saturating_sub(*record) {
                    0 => Ok(()),
                    newer => write!(f, ", and {newer} newer records are not anchored yet"),
                }
            }
            (None, Some(why)) => write!(f, "not compared with an anchor: {why}"),
            (None, None) => write!(f, "there is no anchor"),
        }
    }
}

/// Verifies the log that `options` names.
pub(super) async fn verify(
    options: &AuditVerifyOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let folder = options.data.clone().unwrap_or_default();
    let mut places = AnchorOptions::for_data_folder(&folder);
    if let Some(file) = &options.file {
        places.path.clone_from(file);
    }
    if !audit_exists(&places.path) {
        return Err(missing(&places));
    }
    let nearby = options.data.as_ref().map(|data| data.join("kubeconfig"));
    let cluster = Cluster::connect(&options.cluster, nearby.as_deref()).await;
    let is_named = options.cluster.kubeconfig.is_some() || options.cluster.context.is_some();
    let cluster = match cluster {
        Err(failure) if is_named => return Err(failure),
        cluster => cluster.ok(),
    };
    let cluster = cluster.as_ref().ok_or(NOT_CONFIGURED);
    let verified = verify_against_anchor(&places, cluster).await;
    let verified = verified.map_err(|error| damaged(&error))?;
    if let Some(format) = options.output.data() {
        return print::data(out, format, "AuditVerification", &verified);
    }
    let mark = if verified.anchored.is_some() {
        symbols.done
    } else {
        symbols.note
    };
    let file = verified.file.display();
    print::text(out, &format!("{mark} {file}: {verified}"))
}

/// Verifies the hash chain of the log, and compares it with the anchor in `cluster`, or says why that cluster is not
/// asked.
pub(super) async fn verify_against_anchor(
    places: &AnchorOptions,
    cluster: Result<&Cluster, &str>,
) -> Result<AuditVerification, Error> {
    // The anchor is read first: if the log grows meanwhile, it still contains the anchored record.
    let (anchor, unanchored) = match read_anchor(places, cluster).await {
        Ok(anchor) => (Some(anchor), None),
        Err(why) => (None, Some(why)),
    };
    let head = verify_with_retries(places, anchor.as_ref()).await?;
    Ok(AuditVerification {
        file: places.path.clone(),
        records: head.index,
        anchored: anchor.map(|anchor| anchor.index),
        unanchored,
    })
}

async fn read_anchor(
    places: &AnchorOptions,
    cluster: Result<&Cluster, &str>,
) -> Result<ChainHead, String> {
    let cluster = cluster?;
    let AnchorOptions {
        namespace, name, ..
    } = places;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), namespace);
    let map_name = format!("ConfigMap {namespace}/{name} of {}", cluster.address);
    match maps.get_opt(name).await {
        Ok(Some(map)) => ChainHead::anchored(&map).ok_or(format!("{map_name} has no anchor")),
        Ok(None) => Err(format!("{map_name} does not exist")),
        Err(error) => Err(cluster.failed("the anchor", &error).to_string()),
    }
}

/// Verifies the log, and again if the fault may be temporary: a server may be writing the last record
/// or starting a new part.
async fn verify_with_retries(
    places: &AnchorOptions,
    anchor: Option<&ChainHead>,
) -> Result<ChainHead, Error> {
    let clock = Clock::system();
    for _ in 1..MAX_ATTEMPTS {
        let result = verify_file(&places.path, anchor);
        let temporary = match &result {
            Err(Error::Damaged { fault, .. }) => {
                matches!(fault, ChainFault::Torn { .. } | ChainFault::Missing { .. })
            }
            Err(Error::Disk { source, .. }) => source.kind() == io::ErrorKind::NotFound,
            Ok(_) => false,
        };
        if !temporary {
            return result;
        }
        clock.sleep(RETRY_DELAY).await;
    }
    verify_file(&places.path, anchor)
}

fn missing(places: &AnchorOptions) -> Failure {
    let what = format!("the audit log {} does not exist", places.path.display());
    let why = "nothing was recorded there, or the path is wrong";
    Failure::new("NT-CLI-0011", Exit::NotFound, &what, why)
        .remedy("pass the folder of `neap up --data` with --data, or the file with --file")
}

fn damaged(error: &Error) -> Failure {
    let why = match error {
        Error::Damaged { fault, before, .. } => match faulty_record(fault) {
            Some(index) => format!("line {}: {fault}", index.saturating_sub(*before)),
            None => fault.to_string(),
        },
        other @ Error::Disk { .. } => chain(other),
    };
    let what = match error {
        Error::Damaged {
            path,
            fault: ChainFault::Missing { .. },
            ..
        } => format!("records before {} are missing", path.display()),
        Error::Damaged { path, .. } => format!("{} was changed", path.display()),
        Error::Disk { path, .. } => format!("{} cannot be read", path.display()),
    };
    Failure::new(error.code().0, Exit::Failed, &what, &why)
        .remedy("keep the file as evidence, and find out who had write access to it")
}

/// The first record that cannot be trusted. Each record is one line.
fn faulty_record(fault: &ChainFault) -> Option<u64> {
    match *fault {
        ChainFault::Unreadable { line } => Some(line),
        ChainFault::Torn { index }
        | ChainFault::Edited { index }
        | ChainFault::Rewritten { index } => Some(index),
        ChainFault::Misplaced { expected, .. } => Some(expected),
        ChainFault::Truncated { last, .. } => Some(last + 1),
        ChainFault::Missing { .. } => None,
    }
}
