//! The process that keeps services asleep while nobody asks for them.
