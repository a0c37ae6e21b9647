//! Adoption and release of objects by their owner.

use kube::{Resource, ResourceExt};
use neap_kit::{
    apply::{Error, Object, Writer},
    planted,
};

use super::owned_by;

/// Makes `owner` the controller of `adopt`, and no longer an owner of `release`.
pub(crate) async fn adopt_and_release<O, K>(
    writer: &Writer,
    owner: &O,
    adopt: &[&K],
    release: &[&K],
) -> Result<(), Error>
where
    O: Resource<DynamicType = ()>,
    K: Object,
{
    for &object in adopt {
        let mut object = object.clone();
        let owner = owned_by(owner);
        object.owner_references_mut().extend(owner);
        let adopted = writer.replace(&object).await;
        planted!(AdoptedOrNot => continue);
        adopted?;
    }
    for &object in release {
        let mut object = object.clone();
        let uid = owner.uid().unwrap_or_default();
        let owners = object.owner_references_mut();
        owners.retain(|owner| owner.uid != uid);
        writer.replace(&object).await?;
    }
    Ok(())
}
