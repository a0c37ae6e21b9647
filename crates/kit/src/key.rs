//! The namespace and name of an object.

use std::{fmt, sync::Arc};

use kube::{Resource, runtime::reflector::ObjectRef};

/// Namespace and name, or only the name of a cluster-scoped object. Cheap to clone. Keys of one
/// namespace are adjacent in their order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Arc<str>);

impl Key {
    /// The key of an object; with an empty namespace, of a cluster-scoped one.
    pub fn new(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() {
            Self(name.into())
        } else {
            Self(format!("{namespace}/{name}").into())
        }
    }

    /// The key of `object`.
    pub fn of<K: Resource>(object: &K) -> Self {
        let meta = object.meta();
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        Self::new(namespace, meta.name.as_deref().unwrap_or_default())
    }

    /// The namespace; empty for cluster-scoped objects.
    pub fn namespace(&self) -> &str {
        self.0
            .split_once('/')
            .map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(_, name)| name)
    }
}

impl<K: Resource> From<&ObjectRef<K>> for Key {
    fn from(reference: &ObjectRef<K>) -> Self {
        Self::new(
            reference.namespace.as_deref().unwrap_or_default(),
            &reference.name,
        )
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_returns_its_namespace_and_name() {
        for (namespace, name, shown) in [("shop", "cart", "shop/cart"), ("", "node-1", "node-1")] {
            let key = Key::new(namespace, name);
            assert_eq!((key.namespace(), key.name()), (namespace, name));
            assert_eq!(key.to_string(), shown);
        }
    }
}
