//! The five custom resources of a farm, as users see them. No I/O.
//!
//! The fields, ports, names and labels are those of the Buildbarn operator; fields that it does not have are
//! added, and none is changed. All defaults are here, and none in the definitions, so that an object shows
//! what its user wrote.

mod access;
mod browser;
mod definitions;
mod frontend;
mod names;
mod pod_options;
mod quantity;
mod scheduler;
mod schemas;
mod status;
mod storage;
mod worker;

pub use self::{
    access::{Access, Authentication, Authorizer, ConfigMapKey, Tls},
    browser::{BuildbarnBrowser, BuildbarnBrowserSpec},
    definitions::definitions,
    frontend::{BuildbarnFrontend, BuildbarnFrontendSpec},
    names::{
        ANNOTATION_QUEUE, ANNOTATION_REVISION, APP_LABEL, COMPONENT_LABEL, FARM_LABEL,
        INSTANCE_LABEL, MANAGED_BY_LABEL, MANAGER, NAMESPACE, OPERATOR_NAMESPACE, ports,
    },
    pod_options::{IngressOptions, ListenOn, PodOptions},
    quantity::parse_quantity,
    scheduler::{BuildbarnScheduler, BuildbarnSchedulerSpec, Execution, PredeclaredQueue},
    schemas::{MAX_PODS, MAX_SHARDS},
    status::{
        ComponentStatus, DrainStatus, ReshardingStage, ReshardingStatus, RolloutStatus, State,
        StoragePlanStatus, StorageStatus,
    },
    storage::{
        BuildbarnStorage, BuildbarnStorageSpec, Resharding, Shard, Store, StoreGeometry, Stores,
    },
    worker::{BuildbarnWorker, BuildbarnWorkerSpec, DrainOptions, PlatformProperty},
};
