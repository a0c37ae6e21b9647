//! The entries that every area may need. Those of an area are listed where they arise.

use super::{Class, Code, Entry, Retry};

/// Every entry, by code.
pub fn all() -> &'static [Entry] {
    &ENTRIES
}

const ENTRIES: [Entry; 6] = [
    Entry {
        code: Code("NT-KIT-001"),
        title: "this process does not lead",
        cause: "Several processes run the same controllers, and one of them at a time may write. Another one holds the Lease, or the Lease could not be renewed in time.",
        remedy: "Nothing, if another process leads. If none does, see whether the API server answers and whether the service account may update Leases.",
        class: Class::PlatformRetrying,
        retry: Retry::Automatic,
        http: 503,
    },
    Entry {
        code: Code("NT-KIT-002"),
        title: "an object cannot be read",
        cause: "The object is not what its kind should be, usually because its definition was changed after it was written.",
        remedy: "Correct the field that the message names, or delete the object. Until then it is left as it is; all others go on.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 422,
    },
    Entry {
        code: Code("NT-KIT-003"),
        title: "a step took longer than it may",
        cause: "Every step of an operation has a limit, and this one passed it: what it waits for hangs, is slow, or never comes.",
        remedy: "Look at what the step waits for; the timeline of the operation names it. Then run the operation again: steps that are done are not done twice.",
        class: Class::WaitingOnSomeone,
        retry: Retry::WithBackoff,
        http: 504,
    },
    Entry {
        code: Code("NT-KIT-004"),
        title: "somebody else changed the object",
        cause: "The object was changed between reading and writing it.",
        remedy: "Nothing: it is read again and decided anew. If it goes on, two controllers fight over a field; managedFields say which.",
        class: Class::PlatformRetrying,
        retry: Retry::Automatic,
        http: 409,
    },
    Entry {
        code: Code("NT-KIT-005"),
        title: "the operation was cancelled",
        cause: "Somebody asked for the operation to end. Steps that were done are not undone.",
        remedy: "Run it again when it is wanted.",
        class: Class::UserFixable,
        retry: Retry::Never,
        http: 409,
    },
    Entry {
        code: Code("NT-KIT-006"),
        title: "a reconcile failed in a way nobody foresaw",
        cause: "A bug: the code that brings this object to its state panicked. Other objects are not affected.",
        remedy: "Report it with the log line of that time. It is tried again at growing intervals meanwhile.",
        class: Class::PlatformBug,
        retry: Retry::WithBackoff,
        http: 500,
    },
];
