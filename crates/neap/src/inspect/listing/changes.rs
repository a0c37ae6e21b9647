//! Which objects of a watched list have changed. Pure.

use std::collections::BTreeMap;

use super::{Listed, Listing};

/// What was printed last of each object, without the cells that change as time passes.
pub(super) struct Shown(BTreeMap<Vec<String>, ShownItem>);

struct ShownItem {
    name: String,
    cells: Vec<String>,
}

impl Shown {
    pub(super) fn new(listing: &Listing) -> Self {
        let items = listing.items.iter().map(|item| {
            let cells = lasting(listing, item);
            let name = item.name.clone();
            (identity(item), ShownItem { name, cells })
        });
        Self(items.collect())
    }

    /// The objects of `next` that are new or changed, and the names of those that are gone.
    pub(super) fn update<'a>(&mut self, next: &'a Listing) -> (Vec<&'a Listed>, Vec<String>) {
        let changed = next.items.iter().filter(|item| {
            let before = self.0.get(&identity(item));
            before.is_none_or(|before| before.cells != lasting(next, item))
        });
        let changed = changed.collect();
        let now = Self::new(next);
        let gone = self.0.iter().filter(|(key, _)| !now.0.contains_key(*key));
        let gone = gone.map(|(_, item)| item.name.clone()).collect();
        *self = now;
        (changed, gone)
    }
}

/// Namespace and name: names are unique in a namespace only, which lists show in their first column.
fn identity(item: &Listed) -> Vec<String> {
    let mut identity = vec![item.name.clone()];
    identity.extend(item.cells.first().cloned());
    identity
}

fn lasting(listing: &Listing, item: &Listed) -> Vec<String> {
    let cells = listing.columns.iter().zip(&item.cells);
    let lasting = cells.filter(|(column, _)| !column.passing);
    lasting.map(|(_, cell)| cell.clone()).collect()
}
