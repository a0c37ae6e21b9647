//! Labels on the objects that are made for a Service.

/// On the private Service, which Kubernetes copies to the EndpointSlices of that Service.
pub const PRIVATE: &str = "idle.neaptide.dev/private";
/// On an EndpointSlice: the Service that it belongs to.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// On an EndpointSlice: the controller that maintains it.
pub const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY`] on slices of this operator. A label's value has no slash.
pub const MANAGER: &str = "idle.neaptide.dev";
