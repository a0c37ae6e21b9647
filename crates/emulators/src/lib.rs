//! Systems outside a cluster, as `tower` services over a state value.
