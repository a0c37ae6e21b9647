//! Errors of the release controllers and of the commands about releases.

use neap_kit::why::{CatalogueEntry, Class, Code, Retry};

pub(super) const ENTRIES: &[CatalogueEntry] = &[
    CatalogueEntry {
        code: Code("NT-RELEASE-0001"),
        title: "a release configuration is not valid",
        cause: "A file, an annotation or a ConfigMap with the configuration of a stream has fields that are wrong, or is too large.",
        remedy: "Correct the named fields; neap release validate DIR checks all files of a directory.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 422,
    },
    CatalogueEntry {
        code: Code("NT-RELEASE-0002"),
        title: "there is no such stream or release",
        cause: "No ImageStream of the namespaces has a release configuration of this name, or there is no ReleasePayload of this name.",
        remedy: "List what there is with neap release streams and neap release list.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 404,
    },
    CatalogueEntry {
        code: Code("NT-RELEASE-0003"),
        title: "the cluster has no releases",
        cause: "The server does not have the kinds ReleasePayload and ImageStream: the release controllers are not installed.",
        remedy: "Install deploy/release in the cluster, or try it in `neap up`, which includes it.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 404,
    },
    CatalogueEntry {
        code: Code("NT-RELEASE-0004"),
        title: "a decision about a release needs a reason",
        cause: "Accepting, rejecting or pausing overrides what jobs have decided, and others have to understand it later.",
        remedy: "Repeat the command with the flag --reason and a sentence for the others.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 422,
    },
    CatalogueEntry {
        code: Code("NT-RELEASE-0005"),
        title: "a release controller cannot be set up",
        cause: "Its options or files cannot be used, or its watches stopped before they started.",
        remedy: "Correct what the message names. Nothing was started, and releases stay as they are.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 422,
    },
    CatalogueEntry {
        code: Code("NT-RELEASE-0006"),
        title: "a verdict does not follow from its facts",
        cause: "The status of the ReleasePayload was edited, or another controller wrote it.",
        remedy: "Compare the differences that neap release replay prints. The payload controller corrects a status that it finds different.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 409,
    },
];
