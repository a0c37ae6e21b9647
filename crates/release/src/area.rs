//! What `release` registers with the program: error codes, definitions, how releases and streams are summed up
//! and judged, what its processes may do, and its metrics.

mod codes;
mod judge;
#[cfg(test)]
mod rights;
mod superseded;

pub use self::superseded::Superseded;
use kube::CustomResourceExt;
use neap_kit::area::{Area, AreaKind, Metric, ResourceType, Right, Role, RoleScope};

use crate::{api::release_payload_definition, image_stream::api::ImageStream};

/// How ReleasePayloads are called and where they are.
pub const RELEASE_PAYLOAD: ResourceType = ResourceType::namespaced(
    "ReleasePayload",
    "release.openshift.io/v1alpha1",
    "releasepayloads",
);
/// How ImageStreams are called and where they are.
pub const IMAGE_STREAM: ResourceType =
    ResourceType::namespaced("ImageStream", "image.openshift.io/v1", "imagestreams");

/// Reading of one kind by watches, and of single objects.
const READ: &[&str] = &["get", "list", "watch"];
/// Reading of one kind by watches.
const WATCH: &[&str] = &["list", "watch"];

/// The registration of this area.
pub const AREA: Area = Area {
    codes: codes::ENTRIES,
    definitions: || vec![release_payload_definition(), ImageStream::crd()],
    roles: &[
        Role {
            name: "neap-release-controller",
            scope: RoleScope::Cluster,
            account: "neap-release-controller",
            rights: &[
                Right::new(
                    "image.openshift.io",
                    &["imagestreams"],
                    &["get", "list", "watch", "create", "patch", "delete"],
                ),
                Right::new(
                    "release.openshift.io",
                    &["releasepayloads"],
                    &["list", "watch", "create", "patch", "delete"],
                ),
                Right::new(
                    "batch",
                    &["jobs"],
                    &["list", "watch", "create", "patch", "delete"],
                ),
                Right::new("prow.k8s.io", &["prowjobs"], &["list", "watch", "create"]),
                Right::new("", &["events"], &["create", "update", "get"]),
                Right::new("", &["configmaps"], &["get"]),
                // Keys of run tokens, results of upgrades, and pull secrets.
                Right::new("", &["secrets"], &["get", "list", "create", "update"]),
            ],
        },
        Role {
            name: "neap-release-payloads",
            scope: RoleScope::Cluster,
            account: "neap-release-payloads",
            rights: &[
                Right::new("release.openshift.io", &["releasepayloads"], WATCH),
                Right::new(
                    "release.openshift.io",
                    &["releasepayloads/status"],
                    &["update"],
                ),
                Right::new("batch", &["jobs"], WATCH),
                Right::new("prow.k8s.io", &["prowjobs"], WATCH),
                Right::new("image.openshift.io", &["imagestreams"], &["get"]),
                Right::new("", &["pods"], &["list"]),
                Right::new("", &["events"], &["create", "update", "get"]),
                Right::new("", &["secrets"], &["get"]),
            ],
        },
        Role {
            name: "neap-release-leader",
            scope: RoleScope::OwnNamespace,
            account: "neap-release-controller",
            rights: &[Right::new(
                "coordination.k8s.io",
                &["leases"],
                &["get", "create", "update", "list", "watch"],
            )],
        },
        Role {
            name: "neap-release-payloads-leader",
            scope: RoleScope::OwnNamespace,
            account: "neap-release-payloads",
            rights: &[Right::new(
                "coordination.k8s.io",
                &["leases"],
                &["get", "create", "update", "list", "watch"],
            )],
        },
        Role {
            name: "neap-release-imports",
            scope: RoleScope::Cluster,
            account: "neap-release-imports",
            rights: &[
                Right::new("image.openshift.io", &["imagestreams"], READ),
                Right::new("image.openshift.io", &["imagestreams/status"], &["update"]),
                Right::new("", &["secrets"], &["list"]),
                Right::new("", &["events"], &["create", "update", "get"]),
            ],
        },
        Role {
            name: "neap-release-imports-leader",
            scope: RoleScope::OwnNamespace,
            account: "neap-release-imports",
            rights: &[Right::new(
                "coordination.k8s.io",
                &["leases"],
                &["get", "create", "update", "list", "watch"],
            )],
        },
        // For plain Kubernetes and for OpenShift, where the second rule is used and the third is not.
        Role {
            name: "neap-release-reimport",
            scope: RoleScope::Cluster,
            account: "neap-release-reimport",
            rights: &[
                Right::new("image.openshift.io", &["imagestreams"], &["list"]),
                Right::new("image.openshift.io", &["imagestreamimports"], &["create"]),
                Right::new("image.openshift.io", &["imagestreams"], &["patch"]),
            ],
        },
        Role {
            name: "neap-release-mirror-cleanup",
            scope: RoleScope::Cluster,
            account: "neap-release-mirror-cleanup",
            rights: &[
                Right::new("image.openshift.io", &["imagestreams"], &["list"]),
                Right::new("", &["secrets"], &["get"]),
            ],
        },
    ],
    kinds: &[
        AreaKind {
            resource: RELEASE_PAYLOAD,
            title: "Release payloads",
            key: "releasePayloads",
            summary: judge::payload_summary,
            assess: judge::payload,
            related: &[],
        },
        AreaKind {
            resource: IMAGE_STREAM,
            title: "Image streams",
            key: "imageStreams",
            summary: judge::stream_summary,
            assess: judge::stream,
            related: &[],
        },
    ],
    metrics: &[
        Metric {
            name: "neaptide_release_payloads",
            help: "ReleasePayloads by phase",
        },
        Metric {
            name: "neaptide_release_payloads_stuck",
            help: "ReleasePayloads that have had no verdict for longer than their deadline",
        },
        Metric {
            name: "neaptide_release_payloads_unproved",
            help: "ReleasePayloads whose runs cannot be proved because their key is missing",
        },
        Metric {
            name: "neaptide_release_shadow_differences",
            help: "Verdicts of another controller that this one would give differently",
        },
        Metric {
            name: "neaptide_release_stream_staleness_seconds",
            help: "Time since the newest accepted release was cut, or since the stream was made",
        },
        Metric {
            name: "release_controller_release_upgrade_graph_save_error",
            help: "Whether the results of upgrades could not be stored",
        },
        Metric {
            name: "neaptide_release_time_to_verdict_seconds",
            help: "Time from the creation of a payload to its first verdict",
        },
        Metric {
            name: "neaptide_release_image_imports_total",
            help: "Imports of image stream tags by result: Imported, or the reason of the failure",
        },
        Metric {
            name: "neaptide_release_image_import_requests_total",
            help: "Requests that imports sent to registries and their token services",
        },
        Metric {
            name: "neaptide_release_image_stream_tags",
            help: "Tags of image streams that are watched",
        },
        Metric {
            name: "neaptide_release_image_stream_tags_failing",
            help: "Tags of image streams whose last import failed",
        },
    ],
    ..Area::new("release", "releases")
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registration_is_complete() {
        assert_eq!(AREA.problems(), [""; 0]);
    }

    #[test]
    fn the_definition_of_payloads_is_that_of_the_original_and_columns() {
        let definition = serde_json::to_value(release_payload_definition()).unwrap();
        let version = &definition["spec"]["versions"][0];
        let schema = &version["schema"]["openAPIV3Schema"]["properties"];
        assert_eq!(
            schema["spec"]["properties"]["payloadType"]["default"],
            "Local"
        );
        let source = &schema["spec"]["properties"]["payloadVerificationConfig"]["properties"]["payloadVerificationDataSource"];
        assert_eq!(source["default"], "BuildFarmLookup");
        assert_eq!(
            source["x-kubernetes-validations"][0]["rule"],
            "self == oldSelf"
        );
        let text = schema.to_string();
        assert_eq!(
            text.matches("\"default\"").count(),
            2,
            "nothing else is filled in"
        );
        let conditions = &schema["status"]["properties"]["conditions"]["items"]["required"];
        assert_eq!(conditions.as_array().unwrap().len(), 5);
        assert_eq!(
            text.matches("\"required\"").count(),
            1,
            "only conditions have required fields"
        );
        assert_eq!(definition["spec"]["names"]["shortNames"][0], "rp");
        assert_eq!(version["additionalPrinterColumns"][0]["name"], "Stream");
    }
}
