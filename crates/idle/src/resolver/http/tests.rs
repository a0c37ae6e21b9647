mod headers;
mod host_routing;
mod http1_validator;
mod pool;
mod probe_rules;
