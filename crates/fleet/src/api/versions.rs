//! The API versions and their fields.

use super::fields::{
    Field,
    Kind::{Boolean, Integer, List, Map, Object, Secret, Text, TextList, TextMap},
};

/// An API version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApiVersion {
    /// Its name, as in `api-version=`.
    pub name: &'static str,
    /// The fields of a cluster.
    pub fields: &'static [Field],
    /// Whether clusters may use workload identities.
    pub identities: bool,
    /// The sub-profiles that must be present.
    pub required: &'static [&'static str],
    /// Whether it is for administrators.
    pub admin: bool,
    /// Whether role sets are served.
    pub role_sets: bool,
}

const SYSTEM_DATA: &[Field] = &[
    Field::read_only("createdBy", Text),
    Field::read_only("createdByType", Text),
    Field::read_only("createdAt", Text),
    Field::read_only("lastModifiedBy", Text),
    Field::read_only("lastModifiedByType", Text),
    Field::read_only("lastModifiedAt", Text),
];

const CONSOLE: &[Field] = &[Field::read_only("url", Text)];

const SERVICE_PRINCIPAL: &[Field] = &[
    Field::mutable("clientId", Text),
    Field::mutable("clientSecret", Secret),
];

const LOAD_BALANCER: &[Field] = &[
    Field::mutable(
        "managedOutboundIps",
        Object(&[Field::mutable("count", Integer)]),
    ),
    Field::read_only(
        "effectiveOutboundIps",
        List(&[Field::read_only("id", Text)]),
    ),
];

const NETWORK: &[Field] = &[
    Field::fixed("podCidr", Text),
    Field::fixed("serviceCidr", Text),
    Field::fixed("outboundType", Text),
    Field::fixed("loadBalancerProfile", Object(LOAD_BALANCER)),
    Field::fixed("preconfiguredNSG", Text),
];

const MASTER: &[Field] = &[
    Field::fixed("vmSize", Text),
    Field::fixed("subnetId", Text),
    Field::fixed("encryptionAtHost", Text),
    Field::fixed("diskEncryptionSetId", Text),
];

const WORKER: &[Field] = &[
    Field::fixed("name", Text),
    Field::fixed("vmSize", Text),
    Field::fixed("diskSizeGB", Integer),
    Field::fixed("subnetId", Text),
    Field::fixed("count", Integer),
    Field::fixed("encryptionAtHost", Text),
    Field::fixed("diskEncryptionSetId", Text),
];

const WORKER_STATUS: &[Field] = &[
    Field::read_only("name", Text),
    Field::read_only("vmSize", Text),
    Field::read_only("diskSizeGB", Integer),
    Field::read_only("subnetId", Text),
    Field::read_only("count", Integer),
    Field::read_only("encryptionAtHost", Text),
    Field::read_only("diskEncryptionSetId", Text),
];

const API_SERVER: &[Field] = &[
    Field::fixed("visibility", Text),
    Field::read_only("url", Text),
    Field::read_only("ip", Text),
];

const INGRESS: &[Field] = &[
    Field::fixed("name", Text),
    Field::fixed("visibility", Text),
    Field::read_only("ip", Text),
];

const CLUSTER_2023_11_22: &[Field] = &[
    Field::fixed("pullSecret", Secret),
    Field::fixed("domain", Text),
    Field::fixed("version", Text),
    Field::any_case("resourceGroupId"),
    Field::fixed("fipsValidatedModules", Text),
];

const CLUSTER_2025_07_25: &[Field] = &[
    Field::fixed("pullSecret", Secret),
    Field::fixed("domain", Text),
    Field::fixed("version", Text),
    Field::any_case("resourceGroupId"),
    Field::fixed("fipsValidatedModules", Text),
    Field::read_only("oidcIssuer", Text),
];

