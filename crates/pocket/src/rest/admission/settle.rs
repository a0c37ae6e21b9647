//! The last steps before the store: rules that depend on other objects, and validating admission.
//!
//! Writes of some resources are serialized, because they allocate something. Their turn is not held
//! while webhooks respond: the webhooks are shown what was allocated, and it is allocated for good
//! in a second pass when they have agreed.

use serde_json::Value;

use super::AdmissionWrite;
use crate::{
    admission::Phase,
    patch::managed,
    rest::{
        Machine, Turn,
        create::admitted_first,
        update::{ObjectPart, merge},
    },
    status::Result,
};

/// Attempts that may lose to a concurrent write before the turn is held while webhooks respond.
const MAX_OPEN_ATTEMPTS: usize = 3;

/// The turns that a write holds until it is stored: at the resource, and at the quotas of the
/// namespace.
pub(in crate::rest) struct HeldTurns {
    _turn: Option<Turn>,
    _quota: Option<Turn>,
}

impl Machine {
    /// Completes the object and runs validating admission. The returned turns must be held until
    /// the object is stored.
    pub(in crate::rest) async fn settle(
        &self,
        change: AdmissionWrite<'_>,
        value: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<HeldTurns> {
        let turn = self.settle_turn(change, value, warnings).await?;
        let quota = self.charge(change, value).await?;
        Ok(HeldTurns {
            _turn: turn,
            _quota: quota,
        })
    }

    async fn settle_turn(
        &self,
        change: AdmissionWrite<'_>,
        value: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Turn>> {
        let contended = change.part == ObjectPart::Main && change.served.traits().exclusive;
        if contended && self.calls_webhooks(change, Phase::Validating) {
            for _ in 0..MAX_OPEN_ATTEMPTS {
                if let Some(turn) = self.settle_openly(change, value, warnings).await? {
                    return Ok(Some(turn));
                }
            }
        }
        let turn = match change.part {
            ObjectPart::Main => self.turn(change.served).await,
            ObjectPart::Status | ObjectPart::Other(_) => None,
        };
        self.finish(change, value, warnings).await?;
        self.confirm(change, value, warnings).await?;
        Ok(turn)
    }

    /// One attempt that releases the turn while webhooks respond; `None` if a concurrent write took
    /// what they were shown.
    async fn settle_openly(
        &self,
        change: AdmissionWrite<'_>,
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

    /// Applies the rules that depend on other objects, and removes what does not fit the stored
    /// version.
    async fn finish(
        &self,
        change: AdmissionWrite<'_>,
        value: &mut Value,
        warnings: &mut Vec<String>,
    ) -> Result<()> {
        if change.part == ObjectPart::Main {
            let is_dry_run = change.request.dry_run()?;
            self.admit(change.served, value, change.old, is_dry_run)
                .await?;
            if admitted_first(change) {
                self.prepare_and_validate(change, value, warnings)?;
            }
            // A dry run shows a definition before its names are accepted.
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
