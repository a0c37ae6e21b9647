//! Clusters: the commands of users, the SDK of customers, and provider processes.

mod arm_client;
mod commands;
mod fleet_server;
mod processes;
mod sdk;
mod sync_sets;
