mod client;
mod headers;
mod naming;
mod probe;
mod strict;
