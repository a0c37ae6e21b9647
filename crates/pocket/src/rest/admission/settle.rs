//! The last steps before the store: what depends on other objects, and who may still refuse.
//!
//! Some resources are written one at a time, because they hand something out. Their turn is not
//! held while webhooks answer: what was handed out is shown to them, and taken for good in a second
//! look when they have agreed.

use serde_json::Value;

use super::Change;
use crate::{
    admission::Phase,
    patch::managed,
    rest::{
        Machine, Turn,
        create::admitted_first,
        update::{Part, merge},
    },
    status::Result,
};

/// How often somebody else may be faster before the turn is held while webhooks answer.
const ATTEMPTS: usize = 3;

/// What the writer of an object holds until it is stored: its turn at the resource, and at the
/// quotas of the namespace.
pub(in crate::rest) struct Held {
    _turn: Option<Turn>,
    _quota: Option<Turn>,
}

impl Machine {
    /// Brings the object into its last form and lets admission confirm it. What is returned must
    /// be held until the object is stored.
    pub(in crate::rest) async fn settle(
        &self,
        change: Change<'_>,
        value: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<Held> {
        let turn = self.settle_turn(change, value, warnings).await?;
        let quota = self.charge(change, value).await?;
        Ok(Held {
            _turn: turn,
            _quota: quota,
        })
    }

    async fn settle_turn(
        &self,
        change: Change<'_>,
        value: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Turn>> {
        let contended = change.part == Part::Main && change.served.traits().exclusive;
        if contended && self.asks(change, Phase::Validating) {
            for _ in 0..ATTEMPTS {
                if let Some(turn) = self.settle_openly(change, value, warnings).await? {
                    return Ok(Some(turn));
                }
            }
        }
        let turn = match change.part {
            Part::Main => self.turn(change.served).await,
            Part::Status | Part::Other(_) => None,
        };
        self.finish(change, value, warnings).await?;
        self.confirm(change, value, warnings).await?;
        Ok(turn)
    }

    /// One try that leaves the turn to others while webhooks answer; `None` if somebody took
    /// meanwhile what they were shown.
    async fn settle_openly(
        &self,
        change: Change<'_>,
        value: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Turn>> {
        let mut shown = value.clone();
        let mut told = Vec::new();
        {
            let _turn = self.turn(change.served).await;
            self.finish(change, &mut shown, &mut told).await?;
        }
        self.confirm(change, &shown, &mut told).await?;
        let turn = self.turn(change.served).await;
        let mut again = shown.clone();
        let mut repeated = Vec::new();
        let finished = self.finish(change, &mut again, &mut repeated).await;
        if finished.is_err() || again != shown {
            return Ok(None);
        }
        *warnings = merge(warnings, told);
        *value = shown;
        Ok(turn)
    }

    /// Decides what depends on other objects, and takes out what does not fit the version that is
    /// stored.
    async fn finish(
        &self,
        change: Change<'_>,
        value: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        if change.part == Part::Main {
            let is_dry_run = change.request.dry_run()?;
            self.admit(change.served, value, change.old, is_dry_run)
                .await?;
            if admitted_first(change) {
                self.judge(change, value, warnings)?;
            }
            // A definition that is not stored is shown before anybody has decided on its names.
            if change.old.is_none() && is_dry_run {
                Self::propose(change.served, value);
            } else {
                self.accept(change.served, value);
            }
        }
        change.served.fit(value);
        if let Some(old) = change.old {
            managed::keep_times(old, value);
        }
        Ok(())
    }
}
