//! The kinds that steps read and write.

use crate::cluster_api::Kind;

/// Namespaces.
pub const NAMESPACE: Kind = Kind::cluster("v1", "Namespace", "namespaces");
/// Secrets.
pub const SECRET: Kind = Kind::namespaced("v1", "Secret", "secrets");
/// Services.
pub const SERVICE: Kind = Kind::namespaced("v1", "Service", "services");
/// What Hive has applied to a cluster.
pub const CLUSTER_SYNC: Kind = Kind::namespaced(
    "hiveinternal.openshift.io/v1alpha1",
    "ClusterSync",
    "clustersyncs",
);
/// Objects that Hive applies to a cluster.
pub const SYNC_SET: Kind = Kind::namespaced("hive.openshift.io/v1", "SyncSet", "syncsets");
/// Objects that Hive applies to the clusters with a label.
pub const SELECTOR_SYNC_SET: Kind = Kind::cluster(
    "hive.openshift.io/v1",
    "SelectorSyncSet",
    "selectorsyncsets",
);
/// Nodes.
pub const NODE: Kind = Kind::cluster("v1", "Node", "nodes");
/// What Hive installs.
pub const CLUSTER_DEPLOYMENT: Kind = Kind::namespaced(
    "hive.openshift.io/v1",
    "ClusterDeployment",
    "clusterdeployments",
);
/// The version of a cluster.
pub const CLUSTER_VERSION: Kind = Kind::cluster(
    "config.openshift.io/v1",
    "ClusterVersion",
    "clusterversions",
);
/// The parts of a cluster.
pub const CLUSTER_OPERATOR: Kind = Kind::cluster(
    "config.openshift.io/v1",
    "ClusterOperator",
    "clusteroperators",
);
/// The sources of operators.
pub const OPERATOR_HUB: Kind =
    Kind::cluster("config.openshift.io/v1", "OperatorHub", "operatorhubs");
/// The console.
pub const CONSOLE: Kind = Kind::cluster("operator.openshift.io/v1", "Console", "consoles");
/// The ingress.
pub const INGRESS_CONTROLLER: Kind = Kind::namespaced(
    "operator.openshift.io/v1",
    "IngressController",
    "ingresscontrollers",
);
/// The samples.
pub const SAMPLES: Kind = Kind::cluster("samples.operator.openshift.io/v1", "Config", "configs");
/// Machines.
pub const MACHINE: Kind = Kind::namespaced("machine.openshift.io/v1beta1", "Machine", "machines");
/// Sets of machines.
pub const MACHINE_SET: Kind =
    Kind::namespaced("machine.openshift.io/v1beta1", "MachineSet", "machinesets");
/// Storage classes.
pub const STORAGE_CLASS: Kind =
    Kind::cluster("storage.k8s.io/v1", "StorageClass", "storageclasses");
