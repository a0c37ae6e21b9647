//! Commands about clusters.

use std::{fs, io::Write};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Method;
use serde_json::{Value, json};

use super::{
    CreateOptions, CredentialsOptions, DeleteOptions, ListOptions, NameOptions, client::Provider,
};
use crate::{
    exit::{Exit, Failure},
    inspect::{
        listing::{self, Column, Listed, Listing},
        print,
    },
    symbols::Symbols,
};

pub(super) fn read(file: &std::path::Path) -> Result<Value, Failure> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        let what = format!("cannot use {}", file.display());
        Failure::new(
            "NT-FLEET-0012",
            Exit::of_file(error),
            &what,
            &error.to_string(),
        )
        .remedy("correct the file; examples/fleet has one")
    };
    let text = fs::read_to_string(file).map_err(|error| failed(&error))?;
    serde_json::from_str(&text).map_err(|error| failed(&error))
}

/// Sets the version in the body of a PUT. What is no cluster is refused: the provider could not say what of it is
/// wrong.
fn choose_version(body: &mut Value, version: &str) -> Result<(), Failure> {
    for (pointer, name) in [
        ("", "the file"),
        ("/properties", "properties"),
        ("/properties/clusterProfile", "properties.clusterProfile"),
    ] {
        let found = body.pointer(pointer);
        if found.is_some_and(|it| !it.is_object()) {
            let what = "cannot choose the version of the cluster";
            let why = format!("{name} is not a JSON object");
            return Err(Failure::new("NT-FLEET-0012", Exit::Refused, what, &why)
                .remedy("correct the file; examples/fleet has one"));
        }
    }
    let pointer = "/properties/clusterProfile/version";
    neap_fleet::documents::set(body, pointer, version.into());
    Ok(())
}

/// A small cluster.
fn small(provider: &Provider, name: &str) -> Value {
    let subscription = &provider.subscription;
    let subnet = |name: &str| {
        format!(
            "/subscriptions/{subscription}/resourceGroups/network/providers/Microsoft.Network/virtualNetworks/fleet/subnets/{name}"
        )
    };
    let id = neap_kit::http::RequestId::random().0;
    json!({
        "location": provider.location,
        "properties": {
            "clusterProfile": {
                "domain": name.to_lowercase(),
                "resourceGroupId": format!("/subscriptions/{subscription}/resourceGroups/aro-{name}"),
            },
            "servicePrincipalProfile": {"clientId": id, "clientSecret": id},
            "networkProfile": {"podCidr": "10.128.0.0/14", "serviceCidr": "172.30.0.0/16"},
            "masterProfile": {"vmSize": "Standard_D8s_v3", "subnetId": subnet("master")},
            "workerProfiles": [{
                "name": "worker",
                "vmSize": "Standard_D4s_v3",
                "diskSizeGB": 128,
                "subnetId": subnet("worker"),
                "count": 3,
            }],
            "apiserverProfile": {"visibility": "Public"},
            "ingressProfiles": [{"name": "default", "visibility": "Public"}],
        },
    })
}

/// Refuses to create a cluster that exists. The default values have new credentials each time: sent to a cluster
/// that exists, they would replace its own.
async fn absent(provider: &Provider, name: &str) -> Result<(), Failure> {
    let path = provider.path(&format!("/{name}"));
    match provider.call(Method::GET, &path, None).await {
        Ok(_) => Err(exists(name)),
        Err(failure) if failure.exit() == Exit::NotFound => Ok(()),
        Err(failure) => Err(failure),
    }
}

fn exists(name: &str) -> Failure {
    let what = format!("the cluster {name} exists");
    let why = "default values would replace what it has, its credentials too";
    Failure::new("NT-FLEET-0010", Exit::Refused, &what, why).remedy(format!(
        "look with neap fleet show {name}, or change it with --file"
    ))
}

pub(super) async fn create(
    options: &CreateOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let provider = Provider::connect(&options.provider).await?;
    let name = &options.name;
    let mut body = match &options.file {
        Some(file) => read(file)?,
        None => small(&provider, name),
    };
    if let Some(version) = &options.version {
        choose_version(&mut body, version)?;
    }
    let mut path = provider.path(&format!("/{name}"));
    let if_none_match = if options.file.is_none() {
        absent(&provider, name).await?;
        Some("*")
    } else {
        None
    };
    if options.dry_run {
        path.push_str("&dryRun=true");
    }
    let answer = provider
        .call_if_none(Method::PUT, &path, Some(&body), if_none_match)
        .await?;
    if options.dry_run {
        return print::raw(out, &format!("{:#}", answer.body));
    }
    let verb = if answer.status == 201 {
        "created"
    } else {
        "updated"
    };
    let operation = answer.operation.unwrap_or_default();
    if options.no_wait || operation.is_empty() {
        let text = format!("{} the cluster {name} is being {verb}", symbols.done);
        return print::text(out, &text);
    }
    follow(&provider, &operation, options.timeout, out).await?;
    let text = format!(
        "{} the cluster {name} was {verb}\n  neap fleet credentials {name} --kubeconfig-of-admin > {name}.kubeconfig\n  kubectl --kubeconfig {name}.kubeconfig get nodes",
        symbols.done
    );
    print::text(out, &text)
}

