//! What runs behind a service, and who else scales it.
