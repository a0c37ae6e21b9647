//! Installs the definitions of custom resources.
//!
//! A definition is created if it does not exist, and updated if the program has another one than was last
//! installed. What the server adds to it is left alone: a hash of what was installed is in an annotation.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt;

use crate::{
    apply::{Error, Writer},
    hash::stable_hash,
    key::Key,
};

/// The annotation with the hash of the definition that was installed.
pub const INSTALLED: &str = "neaptide.dev/definition";

/// What an installation did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// There was no such definition.
    Created,
    /// There was another version of it.
    Updated,
    /// It was there.
    Unchanged,
}

/// Installs a definition. With `existed`, one that is missing is not created: a user deleted it, for example
/// to uninstall the area.
pub async fn install(
    writer: &Writer,
    definition: CustomResourceDefinition,
    existed: bool,
) -> Result<Installed, Error> {
    let mut desired = definition;
    let hash = hash(&desired);
    desired
        .annotations_mut()
        .insert(INSTALLED.to_owned(), hash.clone());
    let key = Key::of(&desired);
    match writer.find::<CustomResourceDefinition>(&key).await? {
        Some(found) if found.annotations().get(INSTALLED) == Some(&hash) => {
            Ok(Installed::Unchanged)
        }
        Some(found) => {
            let annotations = std::mem::take(desired.annotations_mut());
            desired.metadata = found.metadata;
            desired.annotations_mut().extend(annotations);
            desired.status = found.status;
            writer.replace(&desired).await?;
            Ok(Installed::Updated)
        }
        None if existed => Ok(Installed::Unchanged),
        // Another process may create it at the same moment.
        None => Ok(match writer.create(&desired).await? {
            Some(_) => Installed::Created,
            None => Installed::Unchanged,
        }),
    }
}

/// Whether the server serves the kind of the definition.
pub fn is_established(definition: &CustomResourceDefinition) -> bool {
    let status = definition.status.iter();
    let mut conditions = status.flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|one| one.type_ == "Established" && one.status == "True")
}

fn hash(definition: &CustomResourceDefinition) -> String {
    let text = serde_json::to_string(&definition.spec).unwrap_or_default();
    format!("{:016x}", stable_hash([text.as_bytes()]))
}

#[cfg(test)]
mod tests {
    use kube::{Api, CustomResourceExt, api::DeleteParams};

    use super::*;
    use crate::{clock::Clock, lease::Leadership, operation::Operation, server::Server};

    #[tokio::test(start_paused = true)]
    async fn a_definition_is_created_once_and_updated_only_if_it_differs() {
        let server = Server::open().await;
        let clock = Clock::system();
        let leadership = Leadership::without_election(clock);
        let writer = Writer::new(server.client.clone(), "test", leadership, clock);
        // A group of its own: other tests on a shared server install theirs.
        let mut definition = Operation::crd();
        let group = format!("{}.example", server.unique_name("definitions"));
        definition.spec.group.clone_from(&group);
        definition.metadata.name = Some(format!("{}.{group}", definition.spec.names.plural));
        let done = |existed| install(&writer, definition.clone(), existed);
        assert_eq!(done(true).await.unwrap(), Installed::Unchanged);
        assert_eq!(done(false).await.unwrap(), Installed::Created);
        assert_eq!(done(false).await.unwrap(), Installed::Unchanged);
        let mut other = definition.clone();
        other.spec.names.short_names = Some(vec!["opn".to_owned()]);
        let updated = install(&writer, other, true).await.unwrap();
        assert_eq!(updated, Installed::Updated);
        let api: Api<CustomResourceDefinition> = Api::all(server.client.clone());
        let name = definition.name_any();
        let found = api.get(&name).await.unwrap();
        assert_eq!(found.spec.names.short_names.unwrap(), ["opn"]);
        api.delete(&name, &DeleteParams::default()).await.unwrap();
    }
}
