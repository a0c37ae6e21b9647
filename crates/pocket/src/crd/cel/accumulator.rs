//! The accumulator of a comprehension.

use std::collections::BTreeMap;

use super::{
    eval::Evaluation,
    meter::{Fault, Meter},
    term::FoldKind,
    value::{MapKey, MapValue, Val},
};

/// The state of one comprehension; which parts are used depends on its kind.
pub(super) struct Accumulator<'a> {
    kind: FoldKind,
    decided: bool,
    error: Option<Fault>,
    pub(super) count: usize,
    pub(super) items: Vec<Val<'a>>,
    pub(super) map: BTreeMap<MapKey, Val<'a>>,
}

impl<'a> Accumulator<'a> {
    pub(super) fn new(kind: FoldKind) -> Self {
        Self {
            kind,
            decided: false,
            error: None,
            count: 0,
            items: Vec::new(),
            map: BTreeMap::new(),
        }
    }

    pub(super) fn quantify(&mut self, truth: Result<bool, Fault>) -> Result<bool, Fault> {
        match truth {
            Ok(truth) if truth == (self.kind == FoldKind::Exists) => {
                self.decided = true;
                Ok(false)
            }
            Ok(_) => Ok(true),
            Err(Fault::Exhausted) => Err(Fault::Exhausted),
            Err(error) => {
                self.error.get_or_insert(error);
                Ok(true)
            }
        }
    }

    /// Adds entries; a duplicate key is an error.
    pub(super) fn merge(&mut self, entries: &MapValue<'a>, meter: &Meter) -> Result<(), Fault> {
        for key in entries.keys() {
            meter.spend_value(&key)?;
            let (Some(name), Some(value)) = (key.key(), entries.get(&key)) else {
                return Fault::error("unsupported key type");
            };
            if self.map.insert(name, value).is_some() {
                return Fault::error("insert failed: key already exists");
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Evaluation<'a> {
        match self.kind {
            FoldKind::All | FoldKind::Exists => match self.error {
                Some(error) if !self.decided => Err(error),
                _ => Ok(Val::Bool(self.decided == (self.kind == FoldKind::Exists))),
            },
            FoldKind::ExistsOne => Ok(Val::Bool(self.count == 1)),
            FoldKind::Filter | FoldKind::List => Ok(Val::list(self.items)),
            FoldKind::Map | FoldKind::Entries => Ok(Val::Map(MapValue::Made(self.map.into()))),
        }
    }
}