/// Prints the steps that it sees: several may pass between two polls.
async fn follow(
    provider: &Provider,
    operation: &str,
    timeout: std::time::Duration,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut last = String::new();
    let progress = |status: &Value| {
        let progress = &status["properties"];
        let step = progress["step"].as_str().unwrap_or_default();
        if !step.is_empty() && step != last {
            step.clone_into(&mut last);
            let (done, total) = (&progress["stepsDone"], &progress["stepsTotal"]);
            print::text(out, &format!("  {done}/{total} {step}"))?;
        }
        Ok(())
    };
    provider.wait(operation, timeout, progress).await.map(drop)
}

const COLUMNS: &[Column] = &[
    Column::new("NAME"),
    Column::new("STATE"),
    Column::new("VERSION"),
    Column::new("LOCATION"),
    Column::new("API"),
    Column::new("ID").wide(),
];

pub(super) async fn list(options: &ListOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let provider = Provider::connect(&options.provider).await?;
    let read = async || {
        let group = options.provider.resource_group.as_deref();
        let clusters = all(&provider, group).await?;
        Ok(Listing {
            kind: "ClusterList",
            resource: "cluster",
            columns: COLUMNS,
            items: clusters.into_iter().map(listed).collect(),
            empty: nothing_in(group),
        })
    };
    listing::show(options.listing, provider.clock, out, read).await
}

fn nothing_in(group: Option<&str>) -> String {
    match group {
        Some(group) => {
            format!("There is no cluster in the resource group {group}. List all: neap fleet list")
        }
        None => "There is no cluster. Create one: neap fleet create NAME".to_owned(),
    }
}

/// The clusters of a resource group, or those of the subscription.
async fn all(provider: &Provider, group: Option<&str>) -> Result<Vec<Value>, Failure> {
    let mut clusters = Vec::new();
    let path = match group {
        Some(_) => provider.path(""),
        None => format!(
            "/subscriptions/{}/providers/Microsoft.RedHatOpenShift/openShiftClusters?api-version={}",
            provider.subscription,
            super::client::API
        ),
    };
    let mut next = Some(path);
    while let Some(path) = next {
        let page = provider.call(Method::GET, &path, None).await?.body;
        clusters.extend(page["value"].as_array().cloned().unwrap_or_default());
        next = page["nextLink"].as_str().map(str::to_owned);
    }
    Ok(clusters)
}

fn listed(cluster: Value) -> Listed {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let properties = &cluster["properties"];
    let cells = vec![
        text(&cluster["name"]),
        text(&properties["provisioningState"]),
        text(&properties["clusterProfile"]["version"]),
        text(&cluster["location"]),
        text(&properties["apiserverProfile"]["url"]),
        text(&cluster["id"]),
    ];
    Listed {
        name: text(&cluster["name"]),
        cells,
        data: cluster,
    }
}

pub(super) async fn show(options: &NameOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let provider = Provider::connect(&options.provider).await?;
    let path = provider.path(&format!("/{}", options.name));
    let answer = provider.call(Method::GET, &path, None).await?;
    print::raw(out, &format!("{:#}", answer.body))
}

pub(super) async fn delete(
    options: &DeleteOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let provider = Provider::connect(&options.provider).await?;
    let name = &options.name;
    let path = provider.path(&format!("/{name}"));
    let answer = provider.call(Method::DELETE, &path, None).await?;
    let Some(operation) = answer.operation else {
        let what = format!("there is no cluster {name}");
        let why = format!(
            "the resource group {} has none of this name",
            provider.group
        );
        return Err(Failure::new("NT-FLEET-0010", Exit::NotFound, &what, &why)
            .remedy("list the clusters: neap fleet list; name another resource group with -g"));
    };
    if options.no_wait {
        return print::text(
            out,
            &format!("{} the cluster {name} is being deleted", symbols.done),
        );
    }
    follow(&provider, &operation, options.timeout, out).await?;
    print::text(
        out,
        &format!("{} the cluster {name} was deleted", symbols.done),
    )
}

pub(super) async fn credentials(
    options: &CredentialsOptions,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let provider = Provider::connect(&options.provider).await?;
    let name = &options.name;
    if options.kubeconfig_of_admin {
        let path = provider.path(&format!("/{name}/listAdminCredentials"));
        let answer = provider.call(Method::POST, &path, None).await?;
        let data = answer.body["kubeconfig"].as_str().unwrap_or_default();
        let text = STANDARD.decode(data).unwrap_or_default();
        return print::raw(out, String::from_utf8_lossy(&text).trim_end());
    }
    let path = provider.path(&format!("/{name}/listCredentials"));
    let answer = provider.call(Method::POST, &path, None).await?;
    let of = |name: &str| answer.body[name].as_str().unwrap_or_default();
    print::text(
        out,
        &format!("{}\n{}", of("kubeadminUsername"), of("kubeadminPassword")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_chosen_for_what_is_a_cluster() {
        let chosen = json!({"properties": {"clusterProfile": {"version": "4.19.9"}}});
        for mut body in [
            json!({}),
            json!({"properties": {}}),
            json!({"properties": {"clusterProfile": {"version": 4}}}),
        ] {
            choose_version(&mut body, "4.19.9").unwrap();
            assert_eq!(body, chosen);
        }
        for body in [
            json!([]),
            json!("cluster"),
            json!({"properties": []}),
            json!({"properties": {"clusterProfile": "small"}}),
        ] {
            let mut refused = body.clone();
            let failure = choose_version(&mut refused, "4.19.9").unwrap_err();
            assert_eq!(failure.exit(), Exit::Refused);
            assert_eq!(refused, body, "nothing of it is changed");
        }
    }
}
