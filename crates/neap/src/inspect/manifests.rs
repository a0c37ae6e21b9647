//! `neap definitions` and `neap rights`: what a cluster needs before the processes of an area run there.

use std::{fmt::Write as _, io::Write};

use kube::ResourceExt;
use neap_kit::{
    apply::Writer,
    area::Area,
    clock::Clock,
    definitions::{self, Installed},
    lease::Leadership,
    why::{Coded, chain},
};
use serde::Serialize;

use super::{cluster::Cluster, print};
use crate::{
    areas,
    cli::{DefinitionsOptions, RightsOptions},
    exit::{Exit, Failure},
    symbols::Symbols,
};

/// Prints the definitions, or installs them.
pub(super) async fn definitions(
    options: &DefinitionsOptions,
    symbols: Symbols,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let definitions = chosen(&options.areas).flat_map(|area| (area.definitions)());
    if !options.install {
        return print::raw(out, &documents(definitions)?);
    }
    let cluster = Cluster::connect(&options.cluster, None).await?;
    let clock = Clock::system();
    let leadership = Leadership::without_election(clock);
    let writer = Writer::new(cluster.client.clone(), "neap", leadership, clock);
    for definition in definitions {
        let name = definition.name_any();
        let installed = definitions::install(&writer, definition, false).await;
        let done = match installed.map_err(|error| not_installed(&name, &error))? {
            Installed::Created => "created",
            Installed::Updated => "updated",
            Installed::Unchanged => "unchanged",
        };
        print::text(out, &format!("{} {name} {done}", symbols.done))?;
    }
    Ok(())
}

/// Prints roles and bindings.
pub(super) fn rights(options: &RightsOptions, out: &mut dyn Write) -> Result<(), Failure> {
    let roles = chosen(&options.areas).flat_map(|area| area.roles);
    let objects = roles.flat_map(|role| role.objects(&options.namespace));
    let views = chosen(&options.areas).filter_map(|area| area.view_role());
    let views = views.filter_map(|role| serde_json::to_value(role).ok());
    print::raw(out, &documents(objects.chain(views))?)
}

fn chosen(names: &[String]) -> impl Iterator<Item = Area> {
    areas::all().filter(|area| names.is_empty() || names.iter().any(|name| name == area.name))
}

/// The objects as documents of one YAML stream. As values first: their keys are then in order.
fn documents(objects: impl Iterator<Item = impl Serialize>) -> Result<String, Failure> {
    let mut text = String::new();
    for object in objects {
        let value = serde_json::to_value(object).map_err(|error| unprintable(&error))?;
        let document = serde_saphyr::to_string(&value).map_err(|error| unprintable(&error))?;
        let _ = write!(text, "---\n{document}");
    }
    Ok(text)
}

fn unprintable(error: &dyn std::error::Error) -> Failure {
    let what = "an object in the program cannot be printed";
    Failure::new("NT-CLI-0006", Exit::Failed, what, &chain(error))
        .remedy("report it with this message")
}

fn not_installed(name: &str, error: &neap_kit::apply::Error) -> Failure {
    let code = error.code();
    let remedy = areas::catalogue()
        .find(code.0)
        .map_or("", |entry| entry.remedy);
    let what = format!("the definition {name} cannot be installed");
    Failure::new(code.0, Exit::Failed, &what, &chain(error)).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_and_rights_are_yaml_documents_of_the_chosen_areas() {
        let names = vec!["idle".to_owned()];
        let text = documents(chosen(&names).flat_map(|area| (area.definitions)())).unwrap();
        assert!(text.starts_with("---\n"), "{text}");
        assert_eq!(text.matches("kind: CustomResourceDefinition").count(), 1);
        let options = RightsOptions {
            areas: names,
            namespace: "elasti".to_owned(),
        };
        let mut out = Vec::new();
        rights(&options, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        for part in [
            "kind: ClusterRole\n",
            "kind: RoleBinding\n",
            "namespace: elasti",
            "name: neap-idle-view",
            "rbac.authorization.k8s.io/aggregate-to-view",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
        assert!(!text.contains('*'), "{text}");
    }
}
