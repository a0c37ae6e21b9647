//! What the operator and the resolvers of sleeping services may refuse or fail with.

use super::super::{Class, Code, Entry, Retry};

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        code: Code("NT-IDLE-0001"),
        title: "a variable is not set",
        cause: "The operator and the resolvers of sleeping services are told by variables where they are, and one that is needed is absent or empty.",
        remedy: "Set the variable that is named in the Deployment; the manifests in deploy/idle set all of them.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 422,
    },
    Entry {
        code: Code("NT-IDLE-0002"),
        title: "a variable or flag cannot be meant so",
        cause: "A variable or flag of the operator or the resolvers has a value that cannot be read.",
        remedy: "Set it to what the message says. Nothing was started, and services stay as they are.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 422,
    },
    Entry {
        code: Code("NT-IDLE-0003"),
        title: "there is no such flag",
        cause: "The operator was started with a flag that it does not know.",
        remedy: "Correct or remove the flag in the arguments of the Deployment.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 422,
    },
];
