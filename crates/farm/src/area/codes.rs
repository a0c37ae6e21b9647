//! Errors of build farms.

use neap_kit::why::{CatalogueEntry, Class, Code, Retry};

pub(super) const ENTRIES: &[CatalogueEntry] = &[
    CatalogueEntry {
        code: Code("NT-FARM-0001"),
        title: "the operator of build farms cannot be set up",
        cause: "Its parts do not fit together: the timings of the election are not valid, or the watches stopped before they started.",
        remedy: "This is a bug: please report it with the log. Farms stay as they are.",
        class: Class::PlatformBug,
        retry: Retry::WithBackoff,
        http: 500,
    },
    CatalogueEntry {
        code: Code("NT-FARM-0002"),
        title: "an address of the operator of build farms is not valid or in use",
        cause: "--metrics-bind-address or --health-probe-bind-address is no address such as :8080, or another process listens there.",
        remedy: "Give another address, or 0 for none.",
        class: Class::UserFixable,
        retry: Retry::WithBackoff,
        http: 409,
    },
    CatalogueEntry {
        code: Code("NT-FARM-0003"),
        title: "there is no such farm or pool",
        cause: "No custom resource of a build farm has this name in this namespace.",
        remedy: "List the farms with neap farm list -A, and the pools with neap farm pools -A.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 404,
    },
    CatalogueEntry {
        code: Code("NT-FARM-0004"),
        title: "the scheduler does not answer",
        cause: "The port 8984 of the scheduler's Service cannot be reached: the scheduler does not run, or a network policy keeps this machine out.",
        remedy: "See neap explain buildbarnscheduler/NAME. From outside of the cluster, forward the port and pass --scheduler HOST:PORT.",
        class: Class::UserFixable,
        retry: Retry::WithBackoff,
        http: 503,
    },
    CatalogueEntry {
        code: Code("NT-FARM-0005"),
        title: "the scheduler refuses",
        cause: "The authorizers in its configuration do not allow the call, or it does not know the queue.",
        remedy: "Check modifyDrainsAuthorizer in the scheduler's configuration, and the platform properties of the pool.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 403,
    },
    CatalogueEntry {
        code: Code("NT-FARM-0006"),
        title: "build farms are not installed in this cluster",
        cause: "The server does not serve the kinds of build farms.",
        remedy: "Install deploy/farm in the cluster, or try it in `neap up`, which includes it.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 404,
    },
    CatalogueEntry {
        code: Code("NT-FARM-0007"),
        title: "a configuration cannot be evaluated",
        cause: "The process that evaluates Jsonnet could not read its request, limit itself, or write its answer.",
        remedy: "This is an internal command. If the operator reports this, file a bug with its log.",
        class: Class::PlatformBug,
        retry: Retry::Never,
        http: 500,
    },
];
