//! Names, labels and ports: the contract of the operator.

/// The namespace of a farm in the documentation and the examples.
pub const NAMESPACE: &str = "buildbarn";
/// The namespace of the operator.
pub const OPERATOR_NAMESPACE: &str = "buildbarn-system";
/// The label that groups the five kinds of a namespace into farms; one farm per namespace without it.
pub const FARM_LABEL: &str = "buildbarn.io/farm";
/// On pods: which of the five programs it runs.
pub const APP_LABEL: &str = "app";
/// On pods: the name of the custom resource.
pub const COMPONENT_LABEL: &str = "component";
/// On pods of workers: the instance of the pool.
pub const INSTANCE_LABEL: &str = "instance";
/// On all objects of a farm, so that they can be found.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY_LABEL`].
pub const MANAGER: &str = "buildbarn-operator";
/// On a workload and its pods: the hash of everything that a roll-out changes.
pub const ANNOTATION_REVISION: &str = "buildbarn.io/revision";

/// On the Deployment of a pool: the queue in which its workers are, and its scheduler.
pub const ANNOTATION_QUEUE: &str = "buildbarn.io/queue";

/// The ports of the programs.
pub mod ports {
    /// Bazel, at the frontend.
    pub const FRONTEND: u16 = 8980;
    /// Frontend, workers, scheduler and browser, at the storage.
    pub const STORAGE: u16 = 8981;
    /// The frontend, at the scheduler.
    pub const SCHEDULER_CLIENT: u16 = 8982;
    /// Workers, at the scheduler.
    pub const SCHEDULER_WORKER: u16 = 8983;
    /// The state of the build queue, at the scheduler.
    pub const BUILD_QUEUE_STATE: u16 = 8984;
    /// The web page of the scheduler.
    pub const SCHEDULER_HTTP: u16 = 7982;
    /// The browser.
    pub const BROWSER: u16 = 7984;
    /// Health and metrics of every program.
    pub const DIAGNOSTICS: u16 = 9980;
    /// Health and metrics of the runner, which shares the network of its worker.
    pub const RUNNER_DIAGNOSTICS: u16 = 9981;
}
