//! Versions that can be installed, and validation of a body.

use std::{io::Write, path::Path};

use http::Method;
use neap_fleet::{
    api,
    resource_id::ClusterId,
    validation::{Input, Region, report},
};
use serde_json::Value;

use super::{ListOptions, ValidateOptions, client::Provider, clusters::read};
use crate::{
    exit::{Exit, Failure},
    inspect::{
        listing::{self, Column, Listed, Listing},
        print,
    },
    symbols::Symbols,
};

const COLUMNS: &[Column] = &[
    Column::new("VERSION"),
    Column::new("ENABLED"),
    Column::new("DEFAULT"),
    Column::new("PAYLOAD").wide(),
];

pub(super) async fn list(options: &ListOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let provider = Provider::connect(&options.provider).await?;
    let read = async || {
        let answer = provider.call(Method::GET, "/admin/versions", None).await?;
        let versions = answer.body["value"].as_array().cloned().unwrap_or_default();
        Ok(Listing {
            kind: "VersionList",
            resource: "version",
            columns: COLUMNS,
            items: versions.into_iter().map(listed).collect(),
            empty: "No version can be installed.".to_owned(),
        })
    };
    listing::show(options.listing, provider.clock, out, read).await
}

fn listed(version: Value) -> Listed {
    let properties = &version["properties"];
    let yes = |name: &str| if properties[name] == true { "yes" } else { "-" }.to_owned();
    let name = properties["version"].as_str().unwrap_or_default();
    Listed {
        name: name.to_owned(),
        cells: vec![
            name.to_owned(),
            yes("enabled"),
            yes("default"),
            properties["openShiftPullspec"]
                .as_str()
                .unwrap_or("-")
                .to_owned(),
        ],
        data: version,
    }
}

/// Validates with the same checks as the provider.
pub(super) fn validate(
    options: &ValidateOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let cluster = read(&options.file)?;
    is_cluster(&cluster, &options.file)?;
    let api = api::find(&options.api_version).ok_or_else(|| {
        let known: Vec<_> = api::names().collect();
        let why = format!("this program knows {known:?}");
        let what = format!("there is no API version {}", options.api_version);
        Failure::new("NT-FLEET-0012", Exit::Usage, &what, &why)
            .remedy("name one of them with --api-version")
    })?;
    let id = options.id.as_deref().or(cluster["id"].as_str());
    let id = match id {
        Some(id) => ClusterId::parse(id),
        None => from_group(&cluster),
    };
    let id = id.ok_or_else(|| {
        let why = "its properties.clusterProfile.resourceGroupId names no subscription";
        let what = "the resource id of the cluster is unknown";
        Failure::new("NT-FLEET-0012", Exit::Usage, what, why).remedy("pass it with --id")
    })?;
    let region = Region {
        location: options.location.clone(),
        domain: "local.aroapp.example.com".to_owned(),
        small_workers: false,
    };
    let input = Input {
        api,
        id: &id,
        cluster: &cluster,
        current: None,
        region: &region,
        first_architecture: false,
    };
    let mut failed = None;
    for (name, result) in report(&input) {
        match result {
            Ok(()) => print::text(out, &format!("{} {name}", symbols.done))?,
            Err(error) => {
                print::text(out, &format!("{} {name}", symbols.failed))?;
                failed = Some(error);
            }
        }
    }
    failed.map_or(Ok(()), |error| {
        let what = format!("{} {}", error.code, error.target);
        Err(
            Failure::new("NT-FLEET-0010", Exit::Refused, what.trim(), &error.message)
                .remedy("correct the field that is named in the file"),
        )
    })
}

/// Refuses what no check could say anything about.
fn is_cluster(body: &Value, file: &Path) -> Result<(), Failure> {
    if body["properties"].is_object() {
        return Ok(());
    }
    let what = format!("{} is not the body of a cluster", file.display());
    let why = "it has no object 'properties'";
    Err(Failure::new("NT-FLEET-0012", Exit::Refused, &what, why)
        .remedy("write it like examples/fleet/cluster.json"))
}

/// An id in the subscription of the cluster's own resource group.
fn from_group(cluster: &Value) -> Option<ClusterId> {
    let group = cluster.pointer("/properties/clusterProfile/resourceGroupId")?;
    let subscription = group.as_str()?.split('/').nth(2)?;
    let name = "validated";
    ClusterId::new(
        subscription,
        name,
        neap_fleet::resource_id::NAMESPACE,
        neap_fleet::resource_id::CLUSTER_TYPE,
        name,
    )
    .ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_cluster_is_not_validated() {
        let file = Path::new("some.json");
        for body in [
            json!([]),
            json!("cluster"),
            json!(null),
            json!({}),
            json!({"versions": []}),
            json!({"properties": 1}),
        ] {
            let failure = is_cluster(&body, file).unwrap_err();
            assert_eq!(failure.exit(), Exit::Refused);
            assert!(
                failure.to_string().contains("some.json is not the body"),
                "{failure}"
            );
        }
        assert!(is_cluster(&json!({"properties": {}}), file).is_ok());
    }
}