const PLATFORM_IDENTITIES: &[Field] = &[
    Field::mutable("upgradeableTo", Text),
    Field::mutable(
        "platformWorkloadIdentities",
        Map(&[
            Field::mutable("resourceId", Text),
            Field::read_only("clientId", Text),
            Field::read_only("objectId", Text),
        ]),
    ),
];

const IDENTITY: &[Field] = &[
    Field::fixed("type", Text),
    Field::read_only("principalId", Text),
    Field::read_only("tenantId", Text),
    Field::mutable(
        "userAssignedIdentities",
        Map(&[
            Field::read_only("clientId", Text),
            Field::read_only("principalId", Text),
        ]),
    ),
];

const PROPERTIES_2023_11_22: &[Field] = &[
    Field::read_only("provisioningState", Text),
    Field::fixed("clusterProfile", Object(CLUSTER_2023_11_22)),
    Field::fixed("consoleProfile", Object(CONSOLE)),
    Field::fixed("servicePrincipalProfile", Object(SERVICE_PRINCIPAL)),
    Field::fixed("networkProfile", Object(NETWORK)),
    Field::fixed("masterProfile", Object(MASTER)),
    Field::fixed("workerProfiles", List(WORKER)),
    Field::read_only("workerProfilesStatus", List(WORKER_STATUS)),
    Field::fixed("apiserverProfile", Object(API_SERVER)),
    Field::fixed("ingressProfiles", List(INGRESS)),
];

const PROPERTIES_2025_07_25: &[Field] = &[
    Field::read_only("provisioningState", Text),
    Field::fixed("clusterProfile", Object(CLUSTER_2025_07_25)),
    Field::fixed("consoleProfile", Object(CONSOLE)),
    Field::fixed("servicePrincipalProfile", Object(SERVICE_PRINCIPAL)),
    Field::fixed(
        "platformWorkloadIdentityProfile",
        Object(PLATFORM_IDENTITIES),
    ),
    Field::fixed("networkProfile", Object(NETWORK)),
    Field::fixed("masterProfile", Object(MASTER)),
    Field::fixed("workerProfiles", List(WORKER)),
    Field::read_only("workerProfilesStatus", List(WORKER_STATUS)),
    Field::fixed("apiserverProfile", Object(API_SERVER)),
    Field::fixed("ingressProfiles", List(INGRESS)),
];

/// What an administrator sees besides; most of it is set by the provider.
const PROPERTIES_ADMIN: &[Field] = &[
    Field::read_only("architectureVersion", Integer),
    Field::read_only("provisioningState", Text),
    Field::read_only("lastProvisioningState", Text),
    Field::read_only("failedProvisioningState", Text),
    Field::read_only("lastAdminUpdateError", Text),
    Field::mutable("maintenanceTask", Text),
    Field::read_only("maintenanceState", Text),
    Field::mutable("operatorFlags", TextMap),
    Field::mutable("operatorFlagsMergeStrategy", Text),
    Field::mutable("operatorVersion", Text),
    Field::read_only("zones", TextList),
    Field::read_only("createdAt", Text),
    Field::read_only("createdBy", Text),
    Field::read_only("provisionedBy", Text),
    Field::fixed(
        "clusterProfile",
        Object(&[
            Field::fixed("domain", Text),
            Field::fixed("version", Text),
            Field::any_case("resourceGroupId"),
            Field::fixed("fipsValidatedModules", Text),
            Field::read_only("oidcIssuer", Text),
        ]),
    ),
    Field::fixed(
        "featureProfile",
        Object(&[Field::mutable("gatewayEnabled", Boolean)]),
    ),
    Field::fixed("consoleProfile", Object(CONSOLE)),
    Field::fixed(
        "servicePrincipalProfile",
        Object(&[
            Field::fixed("clientId", Text),
            Field::read_only("spObjectId", Text),
        ]),
    ),
    Field::fixed(
        "platformWorkloadIdentityProfile",
        Object(PLATFORM_IDENTITIES),
    ),
    Field::fixed(
        "networkProfile",
        Object(&[
            Field::fixed("podCidr", Text),
            Field::fixed("serviceCidr", Text),
            Field::read_only("softwareDefinedNetwork", Text),
            Field::read_only("mtuSize", Integer),
            Field::mutable("outboundType", Text),
            Field::fixed("loadBalancerProfile", Object(LOAD_BALANCER)),
            Field::fixed("preconfiguredNSG", Text),
            Field::read_only("privateEndpointIp", Text),
            Field::read_only("gatewayPrivateEndpointIp", Text),
            Field::read_only("gatewayPrivateLinkId", Text),
        ]),
    ),
    Field::fixed("masterProfile", Object(MASTER)),
    Field::fixed("workerProfiles", List(WORKER)),
    Field::read_only("workerProfilesStatus", List(WORKER_STATUS)),
    Field::fixed(
        "apiserverProfile",
        Object(&[
            Field::fixed("visibility", Text),
            Field::read_only("url", Text),
            Field::read_only("ip", Text),
            Field::read_only("intIp", Text),
        ]),
    ),
    Field::fixed("ingressProfiles", List(INGRESS)),
    Field::read_only(
        "install",
        Object(&[
            Field::read_only("now", Text),
            Field::read_only("phase", Text),
        ]),
    ),
    Field::read_only("storageSuffix", Text),
    Field::read_only("imageRegistryStorageAccountName", Text),
    Field::read_only("infraId", Text),
    Field::read_only(
        "hiveProfile",
        Object(&[
            Field::read_only("namespace", Text),
            Field::read_only("createdByHive", Boolean),
        ]),
    ),
];

