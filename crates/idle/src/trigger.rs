//! Whether anybody asks for a service.
