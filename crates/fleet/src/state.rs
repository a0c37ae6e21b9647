//! The provisioning states of a cluster, and who may leave which. Pure.

use std::fmt;

use crate::cloud_error::CloudError;

/// The state of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProvisioningState {
    /// It is installed.
    Creating,
    /// It is changed.
    Updating,
    /// It is maintained.
    AdminUpdating,
    /// It is deleted.
    Deleting,
    /// The last work on it succeeded.
    Succeeded,
    /// The last work on it failed.
    Failed,
    /// The last work on it was cancelled.
    Canceled,
}

use ProvisioningState::{AdminUpdating, Canceled, Creating, Deleting, Failed, Succeeded, Updating};

impl ProvisioningState {
    /// All states.
    pub const ALL: [Self; 7] = [
        Creating,
        Updating,
        AdminUpdating,
        Deleting,
        Succeeded,
        Failed,
        Canceled,
    ];

    /// The state of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Its name in documents and answers.
    pub fn name(self) -> &'static str {
        match self {
            Creating => "Creating",
            Updating => "Updating",
            AdminUpdating => "AdminUpdating",
            Deleting => "Deleting",
            Succeeded => "Succeeded",
            Failed => "Failed",
            Canceled => "Canceled",
        }
    }

    /// Whether no work is queued.
    pub fn is_terminal(self) -> bool {
        matches!(self, Succeeded | Failed | Canceled)
    }
}

impl fmt::Display for ProvisioningState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a client wants to do with a cluster that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// PUT or PATCH.
    Update,
    /// DELETE.
    Delete,
    /// Read credentials.
    ReadCredentials,
}

/// Whether a cluster in `state`, whose last failure was in `failed`, may be changed so. `operation` is
/// the one that runs, for the error.
pub fn may(
    wish: Wish,
    state: ProvisioningState,
    failed: Option<ProvisioningState>,
    operation: &str,
) -> Result<(), CloudError> {
    let refused = |message: String| CloudError::bad_request("RequestNotAllowed", "", message);
    match wish {
        Wish::ReadCredentials => match (state, failed) {
            (Creating | Deleting, _) | (Failed | Canceled, Some(Creating | Deleting)) => {
                Err(refused(format!(
                    "Request is not allowed in provisioningState '{state}'."
                )))
            }
            _ => Ok(()),
        },
        _ if !state.is_terminal() => {
            let message = format!("Request is not allowed in provisioningState '{state}'.");
            let detail = format!(
                "The operation {operation} runs on this cluster. Wait for its end, or read its status at the URL in target."
            );
            Err(refused(message).with_detail("OperationInProgress", operation, detail))
        }
        Wish::Delete => Ok(()),
        Wish::Update => match (state, failed) {
            (Failed | Canceled, Some(failed @ (Creating | Deleting))) => Err(refused(format!(
                "Request is not allowed on cluster whose {} failed. Delete the cluster.",
                if failed == Creating {
                    "creation"
                } else {
                    "deletion"
                }
            ))),
            _ => Ok(()),
        },
    }
}

/// How work on a cluster ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkResult {
    /// All steps are done.
    Done,
    /// A step failed for good.
    Failed,
    /// It was cancelled.
    Canceled,
}

/// The states after work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AfterWork {
    /// The state of the cluster.
    pub state: ProvisioningState,
    /// The state in which work failed last.
    pub failed: Option<ProvisioningState>,
    /// The state of the operation.
    pub operation: ProvisioningState,
    /// Whether the document is deleted.
    pub delete: bool,
}

/// The states after work in `state` that ended with `result`. A maintenance does not change the state
/// that users see: it returns to `last`.
pub fn after_work(
    state: ProvisioningState,
    last: Option<ProvisioningState>,
    failed: Option<ProvisioningState>,
    result: &WorkResult,
) -> AfterWork {
    let operation = match result {
        WorkResult::Done => Succeeded,
        WorkResult::Failed => Failed,
        WorkResult::Canceled => Canceled,
    };
    let is_done = *result == WorkResult::Done;
    if state == AdminUpdating {
        return AfterWork {
            state: last.filter(|last| last.is_terminal()).unwrap_or(operation),
            failed: if is_done {
                failed
            } else {
                failed.or(Some(AdminUpdating))
            },
            operation,
            delete: false,
        };
    }
    AfterWork {
        state: operation,
        failed: (!is_done).then_some(state),
        operation,
        delete: is_done && state == Deleting,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn state() -> impl Strategy<Value = ProvisioningState> {
        prop::sample::select(ProvisioningState::ALL.to_vec())
    }

    proptest! {
        #[test]
        fn work_always_ends_in_a_state_that_clients_can_leave(
            state in state(),
            last in prop::option::of(state()),
            failed in prop::option::of(state()),
            result in prop::sample::select(vec![WorkResult::Done, WorkResult::Failed, WorkResult::Canceled]),
        ) {
            let after = after_work(state, last, failed, &result);
            prop_assert!(after.state.is_terminal());
            prop_assert!(after.operation.is_terminal());
            prop_assert!(may(Wish::Delete, after.state, after.failed, "").is_ok());
            prop_assert_eq!(after.delete, state == Deleting && result == WorkResult::Done);
        }

        #[test]
        fn a_cluster_in_work_is_changed_by_nobody_else(state in state(), failed in prop::option::of(state())) {
            prop_assume!(!state.is_terminal());
            for wish in [Wish::Update, Wish::Delete] {
                let error = may(wish, state, failed, "op-7").unwrap_err();
                prop_assert_eq!(&error.code, "RequestNotAllowed");
                prop_assert_eq!(&error.details[0].target, "op-7");
            }
        }
    }

    #[test]
    fn what_failed_to_be_created_can_only_be_deleted() {
        for failed in [Creating, Deleting] {
            may(Wish::Update, Failed, Some(failed), "").unwrap_err();
            may(Wish::Delete, Failed, Some(failed), "").unwrap();
            may(Wish::ReadCredentials, Failed, Some(failed), "").unwrap_err();
        }
        may(Wish::Update, Failed, Some(Updating), "").unwrap();
    }

    #[test]
    fn a_failed_maintenance_leaves_the_cluster_as_it_was() {
        let after = after_work(AdminUpdating, Some(Succeeded), None, &WorkResult::Failed);
        assert_eq!((after.state, after.operation), (Succeeded, Failed));
        assert_eq!(after.failed, Some(AdminUpdating));
    }
}