const RESOURCE_2023_11_22: &[Field] = &[
    Field::any_case("id"),
    Field::any_case("name"),
    Field::any_case("type"),
    Field::fixed("location", Text),
    Field::read_only("systemData", Object(SYSTEM_DATA)),
    Field::mutable("tags", TextMap),
    Field::fixed("properties", Object(PROPERTIES_2023_11_22)),
];

const RESOURCE_2025_07_25: &[Field] = &[
    Field::any_case("id"),
    Field::any_case("name"),
    Field::any_case("type"),
    Field::fixed("location", Text),
    Field::read_only("systemData", Object(SYSTEM_DATA)),
    Field::mutable("tags", TextMap),
    Field::fixed("identity", Object(IDENTITY)).stored_as("managedServiceIdentity"),
    Field::fixed("properties", Object(PROPERTIES_2025_07_25)),
];

const RESOURCE_ADMIN: &[Field] = &[
    Field::any_case("id"),
    Field::any_case("name"),
    Field::any_case("type"),
    Field::fixed("location", Text),
    Field::read_only("systemData", Object(SYSTEM_DATA)),
    Field::fixed("tags", TextMap),
    Field::fixed("identity", Object(IDENTITY)).stored_as("managedServiceIdentity"),
    Field::fixed("properties", Object(PROPERTIES_ADMIN)),
];

/// The version for administrators.
pub const ADMIN: ApiVersion = ApiVersion {
    name: "admin",
    fields: RESOURCE_ADMIN,
    identities: true,
    required: &[],
    admin: true,
    role_sets: true,
};

const VERSIONS: [ApiVersion; 3] = [
    ApiVersion {
        name: "2023-11-22",
        fields: RESOURCE_2023_11_22,
        identities: false,
        required: &[],
        admin: false,
        role_sets: false,
    },
    ApiVersion {
        name: "2025-07-25",
        fields: RESOURCE_2025_07_25,
        identities: true,
        required: &[
            "clusterProfile",
            "networkProfile",
            "masterProfile",
            "apiserverProfile",
        ],
        admin: false,
        role_sets: true,
    },
    ADMIN,
];

/// The version of this name.
pub fn find(name: &str) -> Option<&'static ApiVersion> {
    VERSIONS.iter().find(|version| version.name == name)
}

/// The names of the versions, oldest first.
pub fn names() -> impl Iterator<Item = &'static str> {
    VERSIONS.iter().map(|version| version.name)
}
