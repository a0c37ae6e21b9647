//! The process that answers for services that sleep, and wakes them.
