//! The lists of steps, in the order of the original.

use std::time::Duration;

use neap_kit::operation::{RetryPolicy, Step, StepList};
use serde_json::Value;

use crate::{documents::text, state::ProvisioningState};

const NO_CLOUD: &str = "no cloud configured";
const NO_OPERATOR: &str = "the operator inside clusters is not part of this version";
const NOT_WANTED: &str = "the cluster does not ask for it";

/// The time of one attempt at a step that only writes documents or objects.
const ATTEMPT: Duration = Duration::from_mins(2);
/// How often a condition is polled.
const POLL: Duration = Duration::from_secs(2);
/// Retries of steps that write to an API: its server may be restarting.
const RETRY: RetryPolicy = RetryPolicy {
    attempts: 30,
    first: Duration::from_secs(1),
    max: Duration::from_secs(30),
};
const GIVE_UP: Duration = Duration::from_mins(10);

fn action(name: &'static str) -> Step {
    Step::retrying(name, RETRY, ATTEMPT).give_up_after(GIVE_UP)
}

fn condition(name: &'static str, minutes: u64) -> Step {
    Step::condition(name, POLL, Duration::from_mins(minutes))
}

fn cloud(name: &'static str) -> Step {
    Step::skipped(name, NO_CLOUD)
}

fn operator(name: &'static str) -> Step {
    Step::skipped(name, NO_OPERATOR)
}

fn clients() -> Step {
    action("initializeKubernetesClients").reruns()
}

/// The steps of the work that a cluster document is queued for; none if no work is.
pub fn steps_of(document: &Value) -> Option<StepList> {
    let state = text(document, "/openShiftCluster/properties/provisioningState");
    let (kind, steps) = match ProvisioningState::parse(state)? {
        ProvisioningState::Creating => (
            "install",
            [bootstrap(), remove_bootstrap(document)].concat(),
        ),
        ProvisioningState::Updating => ("update", update(document)),
        ProvisioningState::Deleting => ("delete", delete()),
        _ => return None,
    };
    Some(StepList { kind, steps })
}

fn bootstrap() -> Vec<Step> {
    vec![
        cloud("validateResources"),
        cloud("validateZones"),
        cloud("initializeClusterSPClients"),
        cloud("clusterSPObjectID"),
        cloud("ensurePreconfiguredNSG"),
        cloud("ensureACRToken"),
        action("ensureInfraID"),
        action("ensureSSHKey"),
        action("ensureStorageSuffix"),
        action("populateMTUSize"),
        cloud("createDNS"),
        cloud("createOIDC"),
        cloud("ensureResourceGroup"),
        cloud("ensureServiceEndpoints"),
        cloud("setMasterSubnetPolicies"),
        cloud("deployBaseResourceTemplate"),
        cloud("attachNSGs"),
        cloud("updateAPIIPEarly"),
        cloud("createOrUpdateRouterIPEarly"),
        cloud("ensureGatewayCreate"),
        cloud("createAPIServerPrivateEndpoint"),
        cloud("createCertificates"),
        action("hiveCreateNamespace"),
        action("runHiveInstaller"),
        condition("hiveClusterInstallationComplete", 60),
        action("generateKubeconfigs"),
        action("hiveResetCorrelationData"),
        action("ensureBillingRecord"),
        clients(),
        operator("initializeOperatorDeployer"),
        condition("apiServersReady", 30),
        operator("installAROOperator"),
        operator("enableOperatorReconciliation"),
        action("incrInstallPhase"),
    ]
}

fn remove_bootstrap(document: &Value) -> Vec<Step> {
    let has_set = !text(
        document,
        "/openShiftCluster/properties/masterProfile/diskEncryptionSetId",
    )
    .is_empty();
    let storage_class = if has_set {
        action("configureDefaultStorageClass")
    } else {
        Step::skipped("configureDefaultStorageClass", NOT_WANTED)
    };
    vec![
        clients(),
        operator("initializeOperatorDeployer"),
        cloud("removeBootstrap"),
        cloud("removeBootstrapIgnition"),
        condition("apiServersReady", 30),
        cloud("configureAPIServerCertificate"),
        condition("apiServersReady", 30),
        condition("minimumWorkerNodesReady", 30),
        condition("operatorConsoleExists", 30),
        action("updateConsoleBranding"),
        condition("operatorConsoleReady", 20),
        action("disableSamples"),
        action("disableOperatorHubSources"),
        action("disableUpdates"),
        condition("clusterVersionReady", 30),
        operator("aroDeploymentReady"),
        action("updateClusterData"),
        cloud("configureIngressCertificate"),
        condition("ingressControllerReady", 30),
        storage_class,
        operator("disableOperatorReconciliation"),
        condition("clusterOperatorsHaveSettled", 30),
        action("finishInstallation"),
    ]
}

/// Whether Hive is to take over a cluster that it did not install.
fn is_adopted(document: &Value) -> bool {
    let properties = &document["openShiftCluster"]["properties"];
    let has_kubeconfig = !properties["aroServiceKubeconfig"].is_null();
    has_kubeconfig && properties["hiveProfile"]["createdByHive"] != true
}

fn update(document: &Value) -> Vec<Step> {
    let mut steps = vec![
        cloud("validateResources"),
        cloud("fixupClusterSPObjectID"),
        cloud("createOrUpdateClusterServicePrincipalRBAC"),
        clients(),
        operator("initializeOperatorDeployer"),
        cloud("createOrUpdateDenyAssignment"),
        cloud("startVMs"),
        condition("apiServersReady", 30),
        cloud("rotateACRTokenPassword"),
        cloud("correctCertificateIssuer"),
        cloud("configureAPIServerCertificate"),
        cloud("configureIngressCertificate"),
        action("fixUserAdminKubeconfig"),
        cloud("reconcileLoadBalancerProfile"),
        action("reconcileSoftwareDefinedNetwork"),
        operator("ensureCredentialsRequest"),
        action("updateOpenShiftSecret"),
        operator("aroCredentialsRequestReconciled"),
        cloud("updateAROSecret"),
        operator("restartAROOperatorMaster"),
        operator("aroDeploymentReady"),
    ];
    if is_adopted(document) {
        steps.extend([
            action("hiveCreateNamespace"),
            action("hiveEnsureResources"),
            action("hiveResetCorrelationData"),
        ]);
    }
    steps
}

/// A deletion needs nothing that a creation may not have made.
fn delete() -> Vec<Step> {
    vec![
        cloud("ensureResourceGroup"),
        cloud("deleteDNS"),
        cloud("deletePrivateEndpoint"),
        cloud("deleteRoleAssignments"),
        cloud("deleteGateway"),
        cloud("deleteResources"),
        cloud("deleteCertificates"),
        cloud("deleteACRToken"),
        action("hiveDeleteNamespace"),
        condition("hiveNamespaceGone", 30),
        action("deleteBillingRecord"),
    ]
}
