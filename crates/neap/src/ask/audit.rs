//! `neap audit verify`: whether the record of what was done is as it was written.

use std::{
    fmt,
    io::{self, Write},
    path::PathBuf,
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use neap_kit::{
    audit::{AnchorOptions, Error, Fault, Head, is_there, verify_file},
    clock::Clock,
    why::Coded,
};
use serde::Serialize;

use super::{cluster::Cluster, print};
use crate::{
    cli::{Output, VerifyOptions},
    exit::{Exit, Failure, chain},
    symbols::Symbols,
};

/// A record that is being written is whole a moment later.
const MOMENT: Duration = Duration::from_millis(100);
const MOMENTS: u32 = 5;

/// What was found to be so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Verified {
    file: PathBuf,
    records: u64,
    /// The record that the cluster holds; nothing if there is no anchor.
    anchored: Option<u64>,
    /// Why there is no anchor.
    #[serde(skip_serializing_if = "Option::is_none")]
    unanchored: Option<String>,
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records, each as it was written; ", self.records)?;
        match (&self.anchored, &self.unanchored) {
            (Some(0), _) => write!(f, "none is anchored yet"),
            (Some(record), _) => {
                write!(f, "the anchor of record {record} fits")?;
                match self.records.saturating_sub(*record) {
                    0 => Ok(()),
                    newer => write!(f, ", and {newer} after it are not anchored yet"),
                }
            }
            (None, Some(why)) => write!(f, "not compared with an anchor: {why}"),
            (None, None) => write!(f, "there is no anchor"),
        }
    }
}

/// Verifies the file that `options` name.
pub(super) async fn verify(
    options: &VerifyOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let folder = options.data.clone().unwrap_or_default();
    let mut places = AnchorOptions::of(&folder);
    if let Some(file) = &options.file {
        places.path.clone_from(file);
    }
    if !is_there(&places.path) {
        return Err(missing(&places));
    }
    let nearby = options.data.as_ref().map(|data| data.join("kubeconfig"));
    let cluster = Cluster::connect(&options.cluster, nearby.as_deref()).await;
    let is_named = options.cluster.kubeconfig.is_some() || options.cluster.context.is_some();
    let cluster = match cluster {
        Err(failure) if is_named => return Err(failure),
        cluster => cluster.ok(),
    };
    let verified = compare(&places, cluster.as_ref()).await;
    let verified = verified.map_err(|error| damaged(&error))?;
    match options.output {
        Output::Json => print::json(out, "AuditVerification", &verified),
        Output::Text => {
            let mark = if verified.anchored.is_some() {
                symbols.done
            } else {
                symbols.note
            };
            let file = verified.file.display();
            print::text(out, &format!("{mark} {file}: {verified}"))
        }
    }
}

/// What the file says of itself, and compared with the anchor in `cluster`.
pub(super) async fn compare(
    places: &AnchorOptions,
    cluster: Option<&Cluster>,
) -> Result<Verified, Error> {
    // First the anchor: the file may grow meanwhile, and then leads through it still.
    let (anchor, unanchored) = match anchor(places, cluster).await {
        Ok(anchor) => (Some(anchor), None),
        Err(why) => (None, Some(why)),
    };
    let head = settled(places, anchor.as_ref()).await?;
    Ok(Verified {
        file: places.path.clone(),
        records: head.index,
        anchored: anchor.map(|anchor| anchor.index),
        unanchored,
    })
}

async fn anchor(places: &AnchorOptions, cluster: Option<&Cluster>) -> Result<Head, String> {
    let cluster = cluster.ok_or("no cluster is named")?;
    let AnchorOptions {
        namespace, name, ..
    } = places;
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client.clone(), namespace);
    let place = format!("ConfigMap {namespace}/{name} of {}", cluster.address);
    match maps.get_opt(name).await {
        Ok(Some(map)) => Head::anchored(&map).ok_or(format!("{place} has none")),
        Ok(None) => Err(format!("there is no {place}")),
        Err(error) => Err(cluster.failed("the anchor", &error).to_string()),
    }
}

/// The last record may be half written just now, or the file be put aside; then it is looked at again.
async fn settled(places: &AnchorOptions, anchor: Option<&Head>) -> Result<Head, Error> {
    let clock = Clock::system();
    for _ in 1..MOMENTS {
        let found = verify_file(&places.path, anchor);
        let passing = match &found {
            Err(Error::Damaged { fault, .. }) => {
                matches!(fault, Fault::Torn { .. } | Fault::Missing { .. })
            }
            Err(Error::Disk { source, .. }) => source.kind() == io::ErrorKind::NotFound,
            Ok(_) => false,
        };
        if !passing {
            return found;
        }
        clock.sleep(MOMENT).await;
    }
    verify_file(&places.path, anchor)
}

fn missing(places: &AnchorOptions) -> Failure {
    let what = format!("there is no audit file {}", places.path.display());
    let why = "nothing was noted there, or the path is another";
    Failure::new("NT-CLI-0011", Exit::NotFound, &what, why)
        .remedy("name the folder that `neap up --data` has, or the file itself with --file")
}

fn damaged(error: &Error) -> Failure {
    let why = match error {
        Error::Damaged { fault, before, .. } => match line(fault) {
            Some(index) => format!("line {}: {fault}", index.saturating_sub(*before)),
            None => fault.to_string(),
        },
        other @ Error::Disk { .. } => chain(other),
    };
    let what = match error {
        Error::Damaged {
            path,
            fault: Fault::Missing { .. },
            ..
        } => format!("something is missing before {}", path.display()),
        Error::Damaged { path, .. } => format!("{} is not as it was written", path.display()),
        Error::Disk { path, .. } => format!("{} cannot be read", path.display()),
    };
    Failure::new(error.code().0, Exit::Failed, &what, &why)
        .remedy("keep the file as evidence, and find out who could write to it")
}

/// The record from which on the file cannot be trusted, if it is there. Each is one line.
fn line(fault: &Fault) -> Option<u64> {
    match *fault {
        Fault::Unreadable { line } => Some(line),
        Fault::Torn { index } | Fault::Edited { index } | Fault::Rewritten { index } => Some(index),
        Fault::Misplaced { expected, .. } => Some(expected),
        Fault::Truncated { last, .. } => Some(last + 1),
        Fault::Missing { .. } => None,
    }
}
